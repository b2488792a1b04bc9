"""Two paths beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, Path, Series
from hpcfit.reporting.layout import number, plain, table, visible
from hpcfit.reporting.paths import summary

MOST_ROWS = 12
Row = tuple[str, str, str, str]
Indices = NDArray[np.signedinteger[Any]]


def compare(first: Path, second: Path, names: tuple[str, str], *, unicode: bool = True) -> str:
    """Where two paths are identical, and how far they are apart elsewhere."""
    blocks = [[f"first   {visible(names[0])}", f"second  {visible(names[1])}"], _heads(first, second)]
    differing = [*_differing("parameter", first, second), *_differing("start", first, second)]
    if differing:
        blocks.append(table(("differs", "first", "second"), _cut(differing)))
    _, ours, theirs = np.intersect1d(first.times, second.times, return_indices=True)
    if not len(ours):
        blocks.append(["No common times: nothing else to compare."])
    else:
        rows = list(_rows(first, second, ours, theirs))
        if rows:
            head = ("values", "largest difference", "relative", "at t")
            blocks.append(table(head, rows))
        else:
            blocks.append(["No common quantities: nothing else to compare."])
    page = "\n\n".join("\n".join(block) for block in blocks) + "\n"
    return page if unicode else plain(page)


def _heads(first: Path, second: Path) -> list[str]:
    same = np.array_equal(first.times, second.times)
    common = len(np.intersect1d(first.times, second.times))
    many = f"{len(first.times):,} and {len(second.times):,}, {common:,} of them in common"
    ends = (visible(summary.status(path)) for path in (first, second))
    lines = [
        _line("model", visible(first.model), visible(second.model)),
        f"times    identical ({len(first.times):,})" if same else f"times    differ: {many}",
        _line("outcome", *ends),
    ]
    if first.seed != second.seed:
        lines.append(_line("seed", str(first.seed), str(second.seed)))
    return lines


def _line(word: str, first: str, second: str) -> str:
    return f"{word:<7}  " + (f"same: {first}" if first == second else f"differs: {first} | {second}")


def _differing(word: str, first: Path, second: Path) -> Iterator[tuple[str, str, str]]:
    """Parameters or start values that are not the same double in both."""
    ours, theirs = ({**_values(word, path)} for path in (first, second))
    for name in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None or np.float64(one).tobytes() != np.float64(other).tobytes():
            yield f"{word} {name}", _exactly(one), _exactly(other)


def _values(word: str, path: Path) -> dict[str, float]:
    if word == "start":
        return dict(zip(path.state_names, path.start.tolist(), strict=True))
    return dict(zip(path.parameter_names, path.parameters.tolist(), strict=True))


def _exactly(value: float | None) -> str:
    return "–" if value is None else f"{value!r}"


def _rows(first: Path, second: Path, ours: Indices, theirs: Indices) -> Iterator[Row]:
    times = first.times[ours]
    states = [name for name in first.state_names if name in second.state_names]
    here, there = _indices(first.state_names, states), _indices(second.state_names, states)
    yield from _worst_first(
        _row(name, first.states[ours, i], second.states[theirs, j], times)
        for name, i, j in zip(states, here, there, strict=True)
    )
    if first.by_start is not None and second.by_start is not None and states:
        one = first.by_start[ours][:, here][:, :, here]
        yield _row("d/d start", one, second.by_start[theirs][:, there][:, :, there], times)
    elif first.by_start is not None or second.by_start is not None:
        yield _absent("d/d start", first.by_start is not None)
    shared = [name for name in first.parameter_names if name in second.parameter_names]
    if first.by_parameters is not None and second.by_parameters is not None and states and shared:
        mine, others = _indices(first.parameter_names, shared), _indices(second.parameter_names, shared)
        one = first.by_parameters[ours][:, here][:, :, mine]
        yield _row("d/d parameters", one, second.by_parameters[theirs][:, there][:, :, others], times)
    elif first.by_parameters is not None and second.by_parameters is None:
        yield _absent("d/d parameters", True)
    elif first.by_parameters is None and second.by_parameters is not None:
        yield _absent("d/d parameters", False)
    if first.invariant is not None and second.invariant is not None:
        yield _row("invariant", first.invariant[ours], second.invariant[theirs], times)
    yield from _series_rows("observed", first.observed, second.observed, times)
    yield from _series_rows("recorded", first.data, second.data, times)


def _series_rows(word: str, first: Series | None, second: Series | None, times: Array) -> Iterator[Row]:
    if first is None and second is None:
        return
    if first is None or second is None:
        yield _absent(word, first is not None)
        return
    rows = []
    for name in first.names:
        one, other = summary.column(first, name, times), summary.column(second, name, times)
        if one is not None and other is not None:
            rows.append(_row(f"{word} {name}", one, other, times))
    yield from _worst_first(rows)


def _indices(names: tuple[str, ...], chosen: list[str]) -> list[int]:
    return [names.index(name) for name in chosen]


def _absent(word: str, in_first: bool) -> Row:
    return word, f"only in the {'first' if in_first else 'second'}", "", ""


def _row(name: str, first: Array, second: Array, times: Array) -> Row:
    """Largest difference over all entries; relative to the largest modulus of the first."""
    if first.tobytes() == second.tobytes():
        return name, "identical", "", ""
    apart = np.abs(summary.difference(first, second)).reshape(len(times), -1)
    one_only = int((np.isfinite(first) != np.isfinite(second)).sum())
    note = f" ({one_only:,} missing in one)" if one_only else ""
    if not np.isfinite(apart).any():
        return name, f"no common values{note}", "", ""
    worst = np.unravel_index(np.argmax(np.where(np.isfinite(apart), apart, -1.0)), apart.shape)
    most, scale = float(apart[worst]), summary.largest(first)
    relative = number(most / scale, 3) if scale > 0 else "–"
    return name, number(most, 3) + note, relative, number(float(times[worst[0]]), 6)


def _worst_first(rows: Sequence[Row] | Iterator[Row]) -> list[Row]:
    """All rows if few; else the largest differences, and one row for the rest."""
    found = list(rows)
    if len(found) <= MOST_ROWS:
        return found
    same = [row for row in found if row[1] == "identical"]
    other = [row for row in found if row[1] != "identical"]
    other.sort(key=lambda row: _size(row[1]), reverse=True)
    rest = other[MOST_ROWS - 2 :]
    cut = [(f"… {len(rest)} more", "smaller", "", "")] if rest else []
    return other[: MOST_ROWS - 2] + cut + ([(f"… {len(same)} others", "identical", "", "")] if same else [])


def _size(text: str) -> float:
    try:
        return float(text.split()[0])
    except ValueError:
        return float("inf")


def _cut(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if len(rows) <= 2 * MOST_ROWS:
        return list(rows)
    return [*rows[: 2 * MOST_ROWS], (f"… {len(rows) - 2 * MOST_ROWS} more", *("" for _ in rows[0][1:]))]
