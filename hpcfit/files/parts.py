"""Part files: rows of some members, written by all ranks of a task together; seen whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.files.checksums import added, checksums
from hpcfit.files.ensembles import Columns, reserve_rows, row_types
from hpcfit.files.hdf5 import parallel_h5py, put_attributes, serial_h5py
from hpcfit.files.replacing import room_for, settle, usual_mode
from hpcfit.mpi.together import everywhere, on_root, shares
from hpcfit.records import InputError, Mistake

FORMAT = "hpcfit-part"
OVERHEAD = 1 << 16  # bytes


def write_part(
    comm: Any, target: Path, head: Mapping[str, Any], interval: tuple[int, int], rows: Columns
) -> None:
    """Write the members of an interval of places, of which each rank has its share: all ranks together.

    The file is written beside its target, read back, and takes its place when its checksums are right.
    Without parallel HDF5 the root writes what the others give to it.
    """
    first, last = interval
    begin = first + shares(comm, last - first)[comm.rank].start
    own = checksums(np.arange(begin, begin + len(rows["members"])), rows)
    total: dict[str, int] = {}
    for each in comm.allgather(own):
        total = added(total, each)
    told = on_root(comm, lambda: dict(head))  # all ranks must write the same attributes
    told |= {"format": FORMAT, "first": first, "last": last, "checksums": json.dumps(total)}
    size = (last - first) * sum(np.dtype(values.dtype).itemsize * _width(values) for values in rows.values())
    place = on_root(comm, lambda: _begun(target, size + OVERHEAD))
    try:
        h5py = parallel_h5py() if comm.size > 1 else None
        if h5py is not None:
            _raise_together(comm, target, _written(comm, h5py, place, told, begin - first, rows))
        else:
            gathered = comm.allgather(rows)
            whole = {name: np.concatenate([each[name] for each in gathered]) for name in rows}
            on_root(comm, lambda: _one_writer(target, place, told, whole))
        on_root(comm, lambda: _settled(place, target))
    finally:
        if comm.rank == 0:
            place.unlink(missing_ok=True)


def read_part(path: Path, what: str = "part") -> tuple[dict[str, Any], Columns]:
    """The attributes and rows of a part; anything wrong with it is an InputError."""
    try:
        with serial_h5py().File(path, "r") as file:
            head = dict(file.attrs)
            if head.get("format") != FORMAT:
                raise InputError(Mistake(str(path), f"is no {what} of a campaign"))
            names = json.loads(head["checksums"])
            rows: Columns = {name: file[name][()] for name in names}
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(Mistake(str(path), f"cannot be read: {_first_line(error)}")) from None
    first, last = int(head["first"]), int(head["last"])
    if any(len(values) != last - first for values in rows.values()):
        raise InputError(Mistake(str(path), "does not have the rows that it should have"))
    if checksums(np.arange(first, last), rows) != names:
        raise InputError(Mistake(str(path), "its checksums are wrong"))
    return head, rows


def set_aside(path: Path) -> Path:
    """A file that cannot be used gets another name, under which nobody looks for it."""
    for k in range(1000):
        aside = path.with_name(f"{path.name}.unreadable{k or ''}")
        if not aside.exists():
            break
    path.replace(aside)
    return aside


def _begun(target: Path, size: int) -> Path:
    """An empty file beside the target, on a disk with room for so many bytes."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise InputError(
            Mistake(str(target), f"cannot be written: {error.strerror}", "make room, then resume")
        ) from None
    try:
        room_for(number, target, size)
    except BaseException:
        os.unlink(name)
        raise
    finally:
        os.close(number)
    return Path(name)


def _written(
    comm: Any, h5py: Any, place: Path, head: Mapping[str, Any], begin: int, rows: Columns
) -> Exception | None:
    """Write together; a rank on which something fails goes on, as the others wait for it at every step."""
    failed: Exception | None = None
    try:
        file = h5py.File(place, "w", driver="mpio", comm=comm, libver=("v110", "v110"))
    except Exception as error:
        return error
    try:
        _reserve(file, head)
        for name, (dtype, _) in row_types(len(head["names"]), with_cells="cells" in rows).items():
            try:
                write_share(h5py, file[name], begin, rows[name].astype(dtype, copy=False))
            except OSError as error:
                failed = failed or error
    except Exception as error:
        failed = failed or error
    try:
        file.close()
    except Exception as error:
        failed = failed or error
    return failed


def write_share(h5py: Any, dataset: Any, begin: int, values: NDArray[Any]) -> None:
    """All ranks write their rows at once; some may have none."""
    there = dataset.id.get_space()
    if len(values):
        here = h5py.h5s.create_simple(values.shape)
        there.select_hyperslab((begin, *(0,) * (values.ndim - 1)), values.shape)
    else:
        here = h5py.h5s.create_simple((1, *values.shape[1:]))
        here.select_none()
        there.select_none()
    together = h5py.h5p.create(h5py.h5p.DATASET_XFER)
    together.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)
    # With filters HDF5 wants exactly the type of the file.
    dataset.id.write(here, there, np.ascontiguousarray(values), mtype=dataset.id.get_type(), dxpl=together)


def _one_writer(target: Path, place: Path, head: Mapping[str, Any], rows: Columns) -> None:
    try:
        with serial_h5py().File(place, "w", libver=("v110", "v110")) as file:
            _reserve(file, head)
            for name, values in rows.items():
                file[name][...] = values
    except (OSError, RuntimeError) as error:
        raise _cannot_write(target, error) from None


def _reserve(file: Any, head: Mapping[str, Any]) -> None:
    put_attributes(file, head)
    count = head["last"] - head["first"]
    with_cells = "cells" in json.loads(head["checksums"])
    reserve_rows(file, head["names"], json.loads(head["units"]), count, with_cells=with_cells)


def _raise_together(comm: Any, target: Path, failed: Exception | None) -> None:
    def tell() -> None:
        if isinstance(failed, OSError | RuntimeError):
            raise _cannot_write(target, failed)
        if failed is not None:
            raise failed

    everywhere(comm, tell)


def _settled(place: Path, target: Path) -> None:
    """Read back what was written; then it may take its place."""
    read_part(place)
    try:
        settle(place)
        os.chmod(place, usual_mode())
        os.replace(place, target)
        settle(target.parent)
    except OSError as error:
        raise _cannot_write(target, error) from None


def _cannot_write(target: Path, error: Exception) -> InputError:
    problem = f"cannot be written: {_first_line(error)}"
    return InputError(Mistake(str(target), problem, "make room, then resume"))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _width(values: NDArray[Any]) -> int:
    return int(np.prod(values.shape[1:], dtype=np.int64))
