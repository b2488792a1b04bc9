"""All of an ensemble in one picture."""

from __future__ import annotations

from matplotlib.figure import Figure

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import coverage_figure
from hpcfit.reporting.ensembles import figures as pictures
from hpcfit.reporting.ensembles.chi_square_figure import draw_objectives, draw_probabilities
from hpcfit.reporting.style import literal, styled
from hpcfit.reporting.sweeps.overview import sweep_overview

MOST_COVERAGES = 14


def overview(ensemble: EnsembleResult, title: str) -> Figure:
    """Histograms of the parameters, coverage of their intervals, objectives and work."""
    if ensemble.grid:
        return sweep_overview(ensemble, title)
    names = pictures.shown_names(ensemble, parameters=True)
    names = names or pictures.shown_names(ensemble, parameters=False)
    rows = coverage_figure.shown_rows(ensemble, MOST_COVERAGES)
    heights = [2.1 * -(-max(len(names), 1) // pictures.COLUMNS), 2.9]
    if rows:
        heights.insert(1, coverage_figure.height(rows))
    with styled():
        figure = Figure(figsize=(9.0, 0.5 + sum(heights)), layout="constrained")
        figure.suptitle(literal(title, 90), x=0.012, ha="left", fontsize=12, fontweight="bold")
        parts = figure.subfigures(len(heights), 1, height_ratios=heights)
        pictures.draw_estimates(parts[0], ensemble, names)
        if rows:
            coverage_figure.draw_coverage(parts[1], rows)
        left, middle, right = parts[-1].subfigures(1, 3, width_ratios=(1.1, 1.1, 0.9))
        draw_objectives(left.subplots(), ensemble)
        draw_probabilities(middle, ensemble)
        pictures.iterations(right.subplots(), ensemble)
        return figure
