"""Fits in result files.

Groups: unknowns, derived (values, errors, covariance); experiments/1, 2, ... (times, values, sigma,
sigma_t, time_shifts, residuals); nodes (times, experiments, states, errors); initial, final (pieces of the
path); history (one array a column); constraints, where there are any (one array a column), with their
multipliers in history.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hpcfit.files.hdf5 import columns, names_of, put, put_attributes, reserve, texts
from hpcfit.files.series import get_series
from hpcfit.records import Array, Constraint, Estimates, FitResult, Iteration, Outcome, Pieces

CHUNK = 1 << 14  # rows that are compressed together, where ranks write their own
_KINDS = {"str": np.str_, "float": np.float64, "int": np.int64, "bool": np.bool_}
_NUMBERS: dict[str, Any] = {
    "objective": float,
    "degrees_of_freedom": int,
    "sigma_known": bool,
    "gamma": float,
    "t95": float,
    "iterations": int,
    "linearisations": int,
    "seconds": float,
    "member": int,
}
_BY_NAME = {
    "fixed": "parameters that were not fitted",
    "guess": "where the parameters began",
    "weights": "by observed quantity; 0 = not considered",
    "truth": "of unknowns and derived quantities, where it is known",
    "noise_levels": "estimated: sigma, or factors of it where it is stated",
    "noise_level_errors": "standard errors",
}
_LATER = ("noise_levels", "noise_level_errors")  # not in files of the first versions
_COLUMNS = {part.name: part.type for part in fields(Iteration) if part.name != "multipliers"}
_OF_CONSTRAINTS = {part.name: part.type for part in fields(Constraint)}


def put_fit(file: Any, fit: FitResult) -> None:
    """The attributes and arrays of a fit."""
    units = fit.units
    put_attributes(
        file,
        {
            "model": fit.model,
            "outcome": fit.outcome.name,
            "outcome_text": fit.outcome.value,
            "cause": fit.cause,
            "solver": fit.solver,
            "n_experiments": len(fit.experiments),
            "seed": -1 if fit.seed is None else fit.seed,
            "units": json.dumps(dict(units)),
            "state_names": list(fit.state_names) or "",
            "parameter_names": list(fit.parameter_names) or "",
            "strategy": list(fit.strategy) or "",
            **{name: getattr(fit, name) for name in _NUMBERS},
        },
    )
    for name, note in _BY_NAME.items():
        _put_by_name(file, name, getattr(fit, name), units, note)
    _put_estimates(file.create_group("unknowns"), fit.unknowns, units)
    _put_estimates(file.create_group("derived"), fit.derived, units)
    _put_rows(file, fit)
    _put_pieces(file.create_group("initial"), fit.initial, fit)
    _put_pieces(file.create_group("final"), fit.final, fit)
    _put_history(file.create_group("history"), fit.history)
    if fit.constraints:
        _put_constraints(file, fit)
    if fit.solver_log:
        file["solver_log"] = fit.solver_log


def get_fit(file: Any) -> FitResult:
    """The fit that a file holds."""
    seed, nodes = int(file.attrs["seed"]), file["nodes"]
    by_name: dict[str, Any] = {
        name: _get_by_name(file, name) for name in _BY_NAME if name in file or name not in _LATER
    }
    numbers: dict[str, Any] = {name: kind(file.attrs[name]) for name, kind in _NUMBERS.items()}
    experiments = [file["experiments"][str(e + 1)] for e in range(int(file.attrs["n_experiments"]))]
    return FitResult(
        model=str(file.attrs["model"]),
        state_names=_listed(file.attrs["state_names"]),
        parameter_names=_listed(file.attrs["parameter_names"]),
        outcome=Outcome[str(file.attrs["outcome"])],
        cause=str(file.attrs["cause"]),
        unknowns=_get_estimates(file["unknowns"]),
        derived=_get_estimates(file["derived"]),
        experiments=tuple(get_series(group) for group in experiments),
        residuals=tuple(group["residuals"][()] for group in experiments),
        time_shifts=tuple(group["time_shifts"][()] for group in experiments if "time_shifts" in group),
        node_times=nodes["times"][()],
        node_experiments=nodes["experiments"][()],
        nodes=nodes["states"][()],
        node_errors=nodes["errors"][()],
        initial=_get_pieces(file["initial"]),
        final=_get_pieces(file["final"]),
        history=_get_history(file["history"]),
        constraints=_get_constraints(file["constraints"]) if "constraints" in file else (),
        solver=str(file.attrs["solver"]),
        solver_log=file["solver_log"].asstr()[()] if "solver_log" in file else "",
        units=json.loads(file.attrs["units"]),
        seed=None if seed < 0 else seed,
        strategy=_listed(file.attrs.get("strategy", "")),
        **by_name,
        **numbers,
    )


def _listed(names: Any) -> tuple[str, ...]:
    return () if isinstance(names, str) else tuple(str(name) for name in names)


def _put_by_name(
    group: Any, name: str, values: Mapping[str, float], units: Mapping[str, str], note: str
) -> None:
    names, numbers = tuple(values), np.array([float(value) for value in values.values()])
    put(group, name, numbers, dims=("name",), **columns(names, units), note=note)


def _get_by_name(group: Any, name: str) -> dict[str, float]:
    return dict(zip(names_of(group[name]), group[name][()].tolist(), strict=True))


def _put_estimates(group: Any, estimates: Estimates, units: Mapping[str, str]) -> None:
    of_each = columns(estimates.names, units)
    put(group, "values", estimates.values, dims=("unknown",), **of_each)
    put(group, "errors", estimates.errors, dims=("unknown",), **of_each, note="standard errors")
    put(group, "covariance", estimates.covariance, dims=("unknown", "unknown"), names=estimates.names)


def _get_estimates(group: Any) -> Estimates:
    return Estimates(names_of(group["values"]), group["values"][()], group["covariance"][()])


@dataclass(frozen=True)
class Rows:
    """An array with a row for each node or data time, of which a rank may have some."""

    path: str
    values: Array
    labels: Mapping[str, Any]  # what `put` tells of it
    total: int  # rows of all ranks
    first: int


def rows_of(fit: FitResult) -> Iterator[Rows]:
    """All arrays of a fit that may be spread over ranks, in the order in which they are put."""
    for e, (series, residuals) in enumerate(zip(fit.experiments, fit.residuals, strict=True)):
        total, first = series.count, 0
        if fit.extent is not None:
            total, first = int(fit.extent.rows[e]), int(fit.extent.first_rows[e])
        of_each = {"dims": ("time", "quantity"), **columns(series.names, fit.units)}
        of_times = {"dims": ("time",), "units": fit.units.get("t", "1")}
        plain = {"dims": ("time", "quantity"), "names": series.names}
        parts: list[tuple[str, Array, dict[str, Any]]] = [
            ("times", series.times, of_times),
            ("values", series.values, of_each),
            *([("sigma", series.sigma, of_each)] if series.sigma is not None else []),
            *([("sigma_t", series.sigma_t, of_times)] if series.sigma_t is not None else []),
            *([("time_shifts", fit.time_shifts[e], of_times)] if fit.time_shifts else []),
            ("residuals", residuals, {**plain, "note": "(observed - fitted) / sigma"}),
        ]
        for name, values, labels in parts:
            yield Rows(f"experiments/{e + 1}/{name}", values, labels, total, first)
    total, first = (fit.extent.nodes, fit.extent.first_node) if fit.extent else (len(fit.nodes), 0)
    of_states = {"dims": ("node", "state"), **columns(fit.state_names, fit.units)}
    of_nodes: dict[str, tuple[Any, dict[str, Any]]] = {
        "times": (fit.node_times, {"dims": ("node",), "units": fit.units.get("t", "1")}),
        "experiments": (fit.node_experiments, {"dims": ("node",), "note": "which experiment, from 0"}),
        "states": (fit.nodes, of_states),
        "errors": (fit.node_errors, of_states),
    }
    for name, (values, labels) in of_nodes.items():
        yield Rows(f"nodes/{name}", values, labels, total, first)


def _put_rows(file: Any, fit: FitResult) -> None:
    """The arrays of a whole fit; of a part, room for the rows of all ranks."""
    for rows in rows_of(fit):
        if fit.extent is None:
            put(file, rows.path, rows.values, **rows.labels)
        else:
            shape = (rows.total, *rows.values.shape[1:])
            reserve(file, rows.path, shape, rows.values.dtype, rows=CHUNK, **rows.labels)


def _put_pieces(group: Any, pieces: Pieces, fit: FitResult) -> None:
    of_states = columns(fit.state_names, fit.units)
    put(group, "times", pieces.times, dims=("interval", "point"), units=fit.units.get("t", "1"))
    put(group, "states", pieces.states, dims=("interval", "point", "state"), **of_states)
    if pieces.nodes is not None:
        put(group, "nodes", pieces.nodes, dims=("interval",), note="at which the pieces begin, from 0")


def _get_pieces(group: Any) -> Pieces:
    nodes = group["nodes"][()] if "nodes" in group else None
    return Pieces(group["times"][()], group["states"][()], nodes)


def _put_history(group: Any, history: tuple[Iteration, ...]) -> None:
    for name, kind in _COLUMNS.items():
        column: np.ndarray = np.array([getattr(each, name) for each in history], dtype=_KINDS[str(kind)])
        put(group, name, column, dims=("iteration",))


def _get_history(group: Any) -> tuple[Iteration, ...]:
    found = [
        texts(group[name]) if kind == "str" else group[name][()].tolist() for name, kind in _COLUMNS.items()
    ]
    if "multipliers" in group:
        found.append([tuple(row[:used]) for row, used in zip(*_multipliers(group), strict=True)])
    return tuple(Iteration(*row) for row in zip(*found, strict=True))


def _put_constraints(file: Any, fit: FitResult) -> None:
    group = file.create_group("constraints")
    for name, kind in _OF_CONSTRAINTS.items():
        column: np.ndarray = np.array(
            [getattr(each, name) for each in fit.constraints], dtype=_KINDS[str(kind)]
        )
        put(group, name, column, dims=("constraint",))
    table = np.full((len(fit.history), len(fit.constraints)), np.nan)
    known = np.zeros(len(fit.history), dtype=np.int64)
    for k, each in enumerate(fit.history):
        known[k] = len(each.multipliers)
        table[k, : known[k]] = each.multipliers
    note = "NaN where a constraint was not active, or not considered in that phase"
    put(file["history"], "multipliers", table, dims=("iteration", "constraint"), note=note)
    put(file["history"], "considered", known, dims=("iteration",), note="constraints of that phase")


def _get_constraints(group: Any) -> tuple[Constraint, ...]:
    found = [
        texts(group[name]) if kind == "str" else group[name][()].tolist()
        for name, kind in _OF_CONSTRAINTS.items()
    ]
    return tuple(Constraint(*row) for row in zip(*found, strict=True))


def _multipliers(group: Any) -> tuple[list[list[float]], list[int]]:
    return group["multipliers"][()].tolist(), group["considered"][()].tolist()
