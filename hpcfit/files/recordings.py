"""Recordings in HDF5: 1-d datasets by name, and a 2-d dataset whose attribute `names` names its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcfit.files.hdf5 import names_of, serial_h5py
from hpcfit.files.tables import Table
from hpcfit.records import Array, InputError

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUFFIXES = (".h5", ".hdf5", ".hdf", ".he5")


class Place(NamedTuple):
    """Where a column is, and how many rows it has."""

    dataset: str
    number: int | None  # of the column of a 2-d dataset
    rows: int


def is_recording(path: Path) -> bool:
    """Whether a file is HDF5, or says so by its name."""
    if path.suffix.lower() in SUFFIXES:
        return True
    try:
        with open(path, "rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE
    except OSError:
        return False


def read_recording(path: Path, hashing: bool = True) -> Table:
    """All columns of a recording; each is read when it is asked for."""
    with _open(path) as file:
        places = _places(path, file)
    sha256 = ""
    if hashing:
        with open(path, "rb") as raw:
            sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
    return Table(path, RecordedColumns(path, places), sha256)


def read_slice(
    path: Path, first: int, last: int | None, names: Sequence[str] | None = None
) -> dict[str, Array]:
    """Rows first to last (not included; None: to the end) of some columns, or of all; others are not read."""
    with _open(path) as file:
        places = _places(path, file)
        wanted = _wanted(path, places, tuple(places) if names is None else names)
        rows = next(iter(wanted.values())).rows
        if not 0 <= first <= (rows if last is None else last) <= rows:
            raise InputError(f"{path}: no rows {first} to {last}; there are {rows}")
        blocks: dict[str, Array] = {}
        columns = {}
        for name, (dataset, number, _) in wanted.items():
            if dataset not in blocks:
                blocks[dataset] = np.asarray(file[dataset][first:last], dtype=float)
            block = blocks[dataset]
            columns[name] = block if number is None else np.ascontiguousarray(block[:, number])
        return columns


def n_rows(path: Path, names: Sequence[str]) -> int:
    """How many rows some columns have, which are of the same length."""
    with _open(path) as file:
        return _wanted(path, _places(path, file), names)[names[0]].rows


class RecordedColumns(Mapping[str, Array]):
    """Columns by name, read from the file one at a time."""

    def __init__(self, path: Path, places: Mapping[str, Place]) -> None:
        self._path, self._places = path, places

    def __getitem__(self, name: str) -> Array:
        if name not in self._places:
            raise KeyError(name)
        return read_slice(self._path, 0, None, (name,))[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    h5py = serial_h5py()
    if not path.exists():
        raise InputError(f"{path}: no such file; paths are relative to the job file")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give an HDF5 file")
    try:
        file = h5py.File(path, "r")
    except BlockingIOError:
        raise InputError(
            f"{path}: another process is writing this file; wait until it has finished"
        ) from None
    except OSError as error:
        broken = "signature" in str(error) or "truncated" in str(error)
        reason = "not an HDF5 file, or cut off" if broken else f"cannot be read: {error}"
        raise InputError(f"{path}: {reason}; give HDF5, or a CSV file with another name") from None
    with file:
        try:
            yield file
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path}: damaged: a part is not readable ({error}); write it again") from None


def _places(path: Path, file: Any) -> dict[str, Place]:
    """Every column of the file; names inside groups are paths, as in run/t or run/table/x."""
    places: dict[str, Place] = {}
    unnamed: list[str] = []

    def add(name: str, place: Place) -> None:
        if name in places:
            problem = f"two columns are called '{name}' ({places[name].dataset} and {place.dataset})"
            raise InputError(f"{path}: {problem}; rename one")
        places[name] = place

    def visit(name: str, part: Any) -> None:
        if not hasattr(part, "shape") or part.dtype.kind not in "fiub" or part.ndim not in (1, 2):
            return
        if part.ndim == 1:
            add(name, Place(name, None, len(part)))
            return
        names = names_of(part)
        if not names:
            unnamed.append(name)
        elif len(names) != part.shape[1]:
            problem = f"{name} has {part.shape[1]} columns and {len(names)} names"
            raise InputError(f"{path}: {problem}; name each column in its attribute names")
        inside = f"{name}/" if "/" in name else ""
        for number, column in enumerate(names):
            add(inside + column, Place(name, number, len(part)))

    file.visititems(visit)
    if not places and unnamed:
        raise InputError(f"{path}: the columns of {unnamed[0]} have no names; give it an attribute names")
    if not places:
        raise InputError(f"{path}: no dataset of numbers; store one 1-d dataset per column, as t, x, y")
    return places


def _wanted(path: Path, places: Mapping[str, Place], names: Sequence[str]) -> dict[str, Place]:
    """Some columns, which are there and of the same length."""
    for name in names:
        if name not in places:
            known = " ".join(list(places)[:12]) + (" ..." if len(places) > 12 else "")
            raise InputError(f"{path}: no dataset or column '{name}'; there are {known}")
        if places[name].rows != places[names[0]].rows:
            lengths = f"{names[0]} has {places[names[0]].rows} rows, but {name} has {places[name].rows}"
            raise InputError(f"{path}: {lengths}; all columns need the same length")
    return {name: places[name] for name in names}
