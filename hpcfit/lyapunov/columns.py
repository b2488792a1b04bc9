"""Gram-Schmidt on the columns of one frame that ranks share: in chunks, the same whatever the ranks.

Chunks of columns are made orthonormal one after the other by their owners, and taken out of all later
chunks at once (block modified Gram-Schmidt). A second pass, in which no rank waits for another, brings the
columns from eps times the condition of the frame to eps. All products have shapes that depend on the number
of the chunk alone, so that the bits do not depend on the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.mpi.together import spread
from hpcfit.records import Array

WIDTH = 8  # columns of a chunk: the lanes of a register


@dataclass(frozen=True)
class Columns:
    """Which columns of a frame are whose: chunks go round the ranks."""

    rank: int
    ranks: int
    count: int  # of all columns

    @property
    def chunks(self) -> int:
        return -(-self.count // WIDTH)

    @property
    def own(self) -> range:
        """Numbers of this rank's chunks."""
        return range(self.rank, self.chunks, self.ranks)

    def places(self, chunk: int) -> slice:
        return slice(chunk * WIDTH, min((chunk + 1) * WIDTH, self.count))

    def part(self, frame: Array) -> Array:
        """This rank's columns of a frame (n, k): (n, own)."""
        return np.concatenate([frame[:, self.places(chunk)] for chunk in self.own] or [frame[:, :0]], axis=1)

    def whole(self, comm: Any, part: Array) -> Array:
        """The frame (n, k) of which all ranks have a part, on all ranks."""
        parts = comm.allgather(np.ascontiguousarray(part))
        frame = np.empty((len(part), self.count))
        for rank, each in enumerate(parts):
            first = 0
            for chunk in Columns(rank, self.ranks, self.count).own:
                places = self.places(chunk)
                frame[:, places] = each[:, first : first + places.stop - places.start]
                first += places.stop - places.start
        return frame


def orthonormal_columns(comm: Any, columns: Columns, part: Array) -> tuple[Array, Array]:
    """This rank's columns (n, own) of the orthonormal frame, and the stretching (k,) of all of them."""
    chunks = _split(columns, part)
    found = np.zeros((columns.chunks, WIDTH, len(part) + 1))  # rows, and by how much each was stretched
    basis = found[..., :-1]
    for number in range(columns.chunks):
        if number in chunks:
            found[number] = _orthonormal(chunks.pop(number))
        spread(comm, found[number], number % columns.ranks)
        if chunks:
            rest = np.stack(list(chunks.values()))
            rest -= rest @ basis[number].T @ basis[number]
            chunks.update(zip(chunks, rest, strict=True))
    sizes = found[..., -1].ravel()[: columns.count]
    return _again(columns, np.ascontiguousarray(basis)), sizes


def _split(columns: Columns, part: Array) -> dict[int, Array]:
    """This rank's chunks as rows (WIDTH, n); places without a column are zero."""
    chunks, first = {}, 0
    for chunk in columns.own:
        places = columns.places(chunk)
        count = places.stop - places.start
        chunks[chunk] = np.zeros((WIDTH, len(part)))
        chunks[chunk][:count] = part[:, first : first + count].T
        first += count
    return chunks


def _orthonormal(rows: Array) -> Array:
    """Orthonormal rows, each followed by what it was stretched by (WIDTH, n + 1)."""
    q, r = np.linalg.qr(rows.T)
    diagonal = np.diag(r)
    signed = q * np.where(diagonal < 0.0, -1.0, 1.0)
    return np.concatenate([signed.T, np.abs(diagonal)[:, None]], axis=1)


def _again(columns: Columns, basis: Array) -> Array:
    """The second pass: what is left of earlier columns is taken out of this rank's, (n, own)."""
    n = basis.shape[-1]
    parts = [np.empty((n, 0))]
    for chunk in columns.own:
        before, rows = basis[:chunk].reshape(-1, n), basis[chunk]
        places = columns.places(chunk)
        cleaned = _orthonormal(rows - rows @ before.T @ before)[:, :-1]
        parts.append(cleaned[: places.stop - places.start].T)
    return np.concatenate(parts, axis=1)
