"""The rows of a fit that is spread over ranks: each puts its own into the result file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcfit.files.fits import CHUNK, rows_of
from hpcfit.files.hdf5 import VERSIONS, can_share_files, serial_h5py
from hpcfit.files.parts import write_share
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import Array, FitResult

AT_ONCE = 16 * CHUNK  # rows
MANY = 64  # arrays; more of them are written by one rank


class Piece(NamedTuple):
    """Some rows of an array in the file."""

    path: str
    first: int
    values: Array


def fill(comm: Any, file: Path, fit: FitResult) -> None:
    """Put the rows of all ranks into a file in which there is room for them."""
    if can_share_files(comm) and len(list(rows_of(fit))) <= MANY:
        _together(comm, file, fit)
    else:
        _in_turns(comm, file, fit)


def pieces(fit: FitResult) -> Iterator[Piece]:
    """This rank's rows, not too many at once; pieces end where chunks of the file do."""
    for rows in rows_of(fit):
        at, end = rows.first, rows.first + len(rows.values)
        while at < end:
            after = min(end, (at // AT_ONCE + 1) * AT_ONCE)
            yield Piece(rows.path, at, rows.values[at - rows.first : after - rows.first])
            at = after


def _together(comm: Any, file: Path, fit: FitResult) -> None:
    """All ranks have the file open, and write each array at the same time."""
    own: dict[str, list[Piece]] = {rows.path: [] for rows in rows_of(fit)}
    for piece in pieces(fit):
        own[piece.path].append(piece)
    opened = everywhere(
        comm, lambda: serial_h5py().File(file, "r+", driver="mpio", comm=comm, libver=VERSIONS)
    )
    with opened:
        for path, parts in own.items():
            for round_ in range(max(comm.allgather(len(parts)))):
                here = parts[round_] if round_ < len(parts) else None
                everywhere(comm, partial(_write, opened[path], here))


def _write(dataset: Any, piece: Piece | None) -> None:
    """Collective; without a piece a rank takes part and writes nothing."""
    nothing = np.zeros((0, *dataset.shape[1:]))
    first, values = (0, nothing) if piece is None else (piece.first, piece.values)
    write_share(serial_h5py(), dataset, first, values)


def _in_turns(comm: Any, file: Path, fit: FitResult) -> None:
    """Rank 0 writes what it gets from one rank after another."""
    if comm.rank:
        for piece in pieces(fit):
            comm.send(piece, dest=0)
        comm.send(None, dest=0)

    def write() -> None:
        arriving = _arriving(comm, fit)
        try:
            with serial_h5py().File(file, "r+", libver=VERSIONS) as opened:
                for piece in arriving:
                    opened[piece.path][piece.first : piece.first + len(piece.values)] = piece.values
        finally:
            for _ in arriving:  # whatever happened here, others wait until they are heard
                pass

    on_root(comm, write)


def _arriving(comm: Any, fit: FitResult) -> Iterator[Piece]:
    yield from pieces(fit)
    for rank in range(1, comm.size):
        while (piece := comm.recv(source=rank)) is not None:
            yield piece
