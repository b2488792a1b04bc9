"""What a page says of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import FitResult
from hpcfit.reporting.fits import selection, stretches, summary, trajectories
from hpcfit.reporting.fits.convergence import convergence, correlations, matrix_names
from hpcfit.reporting.fits.overview import overview
from hpcfit.reporting.fits.residuals import residuals
from hpcfit.reporting.html import table
from hpcfit.reporting.layout import matched, number, signed

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
TABLES_AT = 1  # the estimates come before the figures
TITLES = {"parameter": "Parameters", "initial state": "Initial states", "derived": "Derived quantities"}
HEADER = ("name", "estimate", "error", "single 95 %", "joint 95 %", "guess", "truth", "off", "unit")


def facts(fit: FitResult) -> list[tuple[str, str]]:
    """What stands at the head of the page."""
    return [("Model", fit.model), *((key[:1].upper() + key[1:], text) for key, text in summary.facts(fit))]


def figures(fit: FitResult) -> list[tuple[str, Figure]]:
    """The figures with their captions."""
    first, worst = stretches.shown_experiments(fit, stretches.FEW_EXPERIMENTS)
    found = [pair for e in first for pair in _paths(fit, e)]
    found += [pair for e in worst for pair in _paths(fit, e, "among the worst")]
    found.append((_residual_caption(fit), residuals(fit)))
    if fit.history:
        text = "The way to the solution: length of the step, largest discontinuity at the nodes, objective."
        found.append((text, convergence(fit)))
    if len(fit.unknowns.names) > 1:
        shown, total = len(matrix_names(fit)), len(fit.unknowns.names)
        some = f" {shown:,} of {total:,} unknowns are shown." if shown < total else ""
        found.append((f"Correlations of the estimates.{some}", correlations(fit)))
    return found


def _paths(fit: FitResult, experiment: int, remark: str = "") -> list[tuple[str, Figure]]:
    """Data and trajectories of one experiment; a long one from near, where it is worst, and as a whole."""
    count = len(fit.experiments[experiment].times)
    several, said = len(fit.experiments) > 1, f", {remark}" if remark else ""
    head = f"Experiment {experiment + 1:,} of {len(fit.experiments):,}{said}. " if several else ""
    caption = _caption(fit, experiment)
    if not stretches.is_long(fit, experiment):
        return [(head + caption, trajectories.trajectories(fit, experiment))]
    near = stretches.begin(fit, experiment)
    first = f"{head}The first {near.last + 1:,} of {count:,} data times. {caption}"
    found = [(first, trajectories.trajectories(fit, experiment, stretch=near))]
    if stretches.worst(fit, experiment):
        size = 2 * stretches.AROUND + 1
        text = f"{head}Around the largest residuals (rings), {size} data times each."
        found.append((text, trajectories.worst(fit, experiment)))
    dense = trajectories.is_dense(stretches.whole(fit, experiment))
    how = "least and greatest value in each column of time, of" if dense else ""
    text = f"{head}All {count:,} data times: {how} data and fitted trajectory.".replace("  ", " ")
    found.append((text, trajectories.trajectories(fit, experiment)))
    return found


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
    blocks = [
        table(TITLES[part.group] + part.remark, HEADER, [_row(row) for row in part.rows])
        for part in selection.parts(fit)
    ]
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
    some = f'<p class="quiet">{escape(selection.left_out(fit))}.</p>' if selection.left_out(fit) else ""
    blocks += [table(title, header, rows) for title, header, rows in selection.digests(fit)]
    return f'<div class="tables">\n{"".join(blocks)}</div>\n{some}{note}'


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
