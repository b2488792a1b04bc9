"""The one picture of a fit."""

from __future__ import annotations

import textwrap

from matplotlib.figure import Figure

from hpcfit.records import FitResult
from hpcfit.reporting.fits import stretches, summary, trajectories
from hpcfit.reporting.fits.convergence import draw_correlations, draw_lengths
from hpcfit.reporting.fits.residuals import draw_histogram
from hpcfit.reporting.layout import matched, number
from hpcfit.reporting.style import INK, VERMILION, literal, styled

MOST_ESTIMATES = 12


def overview(fit: FitResult, title: str) -> Figure:
    """Trajectories beside residuals, convergence and correlations; the estimates above."""
    with styled():
        text = textwrap.wrap(_estimates(fit), 120)
        count = len(trajectories.chosen(fit, 0))
        height = min(max(trajectories.height(count), 6.4), 9.0) + 0.18 * len(text)
        figure = Figure(figsize=(11.0, height + 0.5), layout="constrained")
        lines = [literal(title, 90)]
        figure.suptitle(lines[0], x=0.012, ha="left", fontsize=12, fontweight="bold")
        head, body = figure.subfigures(2, 1, height_ratios=(0.02 + 0.19 * len(text), height))
        color = INK if fit.converged else VERMILION
        shown = "\n".join(literal(line, 130) for line in text)
        head.text(0.012, 1.0, shown, va="top", ha="left", fontsize=8.5, color=color, linespacing=1.4)
        left, right = body.subfigures(1, 2, width_ratios=(1.9, 1.0), wspace=0.02)
        long = stretches.is_long(fit, 0)
        trajectories.draw(left, fit, (stretches.begin if long else stretches.whole)(fit, 0))
        upper, middle, lower = right.subplots(3, 1, height_ratios=(0.8, 1.0, 1.5))
        draw_histogram(upper, fit)
        draw_lengths(middle, fit)
        middle.set_xlabel("step")
        draw_correlations(right, lower, fit)
        return figure


def _estimates(fit: FitResult) -> str:
    rows = [row for row in summary.rows(fit) if row.group == "parameter"]
    shown = [
        f"{row.name} = {matched(row.estimate, row.error)} ± {number(row.error, 3)}"
        for row in rows[:MOST_ESTIMATES]
    ]
    more = [f"{len(rows) - MOST_ESTIMATES} more"] if len(rows) > MOST_ESTIMATES else []
    return f"{summary.status(fit)};  " + ",  ".join(shown + more)
