"""Pictures of a spectrum as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpcfit.records import Spectrum
from hpcfit.reporting.layout import matched, number
from hpcfit.reporting.spectra import summary
from hpcfit.reporting.spectra.colours import colour
from hpcfit.reporting.spectra.convergence import WIDTH
from hpcfit.reporting.style import BLUE, INK, PALE, VERMILION, styled

MOST_LABELS = 8


def spectrum_figure(spectrum: Spectrum) -> Figure:
    """The exponents by number, and the sums whose crossing of zero is the Kaplan-Yorke dimension."""
    with styled():
        figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
        draw_spectrum(figure, spectrum)
        return figure


def draw_spectrum(figure: Any, spectrum: Spectrum) -> None:
    """Both panels on a figure or a part of one."""
    left, right = figure.subplots(1, 2)
    draw_exponents(left, spectrum)
    draw_sums(right, spectrum)


def draw_exponents(axis: Any, spectrum: Spectrum) -> None:
    """One point each with its 95 % interval; rings vanish."""
    rows = summary.rows(spectrum)
    axis.axhline(0.0, color=PALE, linewidth=0.7)
    for row in rows:
        tint = colour(row.number - 1, len(rows))
        if len(rows) <= MOST_LABELS:
            axis.vlines(row.number, 0.0, row.exponent, color=tint, linewidth=2.2, alpha=0.35)
        half = np.nan_to_num(row.half_width)
        axis.errorbar(
            row.number,
            row.exponent,
            yerr=half,
            color=tint,
            marker="o",
            markersize=5 if len(rows) <= MOST_LABELS else 3,
            markerfacecolor="white" if row.vanishes else tint,
            capsize=3 if len(rows) <= MOST_LABELS else 0,
            linewidth=1.0,
            clip_on=False,
        )
        if len(rows) <= MOST_LABELS:
            _write(axis, row, tint)
    axis.set_xlim(0.5, len(rows) + (0.9 if len(rows) <= MOST_LABELS else 0.5))
    axis.margins(y=0.14)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.set_xlabel("number")
    axis.set_ylabel("exponent")


def _write(axis: Any, row: summary.Row, tint: Any) -> None:
    text = "0" if row.vanishes else matched(row.exponent, 10.0 * row.error)
    below, reach = row.exponent < 0.0 and not row.vanishes, np.nan_to_num(row.half_width)
    axis.annotate(
        text,
        (row.number, row.exponent + (-reach if below else reach)),
        xytext=(0, -8 if below else 7),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=7.5,
        color=tint,
    )


def draw_sums(axis: Any, spectrum: Spectrum) -> None:
    """Sums of the first exponents; the dimension is where the line between them passes zero."""
    cleaned = np.where(np.isfinite(spectrum.bounds), 0.0, spectrum.exponents)
    sums = np.concatenate([[0.0], np.cumsum(np.sort(cleaned)[::-1])])
    counts = np.arange(len(sums))
    axis.axhline(0.0, color=PALE, linewidth=0.7)
    axis.plot(counts, sums, color=BLUE, marker="o", markersize=3.5, linewidth=1.1)
    dimension = spectrum.dimension
    if np.isfinite(dimension):
        axis.plot([dimension], [0.0], marker="D", color=VERMILION, markersize=5.5, zorder=5, linestyle="none")
        text = f"D = {matched(dimension, spectrum.dimension_error)}"
        if spectrum.dimension_error > 0.0:
            text += f" ± {number(1.96 * spectrum.dimension_error, 2)}"
        axis.set_title(text, loc="right", color=VERMILION)
        top = float(sums.max()) or 1.0
        axis.set_ylim(
            max(float(sums.min()), -2.5 * top) - 0.1 * top, 1.15 * top
        )  # the last sum may be far below
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.set_xlabel("number of exponents")
    axis.set_ylabel("their sum", color=INK)
