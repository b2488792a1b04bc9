"""A spectrum as a page for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np

from hpcfit.records import Spectrum
from hpcfit.reporting import textplot
from hpcfit.reporting.layout import (
    cut,
    number,
    plain,
    provenance_lines,
    shortened,
    table,
    visible,
)
from hpcfit.reporting.spectra import cells, summary

MOST_ROWS = 40
MOST_PLOTS = 4
MOST_ENDINGS = 8


def as_text(
    spectrum: Spectrum,
    provenance: Mapping[str, object],
    *,
    unicode: bool = True,
    width: int = 90,
    plots: bool = True,
) -> str:
    """The exponents with their errors, what follows from them, and whether they can be believed."""
    blocks = [_title(spectrum, width), _facts(spectrum, width), _exponents(spectrum)]
    blocks += [_notes(spectrum, width), _warnings(spectrum, width), _checks(spectrum)]
    blocks += [_trajectories(spectrum, width), _draws(spectrum)]
    if plots:
        blocks.append(_plots(spectrum, width, unicode))
    if provenance:
        blocks.append(provenance_lines(provenance, width))
    page = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return page if unicode else plain(page)


def _title(spectrum: Spectrum, width: int) -> list[str]:
    head = shortened(visible(spectrum.model), width - 22) + " · Lyapunov spectrum"
    mark = "• " if spectrum.converged else "! "
    ended = spectrum.outcome.value + (f": {spectrum.cause}" if spectrum.cause else "")
    return [head, "═" * len(head), *textwrap.wrap(visible(mark + ended), width, subsequent_indent="  ")]


def _facts(spectrum: Spectrum, width: int) -> list[str]:
    lines: list[str] = []
    for key, text in summary.facts(spectrum):
        lines += textwrap.wrap(f"{key:<22}  {text}", max(width, 40), subsequent_indent=" " * 24)
    return lines


def _exponents(spectrum: Spectrum) -> list[str]:
    rows = [(f"λ{row.number}", *cells.row_cells(row, spectrum)) for row in summary.rows(spectrum)]
    return table(("", *cells.HEADER), cut(rows, MOST_ROWS), left=(0, 6))


def _notes(spectrum: Spectrum, width: int) -> list[str]:
    return [line for text in cells.notes(spectrum) for line in textwrap.wrap(text, width)]


def _warnings(spectrum: Spectrum, width: int) -> list[str]:
    return [
        line
        for text in spectrum.warnings
        for line in textwrap.wrap(visible(f"! {text}"), width, subsequent_indent="  ")
    ]


def _checks(spectrum: Spectrum) -> list[str]:
    rows = [(each.name, *cells.check_cells(each)) for each in summary.checks(spectrum)]
    return table(("check", *cells.CHECK_HEADER), rows, left=(0, 3)) if rows else []


def _trajectories(spectrum: Spectrum, width: int) -> list[str]:
    """One by one where there are few; of many those that are not in the means."""
    if spectrum.trajectories == 1 and not spectrum.failures:
        return []
    rows = cells.trajectory_cells(spectrum)
    ends = cells.endings(spectrum)
    lines = table(cells.trajectory_header(spectrum), cut(rows, MOST_ROWS), left=(1,)) if rows else []
    for text in ends[:MOST_ENDINGS]:
        lines += textwrap.wrap(visible(text), width, subsequent_indent="  ")
    return lines + ([f"… {len(ends) - MOST_ENDINGS} more"] if len(ends) > MOST_ENDINGS else [])


def _draws(spectrum: Spectrum) -> list[str]:
    rows = cells.draw_cells(spectrum)
    return table(("draws", *cells.DRAW_HEADER), cut(rows, MOST_ROWS)) if rows else []


def _plots(spectrum: Spectrum, width: int, unicode: bool) -> list[str]:
    """Running exponents over the logarithm of time."""
    history = spectrum.history
    if history is None or len(history.times) < 3:
        return []
    lines: list[str] = []
    times = np.log10(history.times)
    late = times >= times[-1] - 3.0
    for k in range(min(len(spectrum.exponents), MOST_PLOTS)):
        values = history.exponents[late, k]
        finite = values[np.isfinite(values)]
        if not len(finite):
            continue
        drawn = textplot.curve(times[late], values, max(width - 22, 10), unicode=unicode, height=2)
        ends = (number(finite.max(), 4), number(finite.min(), 4))
        lines += [
            f"{label:<4}{row}  {end}" for label, row, end in zip((f"λ{k + 1}", ""), drawn, ends, strict=True)
        ]
    if lines:
        first = number(float(history.times[late][0]), 3)
        lines.append(f"    by time on a logarithmic scale, {first} to {number(float(history.times[-1]), 6)}")
    return lines
