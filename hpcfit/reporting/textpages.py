"""Text as pages of a PDF file."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from hpcfit.reporting.layout import plain, visible
from hpcfit.reporting.style import INK, PALE, styled

LINES_A_PAGE = 72
COLUMNS_A_PAGE = 92


def text_pages(page: str, job_text: str, title: str) -> list[Figure]:
    """A page of text and the job file on A4 pages."""
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
