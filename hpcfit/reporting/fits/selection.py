"""What tables tell of a fit that has more estimates, nodes or experiments than a page has lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcfit.records import FitResult
from hpcfit.reporting.fits import constraints, stretches, summary
from hpcfit.reporting.layout import cut, number, signed

MOST_STATES = 40  # initial states of several experiments that are all shown
MOST_CONSTRAINTS = 40
MOST_ROWS = 12  # of a table in the place of longer ones

Digest = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # title, header, rows


@dataclass(frozen=True)
class Part:
    """Estimates that stand together under one heading."""

    group: str
    remark: str  # added to the name of the group
    rows: list[summary.Row]


def parts(fit: FitResult) -> list[Part]:
    """All estimates by group; of many experiments the initial states of the first and of the worst ones."""
    rows = summary.rows(fit)
    found = []
    for group in summary.GROUPS:
        own = [row for row in rows if row.group == group]
        if group == "initial state" and is_selected(fit):
            n = len(fit.state_names)
            first, worst = stretches.shown_experiments(fit)
            for some, remark in ((first, "first"), (worst, "worst")):
                chosen = [row for e in some for row in own[e * n : (e + 1) * n]]
                found.append(Part(group, f", {remark}", chosen))
        elif own:
            found.append(Part(group, "", own))
    return found


def is_selected(fit: FitResult) -> bool:
    """Whether some experiments are left out of tables."""
    count = len(fit.experiments)
    return count > 2 * stretches.PICKED and count * len(fit.state_names) > MOST_STATES


def left_out(fit: FitResult) -> str:
    """How many initial states are not shown."""
    if not is_selected(fit):
        return ""
    experiments = len(fit.experiments) - 2 * stretches.PICKED
    count = experiments * len(fit.state_names)
    what = f"{count:,} initial states of {experiments:,} experiments"
    return f"{what} are left out; show --json and --csv hold all"


def digests(fit: FitResult) -> list[Digest]:
    """Constraints; small tables in the place of what a long fit or one of many experiments holds."""
    found: list[Digest] = []
    if fit.constraints:
        title = "Constraints (pull: multiplier / its error)"
        found.append((title, constraints.HEADER, cut(constraints.rows(fit), MOST_CONSTRAINTS)))
    if is_selected(fit):
        found.append(_experiments(fit))
    if is_selected(fit) or any(stretches.is_long(fit, e) for e in range(len(fit.experiments))):
        found += [_residuals(fit), _nodes(fit)]
    return found


def node_errors(fit: FitResult) -> dict[str, dict[str, float]]:
    """Standard errors of the states along the path, in a few numbers."""
    found = {}
    for name, errors in zip(fit.state_names, fit.node_errors.T, strict=True):
        known = np.flatnonzero(np.isfinite(errors))
        top = known[np.argmax(errors[known])] if len(known) else -1
        found[name] = {
            "first": float(errors[0]),
            "median": float(np.median(errors[known])) if len(known) else float("nan"),
            "largest": float(errors[top]),
            "largest_at": float(fit.node_times[top]),
            "last": float(errors[-1]),
        }
    return found


def _experiments(fit: FitResult) -> Digest:
    squares, counts = stretches.mean_squares(fit), [len(series.times) for series in fit.experiments]
    first, worst = stretches.shown_experiments(fit)
    rows: list[tuple[str, ...]] = []
    for e in (*first, *worst):
        rows.append((f"{e + 1:,}", f"{counts[e]:,}", number(squares[e], 4)))
    known = squares[np.isfinite(squares)]
    if len(known):
        rows.append(("median", f"{int(np.median(counts)):,}", number(float(np.median(known)), 4)))
    return "Experiments, the first and the worst", ("experiment", "times", "mean squared residual"), rows


def _residuals(fit: FitResult) -> Digest:
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(name for series in fit.experiments for name in series.names):
        own = [e for e, series in enumerate(fit.experiments) if name in series.names]
        columns = [summary.standardised(fit, e, name) for e in own]
        sizes = [float(np.nanmax(np.abs(column), initial=-1.0)) for column in columns]
        count = sum(int(np.isfinite(column).sum()) for column in columns)
        if not count:
            continue
        worst = int(np.argmax(sizes))
        place = int(np.nanargmax(np.abs(columns[worst])))
        rms = np.sqrt(sum(float(np.nansum(column**2)) for column in columns) / count)
        where = f", experiment {own[worst] + 1:,}" if len(fit.experiments) > 1 else ""
        at = f"{fit.experiments[own[worst]].times[place]:.8g}{where}"
        rows.append((name, f"{count:,}", number(rms, 4), signed(float(columns[worst][place])), at))
    return (
        "Residuals in standard deviations",
        ("quantity", "values", "rms", "largest", "at t"),
        cut(rows, MOST_ROWS),
    )


def _nodes(fit: FitResult) -> Digest:
    keys = ("first", "median", "largest", "largest_at", "last")
    rows: list[tuple[str, ...]] = [
        (name, *(number(row[key], 8 if key == "largest_at" else 3) for key in keys))
        for name, row in node_errors(fit).items()
    ]
    title = f"Standard errors of the states at {len(fit.node_times):,} nodes"
    return title, ("state", "first node", "median", "largest", "at t", "last node"), cut(rows, MOST_ROWS)
