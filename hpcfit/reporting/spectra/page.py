"""What a page says of a spectrum."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Spectrum
from hpcfit.reporting.html import table
from hpcfit.reporting.spectra import cells, summary
from hpcfit.reporting.spectra.colours import MOST_HUES
from hpcfit.reporting.spectra.convergence import convergence
from hpcfit.reporting.spectra.draws_figure import draws_figure
from hpcfit.reporting.spectra.overview import overview
from hpcfit.reporting.spectra.section_figure import section_figure
from hpcfit.reporting.spectra.spectrum_figure import spectrum_figure
from hpcfit.reporting.spectra.stretches import MOST_REGULAR, regular_figure, stretches

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
MOST_ENDINGS = 40
DRAWS_CAPTION = (
    "Exponents at values drawn from the covariance of the fit, against those of the estimate "
    "(red): how much the data leave open."
)
TABLES_AT = 1  # the exponents come before the figures


def facts(spectrum: Spectrum) -> list[tuple[str, str]]:
    """What stands at the head of the page."""
    found = [(key[:1].upper() + key[1:], text) for key, text in summary.facts(spectrum)]
    return [("Model", spectrum.model), *found]


def figures(spectrum: Spectrum) -> list[tuple[str, Figure]]:
    """The figures with their captions."""
    found = []
    if spectrum.history is not None and len(spectrum.history.times):
        found.append((_convergence_caption(spectrum), convergence(spectrum)))
    if np.isfinite(spectrum.exponents).all():
        found.append((_spectrum_caption(spectrum), spectrum_figure(spectrum)))
    if spectrum.section is not None and len(spectrum.section.points):
        found.append((_section_caption(spectrum), section_figure(spectrum)))
    if summary.averaged(spectrum).any() and spectrum.growth.shape[1]:
        text = (
            "Growth of the first direction in stretches of time. Where it stays far from its mean for long, "
            "the orbit sticks to a region."
        )
        found.append((text, stretches(spectrum)))
    if len(summary.drawn(spectrum)) > 1:
        found.append((DRAWS_CAPTION, draws_figure(spectrum)))
    calm = int(spectrum.regular.sum())
    if calm:
        some = f" {MOST_REGULAR} of {calm:,} are shown." if calm > MOST_REGULAR else ""
        text = f"Regular trajectories: their largest exponent falls like ln t / t.{some}"
        found.append((text, regular_figure(spectrum)))
    return found


def _convergence_caption(spectrum: Spectrum) -> str:
    if len(spectrum.exponents) > MOST_HUES:
        return "Running exponents over time, from the first (dark) to the last (bright)."
    text = "Running exponents over time with their 95 % bands, and their last values (grey)."
    if spectrum.hamiltonian and summary.whole(spectrum):
        text += " The others are their mirror images."
    if spectrum.zeros:
        text += " Below: moduli of the exponents that vanish; growth like that of time is the line ln t / t."
    return text


def _spectrum_caption(spectrum: Spectrum) -> str:
    text = "Left: the exponents with their 95 % intervals"
    text += "; rings vanish. " if spectrum.zeros else ". "
    return text + "Right: sums of the first exponents; the Kaplan-Yorke dimension is where they pass zero."


def _section_caption(spectrum: Spectrum) -> str:
    section = spectrum.section
    assert section is not None
    if spectrum.kind == "map":
        return f"Iterates of {len(np.unique(section.trajectories)):,} trajectories."
    text = f"Poincaré section at {section.surface} = 0."
    return text + (" Red: the border of what the energy permits." if len(section.border) else "")


def tables(spectrum: Spectrum, provenance: Mapping[str, object]) -> str:
    """Exponents, diagnostics and trajectories; `provenance` is for other kinds."""
    rows = [(f"λ{row.number}", *cells.row_cells(row, spectrum)) for row in summary.rows(spectrum)]
    blocks = [table("Exponents", ("name", *cells.HEADER), rows, left=("remark",))]
    found = [(check.name, *cells.check_cells(check)) for check in summary.checks(spectrum)]
    if found:
        blocks.append(table("Diagnostics", ("check", *cells.CHECK_HEADER), found, left=("remark",)))
    lanes = cells.trajectory_cells(spectrum)
    if lanes and (spectrum.trajectories > 1 or spectrum.failures):
        header = cells.trajectory_header(spectrum)
        title = (
            "Trajectories" if len(lanes) == summary.own(spectrum).sum() else "Trajectories not in the means"
        )
        blocks.append(table(title, header, lanes, left=("kind",)))
    drawn = cells.draw_cells(spectrum)
    if drawn:
        blocks.append(table("Draws from the covariance of the fit", ("name", *cells.DRAW_HEADER), drawn))
    values = [
        (name, number) for name, number in zip(spectrum.parameter_names, _parameters(spectrum), strict=True)
    ]
    if values:
        blocks.append(table("Parameters", ("name", "value"), values))
    warned = "".join(f"<p><strong>{escape(text)}.</strong></p>\n" for text in spectrum.warnings)
    texts = [*cells.endings(spectrum)[:MOST_ENDINGS], *cells.notes(spectrum)]
    note = "".join(f'<p class="quiet">{escape(text)}</p>\n' for text in texts)
    return f'{warned}<div class="tables">\n{"".join(blocks)}</div>\n{note}'


def _parameters(spectrum: Spectrum) -> list[str]:
    """One value, or the range over the trajectories."""
    low, high = spectrum.parameters.min(axis=0), spectrum.parameters.max(axis=0)
    return [f"{a:.10g}" if a == b else f"{a:.6g} to {b:.6g}" for a, b in zip(low, high, strict=True)]
