"""What pictures of a fit need of its path: pieces from node to node, all or those that are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import propagate
from hpcfit.linear.chain import Unknowns
from hpcfit.mpi.together import gathered
from hpcfit.records import Array, Extent, Pieces
from hpcfit.shooting.grid import Grid
from hpcfit.shooting.problem import Problem

Numbers = NDArray[np.int64]

POINTS_PER_PIECE = 9
MOST_POINTS = 20_000  # of a picture's path; of longer series only some pieces are kept
BEGINNING, AROUND, STRETCHES = 160, 25, 3  # data times that reporting/fits/stretches.py looks at from near


def drawn_pieces(comm: Any, grid: Grid, residuals: Sequence[Array], extent: Extent | None) -> Numbers:
    """Nodes of this rank at which the pieces begin that pictures show.

    All of them; of a long series the first ones, and those around the largest residuals.
    """
    counts = np.array([len(own) for own in residuals])
    nodes = len(grid.times)
    if extent is None:
        extent = Extent(nodes, 0, counts, np.zeros_like(counts))
    linked = np.append(grid.linked, False)
    if extent.nodes - len(counts) <= MOST_POINTS // POINTS_PER_PIECE:
        return np.flatnonzero(linked)
    around = _around_largest(comm, residuals, extent)
    chosen = np.zeros(nodes, dtype=bool)
    for i, node_of in enumerate(grid.node_of):
        e = int(grid.experiment[0]) + i
        first = int(extent.first_rows[e])
        for rows in (slice(0, BEGINNING), *around[e]):
            here = slice(max(rows.start - first, 0), max(min(rows.stop - first, counts[e]), 0))
            chosen[node_of[here]] = True
    return np.flatnonzero(chosen & linked)


def _around_largest(comm: Any, residuals: Sequence[Array], extent: Extent) -> list[list[slice]]:
    """Of each experiment the rows around its largest residuals, whoever has them."""
    sizes = [np.nan_to_num(np.abs(values)).max(axis=1, initial=0.0) for values in residuals]
    found: list[list[slice]] = [[] for _ in sizes]
    long = np.flatnonzero(extent.rows > BEGINNING)
    for _ in range(STRETCHES):
        told = np.array([_largest(sizes[e], int(extent.first_rows[e])) for e in long]).reshape(1, -1, 2)
        everybody = gathered(comm, told)
        best = np.argmax(everybody[..., 0], axis=0)  # of equal ones the first
        for e, rank, place in zip(long.tolist(), best.tolist(), range(len(long)), strict=True):
            k, first_row = int(everybody[rank, place, 1]), int(extent.first_rows[e])
            first = max(min(k - AROUND, int(extent.rows[e]) - 2 * AROUND - 1), 0)
            found[e].append(slice(max(first - 1, 0), first + 2 * AROUND + 1))
            done = slice(max(first - AROUND - first_row, 0), max(first + 3 * AROUND + 1 - first_row, 0))
            sizes[e][done] = 0.0
    return found


def _largest(sizes: Array, first_row: int) -> tuple[float, float]:
    """The largest of this rank's sizes, and its row in the whole."""
    k = int(np.argmax(sizes)) if len(sizes) else 0
    return (float(sizes[k]), float(first_row + k)) if len(sizes) else (-1.0, 0.0)


def path_pieces(comm: Any, problem: Problem, z: Unknowns, begins: Numbers, extent: Extent | None) -> Pieces:
    """The path from some nodes of member 0 to the next ones; where nodes are spread, that of all ranks."""
    count = int(gathered(comm, np.array([len(begins)])).sum())
    first, last = problem.grid.times[begins], problem.grid.times[begins + 1]
    points = max(2, min(POINTS_PER_PIECE, MOST_POINTS // max(count, 1)))
    if problem.model.kind == "map":
        times = np.stack([first, last], axis=1)
    else:
        times = first[:, None] + (last - first)[:, None] * np.linspace(0.0, 1.0, points)
        times[:, -1] = last
    parameters = problem.fixed.copy()
    parameters[list(problem.free)] = z.parameters[0]
    states = np.zeros((0, times.shape[1], len(problem.model.states)))
    if len(begins):
        states = propagate(problem.model, times, z.nodes[0, begins], parameters, method=problem.method).states
    linked = gathered(comm, np.array([np.count_nonzero(problem.grid.linked)])).sum()
    numbers = gathered(comm, begins + (extent.first_node if extent else 0))
    return Pieces(gathered(comm, times), gathered(comm, states), None if count == linked else numbers)
