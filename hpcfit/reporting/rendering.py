"""Figures to bytes, the same bytes each time."""

from __future__ import annotations

import base64
import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import Any

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from hpcfit.reporting.style import styled

DOTS_PER_INCH = 170
_SILENT: dict[str, dict[str, Any]] = {  # neither dates nor versions
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def picture(figure: Figure, kind: str, *, transparent: bool = False, dpi: int = DOTS_PER_INCH) -> bytes:
    """A figure as svg or png."""
    target = io.BytesIO()
    with _drawing():
        figure.savefig(target, format=kind, dpi=dpi, transparent=transparent, metadata=_SILENT[kind])
    return target.getvalue()


def data_address(figure: Figure) -> str:
    """A figure as the source of an image inside a page: svg or png, whichever is smaller."""
    svg = picture(figure, "svg", transparent=True)
    figure.set_layout_engine("none")  # the places are found by now
    png = picture(figure, "png", transparent=True)
    kind, content = ("svg+xml", svg) if len(svg) <= len(png) else ("png", png)
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def write_pages(figures: list[Figure], target: File) -> None:
    """All figures as one PDF file."""
    with _drawing(), PdfPages(target, metadata=_SILENT["pdf"]) as pages:
        for figure in figures:
            pages.savefig(figure)


@contextmanager
def _drawing() -> Iterator[None]:
    fonts = logging.getLogger("fontTools")
    before = fonts.level
    fonts.setLevel(logging.WARNING)  # it tells of every glyph of a PDF file
    try:
        with styled(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box is shown instead
            yield
    finally:
        fonts.setLevel(before)
