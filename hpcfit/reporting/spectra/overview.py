"""The one picture of a spectrum."""

from __future__ import annotations

from matplotlib.figure import Figure

from hpcfit.records import Spectrum
from hpcfit.reporting.layout import matched, number, running
from hpcfit.reporting.spectra import convergence, section_figure, spectrum_figure, stretches, summary
from hpcfit.reporting.style import INK, VERMILION, literal, styled

MOST_VALUES = 6


def overview(spectrum: Spectrum, title: str) -> Figure:
    """Convergence beside the spectrum, the section or the growth along the way; the values above."""
    with styled():
        text = running(_values(spectrum), 150)
        figure = Figure(figsize=(11.0, 6.9 + 0.18 * len(text)), layout="constrained")
        figure.suptitle(literal(title, 90), x=0.012, ha="left", fontsize=12, fontweight="bold")
        head, body = figure.subfigures(2, 1, height_ratios=(0.05 + 0.19 * len(text), 6.4))
        color = INK if spectrum.converged else VERMILION
        shown = "\n".join(literal(line, 170) for line in text)
        head.text(0.012, 1.0, shown, va="top", ha="left", fontsize=8.5, color=color, linespacing=1.4)
        left, right = body.subfigures(1, 2, width_ratios=(1.0, 1.0), wspace=0.03)
        if spectrum.history is not None and len(spectrum.history.times):
            convergence.draw_convergence(left, spectrum)
        upper, lower = right.subfigures(2, 1, height_ratios=(1.0, 1.55))
        spectrum_figure.draw_spectrum(upper, spectrum)
        if spectrum.section is not None and len(spectrum.section.points):
            section_figure.draw_section(lower.subplots(), spectrum, spectrum.section)
        elif summary.averaged(spectrum).any():
            stretches.draw_stretches(lower, lower.subplots(), spectrum)
        return figure


def _values(spectrum: Spectrum) -> list[str]:
    rows = summary.rows(spectrum)
    shown = [
        f"λ{row.number} = 0 (at most {number(row.bound, 2)})"
        if row.vanishes
        else f"λ{row.number} = {matched(row.exponent, row.error)} ± {number(row.error, 2)}"
        for row in rows[:MOST_VALUES]
    ]
    more = [f"{len(rows) - MOST_VALUES} more"] if len(rows) > MOST_VALUES else []
    dimension = f"D = {summary.with_error(spectrum.dimension, spectrum.dimension_error)}"
    lanes = f"{summary.lane_counts(spectrum)}, {spectrum.duration:,.10g} each"
    return [spectrum.outcome.value, lanes, *shown, *more, dimension]
