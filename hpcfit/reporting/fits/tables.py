"""A fit as JSON, as CSV, as a page of text; two fits compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from hpcfit.records import FitResult
from hpcfit.reporting.fits import summary
from hpcfit.reporting.fits.comparison import compare
from hpcfit.reporting.fits.selection import node_errors
from hpcfit.reporting.fits.terminal import as_text
from hpcfit.reporting.strict import csv_page, strict_page

__all__ = ["as_csv", "as_json", "as_text", "compare"]
MOST_CORRELATIONS = 200  # unknowns; of more only the parameters: the file holds all
HEADER = (
    *("name", "group", "estimate", "error", "confidence95_low", "confidence95_high"),
    *("joint95_low", "joint95_high", "guess", "truth", "deviation_in_errors", "unit"),
)


def as_json(fit: FitResult, provenance: Mapping[str, object]) -> dict[str, object]:
    """The numbers of a fit as strict JSON: what is not finite is null."""
    every = summary.rows(fit)
    rows = {group: [row for row in every if row.group == group] for group in summary.GROUPS}
    names = fit.unknowns.names if len(fit.unknowns.names) <= MOST_CORRELATIONS else fit.parameter_names
    page: dict[str, object] = {
        "kind": "fit",
        "model": fit.model,
        "outcome": fit.outcome.name,
        "outcome_text": fit.outcome.value,
        "cause": fit.cause,
        "converged": fit.converged,
        "iterations": fit.iterations,
        "linearisations": fit.linearisations,
        "objective": fit.objective,
        "degrees_of_freedom": fit.degrees_of_freedom,
        "beta2": fit.beta2,
        "gamma": fit.gamma,
        "parameters": {row.name: _entry(row) for row in rows["parameter"]},
        "initial_states": {row.name: _entry(row) for row in rows["initial state"]},
        "derived": {row.name: _entry(row) for row in rows["derived"]},
        "correlations": {"names": names, "matrix": fit.unknowns.part(names).correlations},
        "covariance": {"names": fit.parameter_names, "matrix": fit.covariance},
        "constraints": [asdict(each) | {"pull": each.pull} for each in fit.constraints],
        "at_bounds": fit.at_bounds,
        "noise_levels": {
            name: {"value": value, "error": fit.noise_level_errors[name]}
            for name, value in fit.noise_levels.items()
        },
        "time_shifts": fit.time_shifts,
        "node_errors": node_errors(fit),
        "history": [asdict(iteration) for iteration in fit.history],
        "timings": {"solve": fit.seconds},
        "provenance": provenance,
    }
    return strict_page(page)


def _entry(row: summary.Row) -> dict[str, object]:
    entry: dict[str, object] = {
        "estimate": row.estimate,
        "error": row.error,
        "confidence95": row.interval(row.single),
        "joint95": row.interval(row.joint),
        "guess": row.guess,
    }
    return entry | ({"truth": row.truth} if row.truth == row.truth else {})


def as_csv(fit: FitResult) -> str:
    """One row an estimate, with all digits."""
    rows = (
        (
            row.name,
            row.group,
            row.estimate,
            row.error,
            *row.interval(row.single),
            *row.interval(row.joint),
            row.guess,
            row.truth,
            row.deviation,
            row.unit,
        )
        for row in summary.rows(fit)
    )
    return csv_page(HEADER, rows)
