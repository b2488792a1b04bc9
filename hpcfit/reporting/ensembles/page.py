"""What a page says of an ensemble."""

from __future__ import annotations

from matplotlib.figure import Figure

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import figures as pictures
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.ensembles.terminal import HEADER, row_texts
from hpcfit.reporting.html import table
from hpcfit.reporting.style import literal, styled

__all__ = ["TABLES_AT", "facts", "figures", "overview", "tables"]
TABLES_AT = 1  # the statistics come before the figures
TITLES = {"parameter": "Parameters", "initial state": "Initial states"}


def facts(ensemble: EnsembleResult) -> list[tuple[str, str]]:
    """What stands at the head of the page."""
    found = [(key[:1].upper() + key[1:], text) for key, text in summary.facts(ensemble)]
    return [("Model", ensemble.model), *found]


def figures(ensemble: EnsembleResult) -> list[tuple[str, Figure]]:
    """The figures with their captions."""
    if not summary.good(ensemble).any():
        return []
    found = []
    for parameters, word in ((True, "parameters"), (False, "initial states")):
        names = pictures.shown_names(ensemble, parameters=parameters)
        if names:
            what = "their deviations from the truth in units of their own errors" if ensemble.truth else "all"
            text = f"Estimates of the {word}: {what}; the red line is the mean."
            text += " Black: normal density." if ensemble.truth else ""
            found.append((text, pictures.estimates(ensemble, parameters=parameters)))
    found.append(("Objective at the solution over the members.", pictures.chi_square(ensemble)))
    return found


def tables(ensemble: EnsembleResult) -> str:
    """Statistics of the unknowns, and the outcomes."""
    blocks = []
    for group, title in TITLES.items():
        rows = [(row.name, *row_texts(row)) for row in summary.rows(ensemble) if row.group == group]
        if rows:
            blocks.append(table(title, ("name", *HEADER), rows))
    ends = [(outcome.value, f"{count:,}") for outcome, count in summary.outcomes(ensemble).items()]
    blocks.append(table("Outcomes", ("outcome", "members"), ends))
    note = (
        '<p class="quiet">Over converged members. Bias: (mean - truth) in standard errors of the mean. '
        "Ratio: spread of the estimates / mean of their errors. Coverage: of single 95 % intervals.</p>"
    )
    return f'<div class="tables">\n{"".join(blocks)}</div>\n{note}'


def overview(ensemble: EnsembleResult, title: str) -> Figure:
    """Histograms of the parameters above those of the objective and of the work."""
    with styled():
        names = pictures.shown_names(ensemble, parameters=True)
        names = names or pictures.shown_names(ensemble, parameters=False)
        rows = -(-max(len(names), 1) // pictures.COLUMNS)
        figure = Figure(figsize=(9.0, 3.1 + 2.1 * rows), layout="constrained")
        figure.suptitle(literal(title, 90), x=0.012, ha="left", fontsize=12, fontweight="bold")
        upper, lower = figure.subfigures(2, 1, height_ratios=(2.1 * rows, 2.6))
        pictures.draw_estimates(upper, ensemble, names)
        left, right = lower.subplots(1, 2)
        pictures.draw_chi_square(left, ensemble)
        pictures.iterations(right, ensemble)
        return figure
