"""A fit as a page for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np

from hpcfit.records import FitResult
from hpcfit.reporting import textplot
from hpcfit.reporting.fits import selection, summary
from hpcfit.reporting.layout import (
    cut,
    matched,
    number,
    plain,
    provenance_lines,
    running,
    shortened,
    signed,
    table,
    visible,
)

MOST_ROWS = 40  # of one group of estimates
LAST_ITERATIONS = 8
HEADER = ("estimate", "error", "single 95 %", "joint 95 %", "guess", "truth", "off", "unit")


def as_text(
    fit: FitResult,
    provenance: Mapping[str, object],
    *,
    unicode: bool = True,
    width: int = 90,
    plots: bool = True,
) -> str:
    """What was fitted, how it ended, the estimates and the way to them."""
    blocks = [_title(fit, width), _facts(fit, width), *_estimates(fit), _correlations(fit, width)]
    blocks += [*_digests(fit), _history(fit)]
    if plots:
        blocks.append(_plot(fit, width, unicode))
    if provenance:
        blocks.append(provenance_lines(provenance, width))
    page = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return page if unicode else plain(page)


def _title(fit: FitResult, width: int) -> list[str]:
    head = shortened(visible(fit.model), width - 12) + " · fit"
    mark = "• " if fit.converged else "! "
    ended = textwrap.wrap(visible(mark + summary.status(fit)), width, subsequent_indent="  ")
    return [head, "═" * len(head), *ended]


def _facts(fit: FitResult, width: int) -> list[str]:
    lines: list[str] = []
    for key, text in summary.facts(fit):
        lines += textwrap.wrap(f"{key:<18}  {text}", max(width, 40), subsequent_indent=" " * 20)
    return lines


def _estimates(fit: FitResult) -> list[list[str]]:
    """One table of all estimates, and what its columns are."""
    rows: list[tuple[str, ...]] = []
    for part in selection.parts(fit):
        own = [_row(row) for row in part.rows]
        rows += [(part.group + part.remark, *("" for _ in HEADER)), *cut(own, MOST_ROWS)]
    notes = [f"half widths: single {number(fit.t95, 4)} errors, joint {number(fit.gamma, 4)} errors"]
    if fit.truth:
        notes[0] += "; off: (estimate - truth) / error"
    if fit.fixed:
        fixed = [f"{visible(name)} = {number(value)}" for name, value in fit.fixed.items()]
        notes += running(fixed, 90, "fixed: ")
    if some := selection.left_out(fit):
        notes.insert(0, some)
    return [table(("", *HEADER), rows, left=(0, 8)), notes]


def _digests(fit: FitResult) -> list[list[str]]:
    return [[title, *table(header, rows)] for title, header, rows in selection.digests(fit)]


def _row(row: summary.Row) -> tuple[str, ...]:
    return (
        "  " + shortened(row.name, 16),
        matched(row.estimate, row.error),
        number(row.error, 3),
        number(row.single, 3),
        number(row.joint, 3),
        "" if np.isnan(row.guess) else number(row.guess, 4),
        "" if np.isnan(row.truth) else number(row.truth, 6),
        "" if np.isnan(row.deviation) else signed(row.deviation),
        row.unit,
    )


def _correlations(fit: FitResult, width: int) -> list[str]:
    pairs = [f"{first} {second} {signed(value, 3)}" for first, second, value in summary.strongest(fit)]
    return running(map(visible, pairs), width, "strongest correlations: ") if pairs else []


def _history(fit: FitResult) -> list[str]:
    first = max(len(fit.history) - LAST_ITERATIONS, 0)
    rows = [
        (
            str(k + 1),
            each.phase,
            number(each.objective, 8),
            f"{each.defect:.1e}",
            f"{each.increment:.1e}",
            number(each.damping, 3),
            str(each.rank),
        )
        for k, each in enumerate(fit.history[first:], first)
    ]
    head = ("step", "phase", "objective", "defect", "increment", "damping", "rank")
    return table(head, rows, left=(1,)) if rows else []


def _plot(fit: FitResult, width: int, unicode: bool) -> list[str]:
    """log10 of the increment, one column a step."""
    size = np.array([each.increment for each in fit.history])
    with np.errstate(divide="ignore", invalid="ignore"):
        height = np.where(size > 0.0, np.log10(size), np.nan)
    finite = height[np.isfinite(height)]
    if len(finite) < 2:
        return []
    room = min(max(2 * len(height), 24), width - 34)
    drawn = textplot.curve(np.arange(len(height), dtype=float), height, room, unicode=unicode, height=3)
    labels = ("log10 increment", f"by step, 1 to {len(height)}", "")
    ends = (number(finite.max(), 3), "", number(finite.min(), 3))
    return [
        f"{label:<20}  {row}  {end}".rstrip() for label, row, end in zip(labels, drawn, ends, strict=True)
    ]
