"""An ensemble as JSON, as CSV, as a page of text; two ensembles compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from hpcfit.records import EnsembleResult
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.ensembles.chi_square import ChiSquareTest, chi_square_test, probabilities
from hpcfit.reporting.ensembles.comparison import compare
from hpcfit.reporting.ensembles.coverage import Coverage
from hpcfit.reporting.ensembles.members import good, outcomes
from hpcfit.reporting.ensembles.terminal import as_text
from hpcfit.reporting.ensembles.worst import Worst, rerun, worst
from hpcfit.reporting.strict import csv_page, strict_page
from hpcfit.reporting.sweeps import cells as sweep_cells
from hpcfit.reporting.sweeps.groups import value_text

__all__ = ["as_csv", "as_json", "as_text", "compare"]
OF_MEMBERS = ("iterations", "linearisations", "objective", "degrees_of_freedom")


def as_json(ensemble: EnsembleResult, provenance: Mapping[str, object]) -> dict[str, object]:
    """The statistics of an ensemble as strict JSON: what is not finite is null."""
    rows, picked, test = summary.rows(ensemble), good(ensemble), chi_square_test(ensemble)
    page: dict[str, object] = {
        "kind": "ensemble",
        "model": ensemble.model,
        "members": len(ensemble.members),
        "converged": ensemble.converged,
        "outcomes": {outcome.name: count for outcome, count in outcomes(ensemble).items()},
        "median_iterations": summary.median(ensemble.iterations[picked]),
        "median_linearisations": summary.median(ensemble.linearisations[picked]),
        "mean_beta2": test.beta2,
        "chi_square": _test(test),
        "parameters": {row.name: _entry(row) for row in rows if row.group == "parameter"},
        "initial_states": {row.name: _entry(row) for row in rows if row.group == "initial state"},
        **({"grid": dict(ensemble.grid), "cells": sweep_cells.as_json(ensemble)} if ensemble.grid else {}),
        "worst": [_worst(each, provenance) for each in worst(ensemble)],
        "seed": ensemble.seed,
        "timings": {"solve": ensemble.seconds},
        "provenance": provenance,
    }
    return strict_page(page)


def _test(test: ChiSquareTest) -> dict[str, object]:
    return {
        "members": test.members,
        "implausible": test.implausible,
        "mean_beta2": test.beta2,
        "mean_beta2_chance": test.chance,
        "kolmogorov_smirnov": {"distance": test.distance, "probability": test.probability},
    }


def _entry(row: summary.Row) -> dict[str, object]:
    entry: dict[str, object] = {
        "mean": row.mean,
        "spread": row.spread,
        "mean_error": row.error,
        "ratio": row.ratio,
        "ratio_chance": row.chance,
    }
    if row.truth == row.truth:
        entry |= {"truth": row.truth, "bias_in_standard_errors": row.bias, "coverage95": row.coverage95}
        entry["coverage"] = {f"{100.0 * each.level:g}": _coverage(each) for each in row.coverages}
    return entry


def _coverage(each: Coverage) -> dict[str, object]:
    return {
        "observed": each.observed,
        "low": each.part(each.low),
        "high": each.part(each.high),
        "outside": each.outside,
        "members": each.members,
    }


def _worst(each: Worst, provenance: Mapping[str, object]) -> dict[str, object]:
    return {
        "member": each.member,
        "outcome": each.outcome.name,
        "measure": each.measure,
        "value": each.value,
        "unknown": each.name or None,
        "command": rerun(provenance, each.member),
    }


def as_csv(ensemble: EnsembleResult) -> str:
    """One row a member, with all digits."""
    pairs = [text for name in ensemble.names for text in (name, f"{name}_error")]
    header = ["member", *ensemble.grid, "outcome", *OF_MEMBERS, "chi_square_probability", *pairs]
    return csv_page(header, _members(ensemble))


def _members(ensemble: EnsembleResult) -> Iterator[list[object]]:
    columns = [getattr(ensemble, name).tolist() for name in OF_MEMBERS]
    columns.append(probabilities(ensemble).tolist())
    cell_of = ensemble.cells.tolist()
    values = [list(map(value_text, cell)) for cell in product(*ensemble.grid.values())]
    estimates, errors = ensemble.estimates.tolist(), ensemble.errors.tolist()
    for m, (member, outcome) in enumerate(zip(ensemble.members.tolist(), ensemble.outcomes, strict=True)):
        pairs = [entry for pair in zip(estimates[m], errors[m], strict=True) for entry in pair]
        yield [member, *values[cell_of[m]], outcome.name, *(column[m] for column in columns), *pairs]
