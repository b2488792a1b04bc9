"""Ensembles in result files: one row a member in every array."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hpcfit.files.hdf5 import columns, names_of, put, put_attributes, texts
from hpcfit.records import EnsembleResult, Outcome

_BY_MEMBER = ("members", "objective", "degrees_of_freedom", "iterations", "linearisations")


def put_ensemble(file: Any, ensemble: EnsembleResult) -> None:
    """The attributes and arrays of an ensemble."""
    names, units = ensemble.names, ensemble.units
    put_attributes(
        file,
        {
            "model": ensemble.model,
            "seed": ensemble.seed,
            "seconds": ensemble.seconds,
            "units": json.dumps(dict(units)),
            "parameter_names": list(ensemble.parameter_names) or "",
        },
    )
    for name in _BY_MEMBER:
        put(file, name, getattr(ensemble, name), dims=("member",))
    outcomes = np.array([outcome.name for outcome in ensemble.outcomes], dtype=np.str_)
    put(file, "outcomes", outcomes, dims=("member",))
    of_each = columns(names, units)
    put(file, "estimates", ensemble.estimates, dims=("member", "unknown"), **of_each)
    put(file, "errors", ensemble.errors, dims=("member", "unknown"), **of_each)
    known = tuple(ensemble.truth)
    truth = np.array([float(value) for value in ensemble.truth.values()])
    put(file, "truth", truth, dims=("name",), **columns(known, units))


def get_ensemble(file: Any) -> EnsembleResult:
    """The ensemble that a file holds."""
    parameters = file.attrs["parameter_names"]
    return EnsembleResult(
        model=str(file.attrs["model"]),
        names=names_of(file["estimates"]),
        parameter_names=() if isinstance(parameters, str) else tuple(str(name) for name in parameters),
        outcomes=tuple(Outcome[name] for name in texts(file["outcomes"])),
        estimates=file["estimates"][()],
        errors=file["errors"][()],
        truth=dict(zip(names_of(file["truth"]), file["truth"][()].tolist(), strict=True)),
        seed=int(file.attrs["seed"]),
        seconds=float(file.attrs["seconds"]),
        units=json.loads(file.attrs["units"]),
        **{name: file[name][()] for name in _BY_MEMBER},
    )
