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
from hpcfit.reporting.sweeps import cells as sweep_cells
from hpcfit.reporting.sweeps import costs, curves, maps, spectra
from hpcfit.reporting.sweeps.groups import chosen_keys

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
TABLES_AT = 1  # the statistics come before the figures
MOST_KEYS = 4  # of one figure
CURVE_CAPTION = (
    "Along each key of the grid, with all values of the other keys together. Left: the part that converged, "
    "with its 95 % interval. Middle: bias of the parameters in units of their error, with two standard "
    "errors. Right: their spread (line) and the error that the fits predict (rings)."
)
MAP_CAPTION = (
    "Over two keys of the grid, with all values of other keys together; grey: no converged member. Biases "
    "should be 0 and ratios 1: red is above, blue below."
)
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
    if ensemble.grid:
        return sweep_figures(ensemble)
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


def sweep_figures(ensemble: EnsembleResult) -> list[tuple[str, Figure]]:
    """Along every key of the grid, and over two of them."""
    if ensemble.of == "lyapunov":
        return spectra.figures(ensemble)
    keys = [key for key, values in ensemble.grid.items() if len(values) > 1]
    found = []
    if len(keys) > 1:
        found.append((MAP_CAPTION, maps.maps(ensemble, chosen_keys(ensemble))))
    for first in range(0, len(keys), MOST_KEYS):
        found.append((CURVE_CAPTION, curves.curves(ensemble, keys[first : first + MOST_KEYS])))
    return found


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
    spent = costs.rows(provenance, len(ensemble.members))
    if spent:
        blocks.append(table("Costs", ("what", "value"), spent, words=True))
    if ensemble.grid:
        blocks += _sweep_tables(ensemble)
    for group, title in TITLES.items() if not ensemble.grid else ():
        own = [(row.name, *cells.row_cells(row)) for row in rows if row.group == group]
        if own:
            blocks.append(table(title, ("name", *cells.ROW_HEADER), own))
    notes = [sweep_cells.note(ensemble) if ensemble.grid else cells.row_note(bool(ensemble.truth))]
    known = [(row.name, *cells.coverage_cells(row)) for row in rows if row.coverages and not ensemble.grid]
    if known:
        known.append(("band", *cells.band_cells(rows)))
        blocks.append(table("Coverage, per cent", ("name", *cells.COVERAGE_HEADER), known))
        notes.append(cells.coverage_note())
    if not ensemble.grid:
        notes.append(cells.chi_square_note())
    looked = [cells.worst_cells(each, provenance) for each in worst(ensemble)]
    if looked:
        blocks.append(table("Worst members", cells.WORST_HEADER, looked, left=cells.WORST_HEADER))
    note = "".join(f'<p class="quiet">{text}</p>\n' for text in notes)
    return f'<div class="tables">\n{"".join(blocks)}</div>\n{note}'


def _sweep_tables(ensemble: EnsembleResult) -> list[str]:
    """The cells, and where members failed."""
    header, rows = spectra.rows(ensemble) if ensemble.of == "lyapunov" else sweep_cells.rows(ensemble)
    found = [table("Cells of the grid", header, rows)]
    causes, failed = sweep_cells.failures(ensemble)
    return [*found, table("Failures", causes, failed, left=(causes[-1],))] if failed else found
