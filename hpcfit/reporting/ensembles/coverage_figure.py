"""A picture of how often intervals hold the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.ensembles.coverage import LEVELS, Coverage
from hpcfit.reporting.ensembles.figures import WIDTH
from hpcfit.reporting.style import BLUE, PALE, SKY, VERMILION, literal, styled

MOST_ROWS = 40
REACH = 3.0  # half widths of the band on the axes; what is beyond stands at their ends
ROW_HEIGHT = 0.165  # inches


def shown_rows(ensemble: EnsembleResult, most: int = MOST_ROWS) -> list[summary.Row]:
    """The unknowns whose truth is known, or a few of many."""
    known = [row for row in summary.rows(ensemble) if row.coverages]
    picks = np.unique(np.linspace(0, len(known) - 1, min(len(known), most)).astype(int))
    return [known[k] for k in picks]


def height(rows: Sequence[summary.Row]) -> float:
    """Inches that a picture of so many unknowns needs."""
    return 0.85 + ROW_HEIGHT * max(len(rows), 2)


def coverage(rows: Sequence[summary.Row]) -> Figure:
    """Observed minus nominal coverage of every unknown at all levels, with the bands of chance."""
    with styled():
        figure = Figure(figsize=(WIDTH, height(rows)), layout="constrained")
        draw_coverage(figure, rows)
        return figure


def draw_coverage(figure: Any, rows: Sequence[summary.Row]) -> None:
    """One panel a level, one line an unknown."""
    panels = figure.subplots(1, len(LEVELS), sharey=True)
    for k, (axis, level) in enumerate(zip(panels, LEVELS, strict=True)):
        _draw_level(axis, [row.coverages[k] for row in rows])
        axis.set_title(f"{100.0 * level:g} % intervals", loc="left")
    first = panels[0]
    first.set_yticks(range(len(rows)), [literal(row.name, 18) for row in rows])
    first.set_ylim(len(rows) - 0.4, -0.6)
    figure.supxlabel("observed − nominal coverage, percentage points", fontsize=9)


def _draw_level(axis: Any, found: Sequence[Coverage]) -> None:
    """Points on bands: each unknown has a band of its own, as intervals may be missing."""
    level, place = 100.0 * found[0].level, np.arange(len(found))
    counts = [(each.low, each.high, each.holding) for each in found]
    parts = [[each.part(count) for count in three] for each, three in zip(found, counts, strict=True)]
    low, high, seen = 100.0 * np.array(parts).T - level
    edges = np.concatenate([[-0.6], place[:-1] + 0.5, [len(found) - 0.4]])
    axis.stairs(high, edges, baseline=low, orientation="horizontal", fill=True, color=SKY, alpha=0.3)
    axis.axvline(0.0, color=PALE, linewidth=0.7)
    reach = REACH * max(-low.min(), high.max(), 1e-9)
    left, right = -1.05 * min(reach, level), 1.05 * min(reach, 100.0 - level)
    inside = (seen >= left) & (seen <= right)
    outliers = np.array([each.outside for each in found])
    for marks, colour in ((inside & ~outliers, BLUE), (inside & outliers, VERMILION)):
        axis.plot(seen[marks], place[marks], "o", color=colour, markersize=3.2)
    for end, marks, marker in ((left, seen < left, "<"), (right, seen > right, ">")):
        at = np.full(int(marks.sum()), 0.96 * end)
        axis.plot(at, place[marks], marker, color=VERMILION, markersize=4.5)
    axis.set_xlim(left, right)
    axis.tick_params(axis="y", length=0)
    axis.locator_params(axis="x", nbins=4)
