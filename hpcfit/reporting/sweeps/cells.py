"""The cells of the table of a sweep: one row for each cell of its grid."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles.coverage import binomial_band
from hpcfit.reporting.ensembles.members import outcomes
from hpcfit.reporting.layout import matched, number, signed
from hpcfit.reporting.sweeps import spectra
from hpcfit.reporting.sweeps.groups import LEVEL, Groups, by_cell, cell_values, shown_unknowns, value_text

MOST_UNKNOWNS = 3
MOST_CELLS = 10_000  # of JSON


def header(ensemble: EnsembleResult, names: list[str]) -> tuple[str, ...]:
    """Keys, success, work, and bias, spread and coverage of some unknowns."""
    of_each = [word for name in names for word in (f"{name} bias", "spread", "ratio", "95 %  ")]
    return (*ensemble.grid, "members", "converged", "work", *of_each)


def rows(
    ensemble: EnsembleResult, most: int = MOST_UNKNOWNS
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and one row a cell."""
    names = shown_unknowns(ensemble, most)
    groups = by_cell(ensemble, names)
    found = []
    for cell in range(len(groups.members)):
        keys = [value_text(value) for value in cell_values(ensemble.grid, cell)]
        found.append((*keys, *_success(groups, cell), *_unknown_cells(groups, cell)))
    return header(ensemble, names), found


def _success(groups: Groups, cell: int) -> tuple[str, ...]:
    count = int(groups.members[cell])
    rate = f"{100.0 * groups.success[cell]:.4g} %" if count else "–"
    return f"{count:,}", rate, number(groups.work[cell], 3)


def _unknown_cells(groups: Groups, cell: int) -> Iterator[str]:
    count = int(groups.converged[cell])
    for each in groups.unknowns:
        bias, chance, covered = each.bias[cell], each.chance[cell], each.covered[cell]
        yield signed_matched(bias, chance)
        yield number(each.spread[cell], 3)
        yield number(each.ratio[cell], 3)
        if np.isnan(covered):
            yield "–"
        else:
            low, high = binomial_band(count, LEVEL)
            yield f"{100.0 * covered:.1f}" + ("  " if low <= round(covered * count) <= high else " !")


def signed_matched(value: float, error: float) -> str:
    """A number with its sign and the digits that its error allows."""
    if np.isnan(value):
        return "–"
    if np.isnan(error):
        return signed(value)
    return ("+" if value >= 0.0 else "") + matched(value, 10.0 * error)


def note(ensemble: EnsembleResult) -> str:
    """What the columns are."""
    if ensemble.of == "lyapunov":
        return spectra.NOTE
    left = len(ensemble.parameter_names) - MOST_UNKNOWNS
    text = (
        "Over converged members. work: mean number of linearisations; bias: mean of estimate - truth; ratio: "
        "spread over predicted error, 1 if the errors are right; 95 %: single intervals that hold the truth, "
        "! is outside of what chance allows. All cells see the same noise."
    )
    return text + (f" {left:,} further parameters: show --json." if left > 0 else "")


def as_json(ensemble: EnsembleResult) -> list[dict[str, object]]:
    """All cells with the statistics of all unknowns."""
    groups = by_cell(ensemble, list(ensemble.names))
    found: list[dict[str, object]] = []
    for cell in range(min(len(groups.members), MOST_CELLS)):
        values = cell_values(ensemble.grid, cell)
        found.append(
            {
                "values": dict(zip(ensemble.grid, values, strict=True)),
                "members": int(groups.members[cell]),
                "converged": int(groups.converged[cell]),
                "mean_linearisations": float(groups.work[cell]),
                "unknowns": {
                    each.name: {
                        "bias": float(each.bias[cell]),
                        "bias_error": float(each.chance[cell]),
                        "spread": float(each.spread[cell]),
                        "error": float(each.error[cell]),
                        "coverage95": float(each.covered[cell]),
                    }
                    for each in groups.unknowns
                },
            }
        )
    return found


def failures(ensemble: EnsembleResult) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Why members failed, and in which cell most of them did."""
    found: list[tuple[str, ...]] = []
    cells = ensemble.cells
    ends = np.fromiter(ensemble.outcomes, dtype=object, count=len(ensemble.outcomes))
    for outcome, members in outcomes(ensemble).items():
        if outcome is ensemble.success:
            continue
        counts = np.bincount(cells[np.asarray(ends == outcome, dtype=bool)])
        worst = int(counts.argmax())
        where = ", ".join(
            f"{key} = {value_text(value)}"
            for key, value in zip(ensemble.grid, cell_values(ensemble.grid, worst), strict=True)
        )
        found.append(
            (outcome.value, f"{members:,}", f"{int((counts > 0).sum()):,}", f"{counts[worst]:,}", where)
        )
    return ("failed because", "members", "cells", "most", "in the cell"), found
