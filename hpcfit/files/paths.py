"""Paths in result files."""

from __future__ import annotations

import json
from typing import Any

from hpcfit.files.hdf5 import columns, names_of, put, put_attributes
from hpcfit.files.series import get_series, put_series
from hpcfit.records import Outcome, Path, Series, Switchings


def put_path(file: Any, path: Path) -> None:
    """The attributes and arrays of a path."""
    units = path.units
    put_attributes(
        file,
        {
            "model": path.model,
            "model_kind": path.kind,
            "outcome": path.outcome.name,
            "outcome_text": path.outcome.value,
            "cause": path.cause,
            "seed": -1 if path.seed is None else path.seed,
            "steps": path.steps,
            "units": json.dumps(dict(units)),
        },
    )
    states, parameters = path.state_names, path.parameter_names
    of_states = columns(states, units)
    of_parameters = columns(parameters, units)
    put(file, "times", path.times, dims=("time",), units=units.get("t", "1"))
    put(file, "start", path.start, dims=("state",), **of_states)
    put(file, "parameters", path.parameters, dims=("parameter",), **of_parameters)
    put(file, "states", path.states, dims=("time", "state"), **of_states)
    if path.by_start is not None and path.by_parameters is not None:
        put(file, "by_start", path.by_start, dims=("time", "state", "start"), note="d state / d start")
        put(
            file,
            "by_parameters",
            path.by_parameters,
            dims=("time", "state", "parameter"),
            note="d state / d parameter",
        )
    if path.invariant is not None:
        put(file, "invariant", path.invariant, dims=("time",))
    if path.switchings is not None:
        met = file.create_group("switchings")
        put_attributes(met, {"names": json.dumps(path.switchings.names)})
        put(met, "times", path.switchings.times, dims=("passage",), units=units.get("t", "1"))
        put(met, "states", path.switchings.states, dims=("passage", "state"), note="before the jump")
    for name, series in (("observed", path.observed), ("exact", path.exact), ("data", path.data)):
        if series is not None:
            put_series(file.create_group(name), series, units)


def _switchings(file: Any) -> Switchings | None:
    if "switchings" not in file:
        return None
    met = file["switchings"]
    return Switchings(tuple(json.loads(met.attrs["names"])), met["times"][()], met["states"][()])


def get_path(file: Any) -> Path:
    """The path that a file holds."""

    def optional(name: str) -> Any:
        return file[name][()] if name in file else None

    def series(name: str) -> Series | None:
        return get_series(file[name]) if name in file else None

    seed = int(file.attrs["seed"])
    return Path(
        model=str(file.attrs["model"]),
        state_names=names_of(file["states"]),
        parameter_names=names_of(file["parameters"]),
        kind=str(file.attrs["model_kind"]),
        start=file["start"][()],
        parameters=file["parameters"][()],
        times=file["times"][()],
        states=file["states"][()],
        outcome=Outcome[str(file.attrs["outcome"])],
        cause=str(file.attrs["cause"]),
        by_start=optional("by_start"),
        by_parameters=optional("by_parameters"),
        invariant=optional("invariant"),
        observed=series("observed"),
        exact=series("exact"),
        data=series("data"),
        units=json.loads(file.attrs["units"]),
        seed=None if seed < 0 else seed,
        steps=int(file.attrs["steps"]),
        switchings=_switchings(file),
    )
