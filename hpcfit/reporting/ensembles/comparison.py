"""Two ensembles beside each other."""

from __future__ import annotations

import numpy as np

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.ensembles.cells import coverage_cell, ratio_cell, reason
from hpcfit.reporting.ensembles.members import outcomes
from hpcfit.reporting.layout import cut, matched, number, plain, signed, table, visible

MOST_ROWS = 60
HEADER = ("first mean", "spread", "second mean", "spread", "difference", "in standard errors")
QUALITY_HEADER = ("first ratio", "second ratio", "first 95 %  ", "second 95 %  ")


def compare(
    first: EnsembleResult, second: EnsembleResult, names: tuple[str, str], *, unicode: bool = True
) -> str:
    """Outcomes, means and spreads, ratios and coverages; means differ by their combined standard errors."""
    blocks = [[f"first   {visible(names[0])}", f"second  {visible(names[1])}"], _heads(first, second)]
    if identical(first, second):
        blocks.append(["All members are identical, bit by bit."])
    ours, theirs = ({row.name: row for row in summary.rows(each)} for each in (first, second))
    pairs = [(name, ours.get(name), theirs.get(name)) for name in dict.fromkeys([*ours, *theirs])]
    blocks.append(_ends(first, second))
    blocks.append(table(("unknown", *HEADER), cut([_row(*pair) for pair in pairs], MOST_ROWS)))
    blocks.append(table(("unknown", *QUALITY_HEADER), cut([_quality(*pair) for pair in pairs], MOST_ROWS)))
    blocks.append(["ratio: spread / error; 95 %: coverage of single intervals, ! is outside its band"])
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


def _ends(first: EnsembleResult, second: EnsembleResult) -> list[str]:
    """Members of both by outcome."""
    ours, theirs = outcomes(first), outcomes(second)
    rows = [
        (reason(each), f"{ours.get(each, 0):,}", f"{theirs.get(each, 0):,}")
        for each in dict.fromkeys([*ours, *theirs])
    ]
    return table(("outcome", "first", "second"), rows)


def _row(name: str, one: summary.Row | None, other: summary.Row | None) -> tuple[str, ...]:
    cells = [name]
    for row in (one, other):
        cells += ["–", "–"] if row is None else [matched(row.mean, row.spread), number(row.spread, 3)]
    if one is None or other is None:
        return (*cells, f"only in the {'first' if other is None else 'second'}", "")
    if one.mean == other.mean or (np.isnan(one.mean) and np.isnan(other.mean)):
        return (*cells, "equal", "")
    scale = np.sqrt(one.spread**2 / max(one.members, 1) + other.spread**2 / max(other.members, 1))
    apart = one.mean - other.mean
    return (*cells, number(apart, 3), signed(apart / scale) if scale > 0.0 else "–")


def _quality(name: str, one: summary.Row | None, other: summary.Row | None) -> tuple[str, ...]:
    """How well the errors of both describe the scatter."""
    ratios = ["–" if row is None else ratio_cell(row) for row in (one, other)]
    return (name, *ratios, _coverage95(one), _coverage95(other))


def _coverage95(row: summary.Row | None) -> str:
    return next((coverage_cell(each) for each in row.coverages if each.level == 0.95), "") if row else ""
