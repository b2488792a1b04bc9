"""An ensemble as a page for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import cells, summary
from hpcfit.reporting.ensembles.chi_square import chi_square_test
from hpcfit.reporting.ensembles.worst import worst
from hpcfit.reporting.layout import cut, plain, provenance_lines, shortened, table, visible
from hpcfit.reporting.sweeps import cells as sweep_cells
from hpcfit.reporting.sweeps import costs, spectra

MOST_ROWS = 40  # of one group of unknowns


def as_text(
    ensemble: EnsembleResult,
    provenance: Mapping[str, object],
    *,
    unicode: bool = True,
    width: int = 90,
    plots: bool = True,
) -> str:
    """How many members ended how, what they say of each unknown, and which deserve a look."""
    head = shortened(visible(ensemble.model), width - 16) + " · ensemble"
    test, rows = chi_square_test(ensemble), summary.rows(ensemble)
    facts = [f"{key:<18}  {text}" for key, text in summary.facts(ensemble, test)]
    ends = table(cells.SUCCESS_HEADER, cells.success_cells(ensemble, test))
    spent = [f"{what:<18}  {value}" for what, value in costs.rows(provenance, len(ensemble.members))]
    cell_by_cell = _cells(ensemble, width) if ensemble.grid else [_unknowns(rows), _coverage(rows)]
    blocks = [[head, "═" * len(head)], facts, ends, spent, *cell_by_cell]
    blocks.append(_notes(ensemble, rows, width))
    blocks.append(_worst(ensemble, provenance, width))
    if provenance:
        blocks.append(provenance_lines(costs.without_campaign(provenance), width))
    page = "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
    return page if unicode else plain(page)


def _unknowns(rows: Sequence[summary.Row]) -> list[str]:
    lines: list[tuple[str, ...]] = []
    for group in ("parameter", "initial state"):
        own = [("  " + shortened(row.name, 16), *cells.row_cells(row)) for row in rows if row.group == group]
        if own:
            lines += [(group, *("" for _ in cells.ROW_HEADER)), *cut(own, MOST_ROWS)]
    return table(("", *cells.ROW_HEADER), lines, left=(0, 7))


def _coverage(rows: Sequence[summary.Row]) -> list[str]:
    """The unknowns whose truth is known, and below them what chance allows."""
    own = [(shortened(row.name, 18), *cells.coverage_cells(row)) for row in rows if row.coverages]
    if not own:
        return []
    header = ("coverage", *(f"{level}  " for level in cells.COVERAGE_HEADER))
    return table(header, [*cut(own, MOST_ROWS), ("band", *cells.band_cells(rows))])


def _worst(ensemble: EnsembleResult, provenance: Mapping[str, object], width: int) -> list[str]:
    """Commands stand beside the members, or below them if they are long: they are never cut."""
    rows = [cells.worst_cells(each, provenance) for each in worst(ensemble)]
    if not rows:
        return []
    header = ("worst", *cells.WORST_HEADER[1:])
    lines = table(header, rows, left=(1, 2))
    if max(map(len, lines)) <= width:
        return lines
    return [*table(header[:2], [row[:2] for row in rows], left=(1,)), "", *(visible(row[2]) for row in rows)]


def _cells(ensemble: EnsembleResult, width: int) -> list[list[str]]:
    """One row a cell, with as many unknowns as the width allows, and where members failed."""
    for most in range(sweep_cells.MOST_UNKNOWNS, -1, -1):
        of_spectra = ensemble.of == "lyapunov"
        header, rows = spectra.rows(ensemble) if of_spectra else sweep_cells.rows(ensemble, most)
        lines = table(header, cut(rows, MOST_ROWS), left=range(len(ensemble.grid)))
        if max(map(len, lines)) <= max(width, 110):
            break
    causes, failed = sweep_cells.failures(ensemble)
    return [lines, table(causes, failed, left=(0, 4)) if failed else []]


def _notes(ensemble: EnsembleResult, rows: Sequence[summary.Row], width: int) -> list[str]:
    """What the columns are."""
    if ensemble.grid:
        return textwrap.wrap(sweep_cells.note(ensemble), width)
    known = any(row.coverages for row in rows)
    texts = [cells.row_note(known), *([cells.coverage_note()] if known else [])]
    return [line for text in (*texts, cells.chi_square_note()) for line in textwrap.wrap(text, width)]
