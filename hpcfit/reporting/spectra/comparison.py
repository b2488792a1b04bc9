"""Two spectra beside each other."""

from __future__ import annotations

import numpy as np

from hpcfit.records import Spectrum
from hpcfit.reporting.layout import cut, matched, number, plain, signed, table, visible
from hpcfit.reporting.spectra import summary

MOST_ROWS = 60
HEADER = ("first", "error", "second", "error", "difference", "in combined errors")


def compare(first: Spectrum, second: Spectrum, names: tuple[str, str], *, unicode: bool = True) -> str:
    """Exponents, what follows from them, and differences in units of sqrt(e1^2 + e2^2)."""
    blocks = [[f"first   {visible(names[0])}", f"second  {visible(names[1])}"], _heads(first, second)]
    if identical(first, second):
        blocks.append(["The growth of all trajectories is identical, bit by bit."])
    blocks.append(_values(first, second))
    page = "\n\n".join("\n".join(block) for block in blocks) + "\n"
    return page if unicode else plain(page)


def identical(first: Spectrum, second: Spectrum) -> bool:
    """Whether all that was measured is the same doubles."""
    pairs = [(getattr(first, name), getattr(second, name)) for name in ("exponents", "growth", "starts")]
    return all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def _heads(first: Spectrum, second: Spectrum) -> list[str]:
    pairs = [
        ("model", first.model, second.model),
        ("outcome", first.outcome.value, second.outcome.value),
        ("parameters", _parameters(first), _parameters(second)),
        ("trajectories", summary.lane_counts(first), summary.lane_counts(second)),
        ("duration", number(first.duration, 10), number(second.duration, 10)),
        ("block", number(first.block), number(second.block)),
    ]
    return [f"{word:<12}  " + _both(visible(one), visible(other)) for word, one, other in pairs]


def _parameters(spectrum: Spectrum) -> str:
    """Those of the first trajectory, and whether the others have the same."""
    if not len(spectrum.parameters):
        return "none"
    values = zip(spectrum.parameter_names, spectrum.parameters[0], strict=True)
    same = (spectrum.parameters == spectrum.parameters[0]).all()
    return ", ".join(f"{name} = {number(value)}" for name, value in values) + ("" if same else ", and others")


def _both(one: str, other: str) -> str:
    return f"same: {one}" if one == other else f"differs: {one} | {other}"


def _values(first: Spectrum, second: Spectrum) -> list[str]:
    ours, theirs = (
        {
            f"λ{row.number}": (row.exponent, row.bound if row.vanishes else row.error)
            for row in summary.rows(s)
        }
        for s in (first, second)
    )
    rows = [_row(name, ours.get(name), theirs.get(name)) for name in dict.fromkeys([*ours, *theirs])]
    derived = [
        ("dimension", (first.dimension, first.dimension_error), (second.dimension, second.dimension_error)),
        ("entropy", (first.entropy, first.entropy_error), (second.entropy, second.entropy_error)),
    ]
    return table(("", *HEADER), [*cut(rows, MOST_ROWS), *(_row(*each) for each in derived)])


def _row(name: str, one: tuple[float, float] | None, other: tuple[float, float] | None) -> tuple[str, ...]:
    cells = [name]
    for pair in (one, other):
        cells += ["–", "–"] if pair is None else [matched(*pair), number(pair[1], 3)]
    if one is None or other is None:
        return (*cells, f"only in the {'first' if other is None else 'second'}", "")
    if one[0] == other[0] or (np.isnan(one[0]) and np.isnan(other[0])):
        return (*cells, "equal", "")
    apart, combined = one[0] - other[0], float(np.hypot(one[1], other[1]))
    ratio = apart / combined if combined > 0.0 else float("nan")
    return (*cells, number(apart, 3), signed(ratio) if abs(ratio) >= 0.01 else number(ratio, 2))
