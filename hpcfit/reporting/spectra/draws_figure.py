"""A picture of the exponents that the errors of a fit leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, Spectrum
from hpcfit.reporting.spectra import summary
from hpcfit.reporting.spectra.colours import colour
from hpcfit.reporting.spectra.convergence import WIDTH
from hpcfit.reporting.style import VERMILION, styled

MOST_PANELS = 3


def draws_figure(spectrum: Spectrum) -> Figure:
    """The exponents with errors of all draws, in order of size, beside the estimate and its interval."""
    shown = [row for row in summary.rows(spectrum) if not row.vanishes]
    if spectrum.hamiltonian and summary.whole(spectrum):
        shown = [row for row in shown if row.exponent > 0.0]
    shown = (shown or summary.rows(spectrum))[:MOST_PANELS]
    with styled():
        figure = Figure(figsize=(WIDTH, 2.4), layout="constrained")
        for axis, row in zip(np.atleast_1d(figure.subplots(1, len(shown))), shown, strict=True):
            _draw(axis, spectrum, row)
        return figure


def _draw(axis: Any, spectrum: Spectrum, row: summary.Row) -> None:
    k = row.number - 1
    values, errors = _known(spectrum, k)
    order = np.argsort(values, kind="stable")
    tint = colour(k, len(spectrum.exponents))
    axis.axhspan(
        row.exponent - row.half_width, row.exponent + row.half_width, color=VERMILION, alpha=0.15, lw=0
    )
    axis.axhline(row.exponent, color=VERMILION, linewidth=0.9)
    axis.errorbar(
        np.arange(1, len(values) + 1),
        values[order],
        yerr=1.96 * np.nan_to_num(errors[order]),
        color=tint,
        linestyle="none",
        marker="o",
        markersize=2.6,
        elinewidth=0.8,
    )
    axis.set_title(f"λ{row.number}", loc="left")
    axis.set_xlabel("draws in order of size")


def _known(spectrum: Spectrum, k: int) -> tuple[Array, Array]:
    """Values and errors of one exponent, of the draws that gave some."""
    assert spectrum.draw_exponents is not None
    good = np.isfinite(spectrum.draw_exponents).all(axis=1)
    errors = (
        spectrum.draw_errors if spectrum.draw_errors is not None else np.zeros_like(spectrum.draw_exponents)
    )
    return spectrum.draw_exponents[good, k], errors[good, k]
