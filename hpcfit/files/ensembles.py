"""Ensembles in result files: one row a member in every array."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.files.hdf5 import columns, names_of, put, put_attributes, reserve, serial_h5py
from hpcfit.records import EnsembleResult, Outcome

ROWS = 4096  # that are written at once
_NUMBERS = ("members", "degrees_of_freedom", "iterations", "linearisations")
_BY_UNKNOWN = ("estimates", "errors")
_CODES = {outcome.name: number for number, outcome in enumerate(Outcome)}


def put_ensemble(file: Any, ensemble: EnsembleResult) -> None:
    """The attributes and arrays of an ensemble."""
    rows = EnsembleRows(file, ensemble, len(ensemble.members))
    rows.put(np.arange(len(ensemble.members)), ensemble)


class EnsembleRows:
    """An ensemble that is written as its members end, in any order; only unfinished blocks are held."""

    def __init__(self, file: Any, head: EnsembleResult, members: int) -> None:
        """What all members share is taken from `head`."""
        self._file, self._members = file, members
        self._blocks: dict[int, tuple[dict[str, Any], int]] = {}  # arrays by name, and rows that are missing
        put_attributes(
            file,
            {
                "model": head.model,
                "seed": head.seed,
                "seconds": head.seconds,
                "units": json.dumps(dict(head.units)),
                "parameter_names": list(head.parameter_names) or "",
            },
        )
        known = tuple(head.truth)
        truth = np.array([float(value) for value in head.truth.values()])
        put(file, "truth", truth, dims=("name",), **columns(known, head.units))
        outcome = serial_h5py().enum_dtype(_CODES, basetype=np.int8)
        self._types = {
            **dict.fromkeys(_NUMBERS, np.dtype(np.int64)),
            "objective": np.dtype(float),
            "outcomes": outcome,
        }
        for name, dtype in self._types.items():
            reserve(file, name, (members,), dtype, rows=ROWS, dims=("member",))
        of_each = {"dims": ("member", "unknown"), **columns(head.names, head.units)}
        self._width = len(head.names)
        for name in _BY_UNKNOWN:
            reserve(file, name, (members, self._width), float, rows=ROWS, **of_each)

    def put(self, places: NDArray[np.int64], rows: EnsembleResult) -> None:
        """Rows with their places among the members; a block is written when it is full."""
        found = {name: getattr(rows, name) for name in (*_NUMBERS, "objective", *_BY_UNKNOWN)}
        found["outcomes"] = np.array([_CODES[outcome.name] for outcome in rows.outcomes], dtype=np.int8)
        for block in np.unique(places // ROWS):
            own = places // ROWS == block
            arrays, missing = (
                self._blocks.pop(int(block)) if block in self._blocks else self._new_block(block)
            )
            for name, values in found.items():
                arrays[name][places[own] - block * ROWS] = values[own]
            missing -= int(own.sum())
            if missing:
                self._blocks[int(block)] = arrays, missing
            else:
                for name, values in arrays.items():
                    self._file[name][block * ROWS : block * ROWS + len(values)] = values
        self._file.attrs["seconds"] = rows.seconds

    def _new_block(self, number: int) -> tuple[dict[str, Any], int]:
        """Empty arrays, and how many rows they wait for."""
        count = min(ROWS, self._members - int(number) * ROWS)
        arrays = {name: np.empty(count, dtype) for name, dtype in self._types.items()}
        return arrays | {name: np.empty((count, self._width)) for name in _BY_UNKNOWN}, count


def get_ensemble(file: Any) -> EnsembleResult:
    """The ensemble that a file holds."""
    parameters = file.attrs["parameter_names"]
    names = {code: name for name, code in serial_h5py().check_enum_dtype(file["outcomes"].dtype).items()}
    return EnsembleResult(
        model=str(file.attrs["model"]),
        names=names_of(file["estimates"]),
        parameter_names=() if isinstance(parameters, str) else tuple(str(name) for name in parameters),
        outcomes=tuple(Outcome[names[code]] for code in file["outcomes"][()].tolist()),
        truth=dict(zip(names_of(file["truth"]), file["truth"][()].tolist(), strict=True)),
        seed=int(file.attrs["seed"]),
        seconds=float(file.attrs["seconds"]),
        units=json.loads(file.attrs["units"]),
        **{name: file[name][()] for name in (*_NUMBERS, "objective", *_BY_UNKNOWN)},
    )
