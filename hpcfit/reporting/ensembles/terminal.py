"""An ensemble as a page for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.layout import (
    cut,
    matched,
    number,
    plain,
    provenance_lines,
    shortened,
    signed,
    table,
    visible,
)

MOST_ROWS = 40
HEADER = ("mean", "truth", "bias", "spread", "mean error", "ratio", "coverage", "unit")


def as_text(
    ensemble: EnsembleResult,
    provenance: Mapping[str, object],
    *,
    unicode: bool = True,
    width: int = 90,
    plots: bool = True,
) -> str:
    """How many members ended how, and what they say of each unknown; `plots` is for other kinds."""
    head = shortened(visible(ensemble.model), width - 16) + " · ensemble"
    facts = [f"{key:<18}  {text}" for key, text in summary.facts(ensemble)]
    ends = [(outcome.value, f"{count:,}") for outcome, count in summary.outcomes(ensemble).items()]
    blocks = [[head, "═" * len(head)], facts]
    blocks += [table(("outcome", "members"), ends), _unknowns(ensemble), _notes(ensemble)]
    if provenance:
        blocks.append(provenance_lines(provenance, width))
    page = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return page if unicode else plain(page)


def row_texts(row: summary.Row) -> tuple[str, ...]:
    """The cells of one unknown, as under HEADER."""
    return (
        matched(row.mean, row.spread),
        "" if np.isnan(row.truth) else number(row.truth, 6),
        "" if np.isnan(row.bias) else signed(row.bias),
        number(row.spread, 3),
        number(row.error, 3),
        number(row.ratio, 3),
        "" if np.isnan(row.coverage) else f"{100.0 * row.coverage:.1f} %",
        row.unit,
    )


def _unknowns(ensemble: EnsembleResult) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for group in ("parameter", "initial state"):
        own = [
            ("  " + shortened(row.name, 16), *row_texts(row))
            for row in summary.rows(ensemble)
            if row.group == group
        ]
        if own:
            rows += [(group, *("" for _ in HEADER)), *cut(own, MOST_ROWS)]
    return table(("", *HEADER), rows, left=(0, 8))


def _notes(ensemble: EnsembleResult) -> list[str]:
    """What the columns are."""
    lines = ["over converged members; ratio: spread / mean error"]
    if ensemble.truth:
        lines[0] += "; bias: (mean - truth) / (spread / sqrt(members))"
        count = int(summary.good(ensemble).sum())
        chance = 100.0 * np.sqrt(0.95 * 0.05 / count) if count else np.nan
        lines.append(f"coverage: of single 95 % intervals; chance makes it vary by {number(chance, 2)} %")
    return lines
