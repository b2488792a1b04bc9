"""Ensembles in result files: one row a member in every array."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.files.hdf5 import columns, names_of, put, put_attributes, reserve, serial_h5py
from hpcfit.records import Array, EnsembleResult, Outcome

ROWS = 4096  # that are written at once
_NUMBERS = ("members", "degrees_of_freedom", "iterations", "linearisations")
_BY_UNKNOWN = ("estimates", "errors")
_CODES = {outcome.name: number for number, outcome in enumerate(Outcome)}

Columns = dict[str, NDArray[Any]]  # arrays of rows (m, ...) by their names in the file


def put_ensemble(file: Any, ensemble: EnsembleResult) -> None:
    """The attributes and arrays of an ensemble."""
    rows = EnsembleRows(file, ensemble, len(ensemble.members))
    rows.put(np.arange(len(ensemble.members)), ensemble)


def columns_of(rows: EnsembleResult) -> Columns:
    """The rows of an ensemble as they stand in files."""
    found: Columns = {name: getattr(rows, name) for name in (*_NUMBERS, "objective", *_BY_UNKNOWN)}
    codes = np.fromiter((_CODES[outcome.name] for outcome in rows.outcomes), np.int8, len(rows.outcomes))
    return found | {"outcomes": codes} | ({"cells": rows.cells} if rows.grid else {})


def row_types(unknowns: int, *, with_cells: bool) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Type and width of every array of rows, by name."""
    found: dict[str, tuple[Any, tuple[int, ...]]] = {name: (np.dtype(np.int64), ()) for name in _NUMBERS}
    found["objective"] = np.dtype(float), ()
    found["outcomes"] = serial_h5py().enum_dtype(_CODES, basetype=np.int8), ()
    if with_cells:
        found["cells"] = np.dtype(np.int64), ()
    return found | {name: (np.dtype(float), (unknowns,)) for name in _BY_UNKNOWN}


def reserve_rows(
    file: Any, names: Sequence[str], units: Mapping[str, str], members: int, *, with_cells: bool
) -> None:
    """Empty arrays for the rows of so many members."""
    for name, (dtype, width) in row_types(len(names), with_cells=with_cells).items():
        dims = ("member", "unknown") if width else ("member",)
        labels = columns(names, units) if width else {}
        reserve(file, name, (members, *width), dtype, rows=ROWS, dims=dims, **labels)


class EnsembleRows:
    """An ensemble that is written as its members end, in any order; only unfinished blocks are held."""

    def __init__(self, file: Any, head: EnsembleResult, members: int) -> None:
        """What all members share is taken from `head`."""
        self._file, self._members = file, members
        self._blocks: dict[int, tuple[Columns, int]] = {}  # arrays by name, and rows that are missing
        put_head(file, head)
        reserve_rows(file, head.names, head.units, members, with_cells=bool(head.grid))
        self._types = row_types(len(head.names), with_cells=bool(head.grid))

    def put(self, places: NDArray[np.int64], rows: EnsembleResult) -> None:
        """Rows with their places among the members."""
        self.put_columns(places, columns_of(rows))
        self._file.attrs["seconds"] = rows.seconds

    def put_columns(self, places: NDArray[np.int64], found: Mapping[str, NDArray[Any]]) -> None:
        """Rows as they stand in files; a block is written when it is full."""
        for block in np.unique(places // ROWS):
            own = places // ROWS == block
            arrays, missing = (
                self._blocks.pop(int(block)) if block in self._blocks else self._new_block(block)
            )
            for name in arrays:
                arrays[name][places[own] - block * ROWS] = found[name][own]
            missing -= int(own.sum())
            if missing:
                self._blocks[int(block)] = arrays, missing
            else:
                for name, values in arrays.items():
                    self._file[name][block * ROWS : block * ROWS + len(values)] = values

    @property
    def complete(self) -> bool:
        """Whether no block waits for rows; blocks that nobody began are not known here."""
        return not self._blocks

    def _new_block(self, number: int) -> tuple[Columns, int]:
        """Empty arrays, and how many rows they wait for."""
        count = min(ROWS, self._members - int(number) * ROWS)
        return {name: np.empty((count, *width), dtype) for name, (dtype, width) in self._types.items()}, count


def put_head(file: Any, head: EnsembleResult) -> None:
    """What all members share."""
    put_attributes(
        file,
        {
            "model": head.model,
            "seed": head.seed,
            "seconds": head.seconds,
            "units": json.dumps(dict(head.units)),
            "parameter_names": list(head.parameter_names) or "",
            "of": head.of,
        },
    )
    known = tuple(head.truth)
    truth = np.array([float(value) for value in head.truth.values()])
    put(file, "truth", truth, dims=("name",), **columns(known, head.units))
    if head.grid:
        _put_grid(file, head)


def _put_grid(file: Any, head: EnsembleResult) -> None:
    """The cells: the value of every key in each, and the truth where cells differ in it."""
    file.attrs["grid"] = json.dumps({key: list(values) for key, values in head.grid.items()})
    group = file.create_group("grid")
    choices = np.indices([len(values) for values in head.grid.values()]).reshape(len(head.grid), -1)
    for (key, values), chosen in zip(head.grid.items(), choices, strict=True):
        put(group, key.replace("/", "|"), shown_values(values)[chosen], dims=("cell",))
    if head.cell_truth:
        table = np.stack(list(head.cell_truth.values()), axis=1)
        labels = columns(tuple(head.cell_truth), head.units)
        put(file, "cell_truth", table, dims=("cell", "name"), **labels)


def shown_values(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers, or texts where some are none."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=float)
    return np.array([value if isinstance(value, str) else json.dumps(value) for value in values])


def get_head(file: Any) -> dict[str, Any]:
    """What all members share, as EnsembleResult calls it."""
    parameters = file.attrs["parameter_names"]
    grid = json.loads(file.attrs["grid"]) if "grid" in file.attrs else {}
    varied: dict[str, Array] = {}
    if "cell_truth" in file:
        varied = dict(zip(names_of(file["cell_truth"]), file["cell_truth"][()].T.copy(), strict=True))
    return {
        "model": str(file.attrs["model"]),
        "names": names_of(file["estimates"]),
        "parameter_names": () if isinstance(parameters, str) else tuple(str(name) for name in parameters),
        "truth": dict(zip(names_of(file["truth"]), file["truth"][()].tolist(), strict=True)),
        "seed": int(file.attrs["seed"]),
        "seconds": float(file.attrs["seconds"]),
        "units": json.loads(file.attrs["units"]),
        "grid": grid,
        "cell_truth": varied,
        "of": str(file.attrs.get("of", "fit")),
    }


def get_ensemble(file: Any) -> EnsembleResult:
    """The ensemble that a file holds."""
    names = {code: name for name, code in serial_h5py().check_enum_dtype(file["outcomes"].dtype).items()}
    known = {code: Outcome[name] for code, name in names.items()}
    return EnsembleResult(
        outcomes=tuple(known[code] for code in file["outcomes"][()].tolist()),
        **{name: file[name][()] for name in (*_NUMBERS, "objective", *_BY_UNKNOWN)},
        **get_head(file),
    )


def blocks_of_rows(file: Any, count: int) -> Iterator[Columns]:
    """All rows of a file, some at a time."""
    with_cells = "cells" in file
    names = row_types(len(names_of(file["estimates"])), with_cells=with_cells)
    for first in range(0, len(file["members"]), count):
        yield {name: file[name][first : first + count] for name in names}
