"""Fewer points for the same picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

LIMIT = 5_000  # points of one line: more than a page can resolve


def kept(values: Array, limit: int = LIMIT) -> NDArray[np.intp]:
    """Increasing indices of at most `limit` values: first, last, and minimum and maximum of each bin."""
    finite = np.flatnonzero(np.isfinite(values))
    if len(values) <= limit or not len(finite):
        return np.arange(min(len(values), limit))
    edges = np.linspace(0, len(values), max(limit // 3, 2) - 1).astype(int)
    starts = np.unique(edges[:-1])
    low = np.where(np.isfinite(values), values, np.inf)
    high = np.where(np.isfinite(values), values, -np.inf)
    lowest, highest = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
    bins = np.searchsorted(starts, np.arange(len(values)), side="right") - 1
    picked = [np.array([0, len(values) - 1])]
    for extreme in (lowest, highest):
        hits = np.flatnonzero(values == extreme[bins])
        picked.append(hits[np.unique(bins[hits], return_index=True)[1]])
    gaps = np.flatnonzero(~np.isfinite(values))  # one missing value of each bin keeps the gap in the line
    picked.append(gaps[np.unique(bins[gaps], return_index=True)[1]])
    return np.unique(np.concatenate(picked))


def envelope(times: Array, values: Array, limit: int = LIMIT) -> tuple[Array, Array]:
    """A line of at most `limit` points that keeps the extremes of the given one."""
    indices = kept(values, limit)
    return times[indices], values[indices]


def bands(times: Array, values: Array, edges: Array) -> tuple[Array, Array]:
    """Least and greatest value of each column of time (n,) between edges (n + 1,); NaN: no value."""
    starts = np.searchsorted(times, edges)
    starts[-1] = np.searchsorted(times, edges[-1], side="right")
    filled = starts[1:] > starts[:-1]
    low, high = np.full((2, len(edges) - 1), np.nan)
    if filled.any():
        shown, begins = values[: starts[-1]], starts[:-1][filled]
        low[filled], high[filled] = np.fmin.reduceat(shown, begins), np.fmax.reduceat(shown, begins)
    return low, high
