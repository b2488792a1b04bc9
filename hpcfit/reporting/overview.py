"""The one picture of a path, and its pages of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from hpcfit.records import Path
from hpcfit.reporting import figures, portraits, summary
from hpcfit.reporting.layout import plain, visible
from hpcfit.reporting.style import INK, PALE, VERMILION, literal, styled
from hpcfit.reporting.terminal import as_text

LINES_A_PAGE = 72
COLUMNS_A_PAGE = 92


def overview(path: Path, title: str, *, points: bool = False) -> Figure:
    """Trajectories beside phase portraits."""
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


def text_pages(path: Path, provenance: Mapping[str, object], job_text: str, title: str) -> list[Figure]:
    """Tables, provenance and job file on A4 pages."""
    page = as_text(path, provenance, unicode=False, width=COLUMNS_A_PAGE, plots=False)
    lines = [title, "", *page.splitlines()]
    if job_text:
        lines += ["", "job file", "--------", *job_text.splitlines()]
    cut = [plain(visible(part)) for line in lines for part in _folded(line)]
    with styled():
        return [
            _text_page(cut[k : k + LINES_A_PAGE], k // LINES_A_PAGE + 1)
            for k in range(0, len(cut), LINES_A_PAGE)
        ]


def _folded(line: str) -> list[str]:
    line = line.expandtabs(4)
    return [line[k : k + COLUMNS_A_PAGE] for k in range(0, len(line), COLUMNS_A_PAGE)] or [""]


def _text_page(lines: list[str], number: int) -> Figure:
    figure = Figure(figsize=(8.27, 11.69))
    text = "\n".join(lines).replace("$", r"\$")
    style: dict[str, Any] = {"family": "DejaVu Sans Mono", "fontsize": 8, "linespacing": 1.35, "color": INK}
    figure.text(0.09, 0.94, text, verticalalignment="top", **style)
    figure.text(0.5, 0.035, str(number), horizontalalignment="center", fontsize=8, color=PALE)
    return figure
