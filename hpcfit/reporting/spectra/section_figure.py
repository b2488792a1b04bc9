"""A picture of a Poincaré section."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Section, Spectrum
from hpcfit.reporting.spectra.colours import of_trajectory
from hpcfit.reporting.style import INK, VERMILION, label, literal, styled

SIDE = 5.2  # inches
MOST_COLOURS = 6  # trajectories that are told apart
MOST_POINTS = 20_000


def section_figure(spectrum: Spectrum) -> Figure:
    """The points of a section, and the line around all that the energy permits."""
    assert spectrum.section is not None
    with styled():
        figure = Figure(figsize=(SIDE + 0.4, SIDE), layout="constrained")
        draw_section(figure.subplots(), spectrum, spectrum.section)
        return figure


def draw_section(axis: Any, spectrum: Spectrum, section: Section) -> None:
    """Points by trajectory, on an axis."""
    points, owners = _thinned(section)
    lanes = np.unique(owners)
    size = float(np.clip(110.0 / np.sqrt(max(len(points), 1)), 0.8, 3.5))
    for number, lane in enumerate(lanes):
        own = points[owners == lane]
        tint = INK if len(lanes) == 1 or len(lanes) > MOST_COLOURS else of_trajectory(number)
        axis.plot(
            *own.T,
            linestyle="none",
            marker=".",
            markersize=size,
            markeredgewidth=0,
            color=tint,
            rasterized=True,
        )
    if len(section.border):
        axis.plot(*section.border.T, color=VERMILION, linewidth=1.1)
        axis.margins(0.04)
    axis.set_xlabel(label(section.axes[0], spectrum.units))
    axis.set_ylabel(label(section.axes[1], spectrum.units))
    axis.set_title(literal(title(section, spectrum.kind), 60), loc="left")


def title(section: Section, kind: str) -> str:
    """Which surface, and in which direction."""
    if kind == "map":
        return f"{len(section.points):,} iterates"
    way = {1: ", rising", -1: ", falling"}.get(section.direction, "")
    return f"{len(section.points):,} points at {section.surface} = 0{way}"


def _thinned(section: Section) -> tuple[np.ndarray, np.ndarray]:
    """Not more points than can be seen."""
    step = max(1, -(-len(section.points) // MOST_POINTS))
    return section.points[::step], section.trajectories[::step]
