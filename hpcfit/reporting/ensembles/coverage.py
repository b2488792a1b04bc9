"""How often intervals hold the truth, and how often chance lets them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

LEVELS = (0.5, 0.9, 0.95, 0.99)
BAND = 0.999  # of the coverages that chance makes of correct intervals


@dataclass(frozen=True)
class Coverage:
    """Of the single intervals of one unknown at one level; numbers of members."""

    level: float
    members: int  # that have an interval, at least 1
    holding: int  # whose interval holds the truth
    low: int  # ends of the band of `holding`
    high: int

    @property
    def observed(self) -> float:
        return self.part(self.holding)

    @property
    def outside(self) -> bool:
        return not self.low <= self.holding <= self.high

    def part(self, count: int) -> float:
        """A number of members as a part of all that have an interval."""
        return count / self.members


def coverages(deviations: Array, quantiles: Array) -> tuple[Coverage, ...]:
    """Coverage at all LEVELS of (estimate - truth) / error (M,), with Student's quantiles (n_levels, M).

    Members without an error or without degrees of freedom are not counted; nothing if there are no others.
    """
    known = ~np.isnan(deviations) & ~np.isnan(quantiles).any(axis=0)
    count, distance = int(known.sum()), np.abs(deviations)
    if not count:
        return ()
    return tuple(
        Coverage(level, count, int((known & (distance <= quantile)).sum()), *binomial_band(count, level))
        for level, quantile in zip(LEVELS, quantiles, strict=True)
    )


def student_quantiles(degrees_of_freedom: NDArray[np.int64]) -> Array:
    """Half widths of single intervals in standard errors (n_levels, M); NaN without degrees of freedom."""
    from scipy.special import stdtrit

    freedom, place = np.unique(degrees_of_freedom, return_inverse=True)
    tails = 0.5 + 0.5 * np.array(LEVELS)[:, None]
    quantiles: Array = np.where(freedom > 0, stdtrit(np.maximum(freedom, 1), tails), np.nan)
    return quantiles[:, place]


def binomial_band(count: int, level: float) -> tuple[int, int]:
    """The two-sided BAND of how many of `count` intervals hold the truth, if each does so with `level`."""
    tail = 0.5 * (1.0 - BAND)
    return _binomial_quantile(tail, count, level), _binomial_quantile(1.0 - tail, count, level)


def _binomial_quantile(probability: float, count: int, level: float) -> int:
    """The least k whose cumulated binomial probability reaches the given one."""
    from scipy.special import bdtr, bdtrik

    # bdtrik is a real number and rounded: the whole ones around it are tried
    near = np.clip(np.floor(bdtrik(probability, count, level)) + np.arange(-1, 3), 0, count)
    return int(near[np.argmax(bdtr(near, count, level) >= probability)])
