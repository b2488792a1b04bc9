"""Means of correlated series with honest errors.

The variance of a mean is the spectral density of the series at frequency zero. It is read from the
projections on the lowest cosines over a run (Müller 2007; Lazarus, Lewis, Stock and Watson 2018), whose
squares all have that mean: of n projections a t quantile with n degrees of freedom makes the interval.
Batch means carry the ends of every batch, which for exponents are most of their scatter (log |f| at the
ends, the angles of the frame); cosines carry the ends of the run alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

FREEDOM = 24  # degrees of freedom of an error
SLOW_FREEDOM = 4  # where the series remembers over such times
HIGHEST, HIGHER = 64, 40  # up to which cosine and by how many it is seen whether it does
SLOW = 1.5  # the lowest projections over the higher ones, in squares
FEWEST_HIGHER = 8
LEVEL = 0.95


@dataclass(frozen=True)
class Means:
    """Means of q series over time and over trajectories; errors are NaN where there are too few blocks."""

    values: Array  # (q,)
    errors: Array  # (q,) standard errors
    half_widths: Array  # (q,) of 95 % intervals
    memory: Array  # (q,) power at the lowest frequencies over that at higher ones; 1: no correlation

    @property
    def slow(self) -> NDArray[np.bool_]:
        """Correlated over times that are not short against the run, as far as can be seen."""
        remembers: NDArray[np.bool_] = self.memory > SLOW
        return remembers


def means(series: Array) -> Means:
    """The means of series (L, B, q): L trajectories, B values one after the other, q quantities.

    The spread between trajectories counts L - 1 of the degrees of freedom, cosines within them the rest.
    """
    lanes, count, _ = series.shape
    of_lanes = series.mean(axis=1)  # (L, q)
    values = of_lanes.mean(axis=0)
    between = ((of_lanes - values) ** 2).sum(axis=0) / lanes
    lowest, higher = _numbers(lanes, count)
    squares = _projections(series, np.concatenate([lowest, higher])) ** 2 / (lanes * count)  # (K, L, q)
    usual, slowest = (_variance(between, squares, wanted) for wanted in (FREEDOM, SLOW_FREEDOM))
    memory = _memory(usual[0], squares[len(lowest) :])
    widths = np.array([_student(freedom) * np.sqrt(variance) for variance, freedom in (usual, slowest)])
    errors = np.sqrt([usual[0], slowest[0]])
    chosen = np.where((memory > SLOW) & (widths[1] > widths[0]), 1, 0)[None]
    return Means(
        values,
        np.take_along_axis(errors, chosen, axis=0)[0],
        np.take_along_axis(widths, chosen, axis=0)[0],
        memory,
    )


def _numbers(lanes: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the lowest cosines, and of some between them and the highest one: of many trajectories fewer."""
    most = min(_cosines(FREEDOM, lanes), count - 1)
    some = max(FEWEST_HIGHER, HIGHER // lanes)
    if count - 1 <= most:
        return np.arange(1, most + 1), np.zeros(0, dtype=np.int64)
    higher = np.rint(np.geomspace(most + 1, min(HIGHEST, count - 1), some)).astype(np.int64)
    if some >= min(HIGHEST, count - 1) - most:
        higher = np.arange(most + 1, min(HIGHEST, count - 1) + 1)
    return np.arange(1, most + 1), np.unique(higher)


def _projections(series: Array, numbers: NDArray[np.int64]) -> Array:
    """On sqrt(2) cos(pi j (b + 1/2) / B) for some j: (K, L, q)."""
    count = series.shape[1]
    cosines = np.sqrt(2.0 / count) * np.cos(np.pi * np.outer(numbers, np.arange(count) + 0.5) / count)
    found: Array = np.einsum("kb,lbq->klq", cosines, series)  # not BLAS: the same bits with any threads
    return found


def _cosines(wanted: int, lanes: int) -> int:
    """How many cosines of each trajectory give so many degrees of freedom, with the spread between them."""
    return max(0, -(-(wanted - (lanes - 1)) // lanes))


def _variance(between: Array, squares: Array, wanted: int) -> tuple[Array, int]:
    """The variance of the mean (q,) and its degrees of freedom."""
    lanes = squares.shape[1]
    used = squares[: _cosines(wanted, lanes)]
    freedom = lanes - 1 + len(used) * lanes
    if not freedom:
        return np.full_like(between, np.nan), 0
    return (between + used.sum(axis=(0, 1))) / freedom, freedom


def _memory(variance: Array, higher: Array) -> Array:
    """Power at the lowest frequencies over that at higher ones (q,); 1 where it cannot be told."""
    if len(higher) * higher.shape[1] < FEWEST_HIGHER:
        return np.ones(len(variance))
    usual = higher.mean(axis=(0, 1))
    ratio: Array = np.divide(variance, usual, out=np.ones(len(variance)), where=usual > 0.0)
    return ratio


def _student(freedom: int) -> float:
    """Half the width of a 95 % interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + 0.5 * LEVEL)) if freedom else float("nan")
