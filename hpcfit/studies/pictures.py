"""What pictures of a fit need of its path: pieces from node to node, all or those that are looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import propagate
from hpcfit.linear.chain import Unknowns
from hpcfit.records import Array, Pieces
from hpcfit.shooting.grid import Grid
from hpcfit.shooting.problem import Problem

Numbers = NDArray[np.int64]

POINTS_PER_PIECE = 9
MOST_POINTS = 20_000  # of a picture's path; of longer series only some pieces are kept
BEGINNING, AROUND, STRETCHES = 160, 25, 3  # data times that reporting/fits/stretches.py looks at from near


def drawn_pieces(grid: Grid, residuals: Sequence[Array]) -> Numbers:
    """Nodes at which the pieces begin that pictures show.

    All of them; of a long series the first ones, and those around the largest residuals.
    """
    linked = np.append(grid.linked, False)
    if linked.sum() <= MOST_POINTS // POINTS_PER_PIECE:
        return np.flatnonzero(linked)
    chosen = np.zeros(len(linked), dtype=bool)
    for node_of, values in zip(grid.node_of, residuals, strict=True):
        chosen[node_of[:BEGINNING]] = True
        sizes = np.nan_to_num(np.abs(values)).max(axis=1)
        for _ in range(STRETCHES if len(node_of) > BEGINNING else 0):
            k = int(np.argmax(sizes))
            first = max(min(k - AROUND, len(sizes) - 2 * AROUND - 1), 0)
            chosen[node_of[max(first - 1, 0) : first + 2 * AROUND + 1]] = True
            sizes[max(first - AROUND, 0) : first + 3 * AROUND + 1] = 0.0
    return np.flatnonzero(chosen & linked)


def path_pieces(problem: Problem, z: Unknowns, begins: Numbers) -> Pieces:
    """The path from some nodes of member 0 to the next ones."""
    first, last = problem.grid.times[begins], problem.grid.times[begins + 1]
    points = max(2, min(POINTS_PER_PIECE, MOST_POINTS // max(len(begins), 1)))
    if problem.model.kind == "map":
        times = np.stack([first, last], axis=1)
    else:
        times = first[:, None] + (last - first)[:, None] * np.linspace(0.0, 1.0, points)
        times[:, -1] = last
    parameters = problem.fixed.copy()
    parameters[list(problem.free)] = z.parameters[0]
    lanes = propagate(problem.model, times, z.nodes[0, begins], parameters, method=problem.method)
    every = len(begins) == np.count_nonzero(problem.grid.linked)
    return Pieces(times, lanes.states, None if every else begins)
