"""Two ensembles beside each other."""

from __future__ import annotations

import numpy as np

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.layout import cut, matched, number, plain, signed, table, visible

MOST_ROWS = 60
HEADER = ("first mean", "spread", "second mean", "spread", "difference", "in standard errors")


def compare(
    first: EnsembleResult, second: EnsembleResult, names: tuple[str, str], *, unicode: bool = True
) -> str:
    """Means and spreads; differences of the means in units of their combined standard error."""
    blocks = [[f"first   {visible(names[0])}", f"second  {visible(names[1])}"], _heads(first, second)]
    if identical(first, second):
        blocks.append(["All members are identical, bit by bit."])
    ours, theirs = ({row.name: row for row in summary.rows(each)} for each in (first, second))
    counts = (int(summary.good(first).sum()), int(summary.good(second).sum()))
    rows = [_row(name, ours.get(name), theirs.get(name), counts) for name in dict.fromkeys([*ours, *theirs])]
    blocks.append(table(("unknown", *HEADER), cut(rows, MOST_ROWS)))
    page = "\n\n".join("\n".join(block) for block in blocks) + "\n"
    return page if unicode else plain(page)


def identical(first: EnsembleResult, second: EnsembleResult) -> bool:
    """Whether all members ended alike, with the same doubles."""
    same = first.names == second.names and first.outcomes == second.outcomes
    return same and all(
        np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
        for name in ("members", "estimates", "errors", "objective")
    )


def _heads(first: EnsembleResult, second: EnsembleResult) -> list[str]:
    pairs = [("model", first.model, second.model)]
    untimed = (dict(summary.facts(each)) for each in (first, second))
    ours, theirs = ({k: v for k, v in each.items() if k != "solve time"} for each in untimed)
    pairs += [(key, ours[key], theirs[key]) for key in ours]
    return [
        f"{word:<17}  " + (f"same: {visible(a)}" if a == b else f"differs: {visible(a)} | {visible(b)}")
        for word, a, b in pairs
    ]


def _row(
    name: str, one: summary.Row | None, other: summary.Row | None, counts: tuple[int, int]
) -> tuple[str, ...]:
    cells = [name]
    for row in (one, other):
        cells += ["–", "–"] if row is None else [matched(row.mean, row.spread), number(row.spread, 3)]
    if one is None or other is None:
        return (*cells, f"only in the {'first' if other is None else 'second'}", "")
    if one.mean == other.mean or (np.isnan(one.mean) and np.isnan(other.mean)):
        return (*cells, "equal", "")
    scale = np.sqrt(one.spread**2 / max(counts[0], 1) + other.spread**2 / max(counts[1], 1))
    apart = one.mean - other.mean
    return (*cells, number(apart, 3), signed(apart / scale) if scale > 0.0 else "–")
