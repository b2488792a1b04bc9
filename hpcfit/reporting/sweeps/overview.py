"""All of a sweep in one picture."""

from __future__ import annotations

from matplotlib.figure import Figure

from hpcfit.records import EnsembleResult
from hpcfit.reporting.style import literal, styled
from hpcfit.reporting.sweeps import spectra
from hpcfit.reporting.sweeps.curves import ROW, draw_curves
from hpcfit.reporting.sweeps.groups import chosen_keys, shown_unknowns
from hpcfit.reporting.sweeps.maps import MOST_UNKNOWNS, draw_maps, map_height

MOST_KEYS = 3


def sweep_overview(ensemble: EnsembleResult, title: str) -> Figure:
    """Maps over two keys where there are two, and curves along each of the first few."""
    if ensemble.of == "lyapunov" and (drawn := spectra.figures(ensemble)):
        figure: Figure = drawn[0][1]
        return figure
    keys = [key for key, values in ensemble.grid.items() if len(values) > 1]
    names = shown_unknowns(ensemble, MOST_UNKNOWNS)
    shown = keys[:MOST_KEYS] or list(ensemble.grid)[:1]
    heights = [0.35 + 1.1 * ROW * len(shown)]
    if len(keys) > 1:
        heights.insert(0, 1.1 * map_height(names))
    with styled():
        figure = Figure(figsize=(9.0, 0.5 + sum(heights)), layout="constrained")
        figure.suptitle(literal(title, 90), x=0.012, ha="left", fontsize=12, fontweight="bold")
        parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        if len(keys) > 1:
            draw_maps(parts[0], ensemble, chosen_keys(ensemble), names)
        draw_curves(parts[-1], ensemble, shown)
        return figure
