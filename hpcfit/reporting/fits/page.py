"""What a page says of a fit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import FitResult
from hpcfit.reporting.fits import summary, trajectories
from hpcfit.reporting.fits.convergence import convergence, correlations
from hpcfit.reporting.fits.overview import overview
from hpcfit.reporting.fits.residuals import residuals
from hpcfit.reporting.html import table
from hpcfit.reporting.layout import matched, number, signed

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
TABLES_AT = 1  # the estimates come before the figures
MOST_EXPERIMENTS = 4  # with a figure of their own
TITLES = {"parameter": "Parameters", "initial state": "Initial states", "derived": "Derived quantities"}
HEADER = ("name", "estimate", "error", "single 95 %", "joint 95 %", "guess", "truth", "off", "unit")


def facts(fit: FitResult) -> list[tuple[str, str]]:
    """What stands at the head of the page."""
    return [("Model", fit.model), *((key[:1].upper() + key[1:], text) for key, text in summary.facts(fit))]


def figures(fit: FitResult) -> list[tuple[str, Figure]]:
    """The figures with their captions."""
    found = [pair for e in range(min(len(fit.experiments), MOST_EXPERIMENTS)) for pair in _paths(fit, e)]
    found.append((_residual_caption(fit), residuals(fit)))
    if fit.history:
        text = "The way to the solution: length of the step, largest discontinuity at the nodes, objective."
        found.append((text, convergence(fit)))
    if len(fit.unknowns.names) > 1:
        found.append(("Correlations of the estimates.", correlations(fit)))
    return found


def _paths(fit: FitResult, experiment: int) -> list[tuple[str, Figure]]:
    """Data and trajectories of one experiment; a long one also from near."""
    count = len(fit.experiments[experiment].times)
    several = len(fit.experiments) > 1
    head = f"Experiment {experiment + 1} of {len(fit.experiments)}. " if several else ""
    if not trajectories.is_long(fit, experiment):
        return [(head + _caption(fit, experiment), trajectories.trajectories(fit, experiment))]
    last = trajectories.BEGINNING
    near = trajectories.trajectories(fit, experiment, last=last)
    first = f"{head}The first {last:,} of {count:,} data times. {_caption(fit, experiment)}"
    return [
        (first, near),
        (
            f"{head}All {count:,} data times: data and fitted trajectory.",
            trajectories.trajectories(fit, experiment),
        ),
    ]


def _caption(fit: FitResult, experiment: int) -> str:
    known = fit.experiments[experiment].sigma is not None
    bars = "standard deviations" if known else "standard deviations that the residuals tell"
    text = (
        f"Data with their {bars} (blue), the discontinuous trajectory that the fit began with (orange), "
        "and the fitted trajectory (black) with ± 2 standard errors at the nodes (light blue). The axes "
        "hold data and fit; pieces of the initial trajectory that leave this range are cut off."
    )
    names = trajectories.chosen(fit, experiment)
    total = len(set(fit.state_names) | set(fit.experiments[experiment].names))
    return text + (f" {len(names)} of {total:,} quantities are shown." if len(names) < total else "")


def _residual_caption(fit: FitResult) -> str:
    known = "in standard deviations of the data" if fit.sigma_known else "in units of their estimated size"
    return (
        f"Residuals (observed - fitted) {known}, over time, and all of them against the normal distribution."
    )


def tables(fit: FitResult, provenance: Mapping[str, object]) -> str:
    """Estimates, what was held fixed, and the strongest correlations; `provenance` is for other kinds."""
    blocks = []
    for group, title in TITLES.items():
        rows = [_row(row) for row in summary.rows(fit) if row.group == group]
        if rows:
            blocks.append(table(title, HEADER, rows))
    if fit.fixed:
        values = [(name, number(value, 10), summary.unit_of(fit, name)) for name, value in fit.fixed.items()]
        blocks.append(table("Fixed parameters", ("name", "value", "unit"), values))
    pairs = [(f"{one}, {other}", signed(value, 3)) for one, other, value in summary.strongest(fit)]
    if pairs:
        blocks.append(table("Strongest correlations", ("pair", "correlation"), pairs))
    off = " Off: (estimate - truth) / error." if fit.truth else ""
    note = (
        f'<p class="quiet">Half widths of 95 % intervals: single = {number(fit.t95, 4)} errors, '
        f"joint = {number(fit.gamma, 4)} errors. Errors include the factor beta.{off}</p>"
    )
    return f'<div class="tables">\n{"".join(blocks)}</div>\n{note}'


def _row(row: summary.Row) -> tuple[str, ...]:
    return (
        row.name,
        matched(row.estimate, row.error),
        number(row.error, 3),
        number(row.single, 3),
        number(row.joint, 3),
        "" if np.isnan(row.guess) else number(row.guess, 4),
        "" if np.isnan(row.truth) else number(row.truth, 6),
        "" if np.isnan(row.deviation) else signed(row.deviation),
        row.unit,
    )
