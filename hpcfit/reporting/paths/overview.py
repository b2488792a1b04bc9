"""The one picture of a path."""

from __future__ import annotations

from matplotlib.figure import Figure

from hpcfit.records import Path
from hpcfit.reporting.paths import figures, portraits, summary
from hpcfit.reporting.style import VERMILION, literal, styled


def overview(path: Path, title: str) -> Figure:
    """Trajectories beside phase portraits."""
    points = path.kind == "map"
    with styled():
        height = min(max(0.82 * figures.trajectories_height(path), 4.4), 7.5)
        figure = Figure(figsize=(11.0, height + 0.35), layout="constrained")
        figure.suptitle(
            literal(title, 90), x=0.012, horizontalalignment="left", fontsize=12, fontweight="bold"
        )
        if not summary.reached(path):
            text = literal(summary.status(path), 140)
            figure.text(0.5, 0.5, text, horizontalalignment="center", color=VERMILION)
            return figure
        left, right = figure.subfigures(1, 2, width_ratios=(1.12, 1.0), wspace=0.03)
        figures.draw_trajectories(left, path, points=points)
        portraits.draw(right, path, points=points, square=len(path.state_names) <= 2)
        return figure
