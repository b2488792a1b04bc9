"""What a page says of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import cells, summary
from hpcfit.reporting.ensembles import figures as pictures
from hpcfit.reporting.ensembles.chi_square import BAND, chi_square_test
from hpcfit.reporting.ensembles.chi_square_figure import chi_square
from hpcfit.reporting.ensembles.coverage_figure import coverage, shown_rows
from hpcfit.reporting.ensembles.members import good
from hpcfit.reporting.ensembles.overview import overview
from hpcfit.reporting.ensembles.worst import worst
from hpcfit.reporting.html import table

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
TABLES_AT = 1  # the statistics come before the figures
TITLES = {"parameter": "Parameters", "initial state": "Initial states"}
CHI_SQUARE_CAPTION = (
    "Left: objective at the solution over the converged members, and the chi-square density (black). Right: "
    "the part of the members below each chi-square probability; correct fits follow the diagonal, and stay "
    f"within the band (Kolmogorov and Smirnov) in {100.0 * BAND:g} % of all ensembles; below, their distance "
    "from it. Noise that is cut off, say drawn again beyond 3 sigma, is smaller than its nominal standard "
    "deviation (0.987 of it at 3 sigma) and shows as such: objectives are small, and the line leaves the "
    "band when there are many members."
)


def facts(ensemble: EnsembleResult) -> list[tuple[str, str]]:
    """What stands at the head of the page."""
    found = [(key[:1].upper() + key[1:], text) for key, text in summary.facts(ensemble)]
    return [("Model", ensemble.model), *found]


def figures(ensemble: EnsembleResult) -> list[tuple[str, Figure]]:
    """The figures with their captions."""
    if not good(ensemble).any():
        return []
    found = []
    for parameters, word in ((True, "parameters"), (False, "initial states")):
        names = pictures.shown_names(ensemble, parameters=parameters)
        if names:
            what = "their deviations from the truth in units of their own errors" if ensemble.truth else "all"
            text = f"Estimates of the {word}: {what}; the red line is the mean."
            text += " Black: normal density." if ensemble.truth else ""
            found.append((text, pictures.estimates(ensemble, parameters=parameters)))
    rows = shown_rows(ensemble)
    if rows:
        found.append((_coverage_caption(len(rows), len(ensemble.truth)), coverage(rows)))
    return [*found, (CHI_SQUARE_CAPTION, chi_square(ensemble))]


def _coverage_caption(shown: int, total: int) -> str:
    text = (
        "Coverage of the single intervals of each unknown: how many hold the truth, minus how many should. "
        f"Light blue: where chance keeps correct intervals in {100.0 * BAND:g} % of all ensembles of this "
        "size; red: outside, triangles: beyond the axis."
    )
    return text + (f" {shown} of {total:,} unknowns are shown." if shown < total else "")


def tables(ensemble: EnsembleResult, provenance: Mapping[str, object]) -> str:
    """Statistics of the unknowns, the outcomes, and the members that deserve a look."""
    rows, test = summary.rows(ensemble), chi_square_test(ensemble)
    blocks = [table("Outcomes", cells.SUCCESS_HEADER, cells.success_cells(ensemble, test))]
    for group, title in TITLES.items():
        own = [(row.name, *cells.row_cells(row)) for row in rows if row.group == group]
        if own:
            blocks.append(table(title, ("name", *cells.ROW_HEADER), own))
    notes = [cells.row_note(bool(ensemble.truth))]
    known = [(row.name, *cells.coverage_cells(row)) for row in rows if row.coverages]
    if known:
        known.append(("band", *cells.band_cells(rows)))
        blocks.append(table("Coverage, per cent", ("name", *cells.COVERAGE_HEADER), known))
        notes.append(cells.coverage_note())
    looked = [cells.worst_cells(each, provenance) for each in worst(ensemble)]
    if looked:
        blocks.append(table("Worst members", cells.WORST_HEADER, looked, left=cells.WORST_HEADER))
    note = "".join(f'<p class="quiet">{text}</p>\n' for text in (*notes, cells.chi_square_note()))
    return f'<div class="tables">\n{"".join(blocks)}</div>\n{note}'
