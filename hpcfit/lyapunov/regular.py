"""Which trajectories are regular: their tangents grow no faster than time itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

MOST_IN_AN_OCTAVE = 4.0  # of regular orbits of Hénon and Heiles at all energies: ln 2 +- 2.5 at most


def regular(growth: Array) -> NDArray[np.bool_]:
    """Trajectories (L,) without exponential growth, from that of their directions (L, B, k).

    Between the times T/2 and T a tangent of a quasi-periodic orbit grows by ln 2 and an oscillation, as it
    did between T/4 and T/2, and so on; one of a periodic orbit or an equilibrium by less. Chaos adds lambda
    T/2, whenever it sets in: a trajectory is chaotic if there is too much in any octave. The first block is
    not judged, as what is below the units of time of the flow is not known.
    """
    accumulated = accumulate(growth[..., :1])[..., 0]
    times = octaves(growth.shape[1])
    if len(times) > 2:
        times = times[1:]
    most = np.diff(accumulated[:, times], axis=1).max(axis=1)
    calm: NDArray[np.bool_] = most <= MOST_IN_AN_OCTAVE
    return calm


def accumulate(growth: Array) -> Array:
    """Sums from the begin on: (L, B + 1, k), zero first."""
    start = np.zeros_like(growth[:, :1])
    return np.concatenate([start, np.cumsum(growth, axis=1)], axis=1)


def octaves(blocks: int) -> NDArray[np.int64]:
    """..., B/4, B/2, B, and 0 before them, as whole numbers."""
    halves = [blocks >> k for k in range(blocks.bit_length())]
    return np.array([0, *reversed(halves)], dtype=np.int64)
