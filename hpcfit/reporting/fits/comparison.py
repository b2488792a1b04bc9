"""Two fits beside each other."""

from __future__ import annotations

import numpy as np

from hpcfit.records import FitResult
from hpcfit.reporting.fits import summary
from hpcfit.reporting.layout import cut, matched, number, plain, signed, table, visible

MOST_ROWS = 60
HEADER = ("first", "error", "second", "error", "difference", "in combined errors")


def compare(first: FitResult, second: FitResult, names: tuple[str, str], *, unicode: bool = True) -> str:
    """Estimates, errors, and differences in units of the combined error sqrt(e1^2 + e2^2)."""
    blocks = [[f"first   {visible(names[0])}", f"second  {visible(names[1])}"], _heads(first, second)]
    if identical(first, second):
        blocks.append(["The estimates and their covariances are identical, bit by bit."])
    blocks.append(_estimates(first, second))
    page = "\n\n".join("\n".join(block) for block in blocks) + "\n"
    return page if unicode else plain(page)


def identical(first: FitResult, second: FitResult) -> bool:
    """Whether all estimates and covariances are the same doubles."""
    pairs = ((first.unknowns, second.unknowns), (first.derived, second.derived))
    return all(
        one.names == other.names
        and np.array_equal(one.values, other.values, equal_nan=True)
        and np.array_equal(one.covariance, other.covariance, equal_nan=True)
        for one, other in pairs
    )


def _heads(first: FitResult, second: FitResult) -> list[str]:
    pairs = [
        ("model", first.model, second.model),
        ("outcome", summary.status(first), summary.status(second)),
        ("data", f"{summary.n_values(first):,} values", f"{summary.n_values(second):,} values"),
        ("beta^2", f"{first.beta2:.6g}", f"{second.beta2:.6g}"),
        ("steps", _steps(first), _steps(second)),
    ]
    return [f"{word:<7}  " + _both(visible(one), visible(other)) for word, one, other in pairs]


def _steps(fit: FitResult) -> str:
    return f"{fit.iterations} exact, {fit.linearisations} linearisations"


def _both(one: str, other: str) -> str:
    return f"same: {one}" if one == other else f"differs: {one} | {other}"


def _estimates(first: FitResult, second: FitResult) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for group in summary.GROUPS:
        ours, theirs = (
            {row.name: row for row in summary.rows(fit) if row.group == group} for fit in (first, second)
        )
        own = [_row(name, ours.get(name), theirs.get(name)) for name in dict.fromkeys([*ours, *theirs])]
        if own:
            rows += [(group, *("" for _ in HEADER)), *cut(own, MOST_ROWS)]
    return table(("", *HEADER), rows)


def _row(name: str, one: summary.Row | None, other: summary.Row | None) -> tuple[str, ...]:
    cells = ["  " + name]
    for row in (one, other):
        cells += ["–", "–"] if row is None else [matched(row.estimate, row.error), number(row.error, 3)]
    if one is None or other is None:
        return (*cells, f"only in the {'first' if other is None else 'second'}", "")
    if one.estimate == other.estimate or (np.isnan(one.estimate) and np.isnan(other.estimate)):
        return (*cells, "equal", "")
    apart, combined = one.estimate - other.estimate, float(np.hypot(one.error, other.error))
    ratio = apart / combined if combined > 0.0 else float("nan")
    return (*cells, number(apart, 3), signed(ratio) if abs(ratio) >= 0.01 else number(ratio, 2))
