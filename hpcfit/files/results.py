"""Result files: what `run` writes and `show`, `report` and later studies read.

Layout: attributes format, kind, job_hash, ...; `job` (the text of the job file); `provenance` (attributes);
and the arrays of the record by their names, each with dims, names and units.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from hpcfit.files.hdf5 import FORMAT, FORMAT_VERSION, names_of, put, put_attributes, reading, serial_h5py
from hpcfit.files.replacing import replacing
from hpcfit.records import InputError, Outcome, Path, Series


@dataclass(frozen=True)
class Saved:
    """A result as it comes from its file."""

    record: Path
    kind: str
    job_text: str
    job_hash: str
    provenance: Mapping[str, Any]


def save(target: FilePath, saved: Saved) -> None:
    """Write a result; the file appears whole or not at all."""
    h5py = serial_h5py()
    with replacing(target) as part:
        with h5py.File(part, "w") as file:
            put_attributes(
                file,
                {
                    "format": FORMAT,
                    "format_version": FORMAT_VERSION,
                    "kind": saved.kind,
                    "job_hash": saved.job_hash,
                },
            )
            file["job"] = saved.job_text
            file.create_group("provenance").attrs["json"] = json.dumps(dict(saved.provenance))
            _put_path(file, saved.record)
        load(part)  # what cannot be read back must not replace anything


def load(path: FilePath) -> Saved:
    """Read a result."""
    with reading(path) as file:
        kind = str(file.attrs["kind"])
        if kind != "simulate":
            raise InputError(
                f"{path}: a result of kind '{kind}', which this version cannot read; upgrade hpcfit"
            )
        return Saved(
            record=_get_path(file),
            kind=kind,
            job_text=file["job"].asstr()[()],
            job_hash=str(file.attrs["job_hash"]),
            provenance=json.loads(file["provenance"].attrs["json"]),
        )


def is_result(path: FilePath) -> bool:
    """Whether a file is hpcfit's own, be it damaged or of another version."""
    try:
        with reading(path):
            return True
    except InputError as error:
        return "format version" in str(error)


def _put_path(file: Any, path: Path) -> None:
    units = path.units

    def units_of(names: tuple[str, ...]) -> list[str]:
        return [units.get(name, "1") for name in names]

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
    put(file, "times", path.times, dims=("time",), units=units.get("t", "1"))
    put(file, "start", path.start, dims=("state",), names=states, units=units_of(states))
    put(
        file, "parameters", path.parameters, dims=("parameter",), names=parameters, units=units_of(parameters)
    )
    put(file, "states", path.states, dims=("time", "state"), names=states, units=units_of(states))
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
    for name, series in (("observed", path.observed), ("exact", path.exact), ("data", path.data)):
        if series is not None:
            _put_series(file.create_group(name), series, units_of(series.names), units.get("t", "1"))


def _put_series(group: Any, series: Series, units: list[str], time_unit: str) -> None:
    put(group, "times", series.times, dims=("time",), units=time_unit)
    put(group, "values", series.values, dims=("time", "quantity"), names=series.names, units=units)
    if series.sigma is not None:
        put(group, "sigma", series.sigma, dims=("time", "quantity"), names=series.names, units=units)


def _get_path(file: Any) -> Path:
    def optional(name: str) -> Any:
        return file[name][()] if name in file else None

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
        observed=_get_series(file, "observed"),
        exact=_get_series(file, "exact"),
        data=_get_series(file, "data"),
        units=json.loads(file.attrs["units"]),
        seed=None if seed < 0 else seed,
        steps=int(file.attrs["steps"]),
    )


def _get_series(file: Any, name: str) -> Series | None:
    if name not in file:
        return None
    group = file[name]
    return Series(
        names=names_of(group["values"]),
        times=group["times"][()],
        values=group["values"][()],
        sigma=group["sigma"][()] if "sigma" in group else None,
    )
