"""More values over time than dots can show: their density, and those that lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.records import Array
from hpcfit.reporting.style import INK, PALE, VERMILION

COLUMNS, ROWS = 160, 61  # an odd number of rows: one of them around zero
APART = 4.0  # a value beyond is a dot of its own
MOST_APART = 400


def draw_density(axis: Any, times: Array, values: Array, *, reach: float) -> None:
    """The part of the values of each column of time that lie in each row up to +- reach; dots beyond four."""
    with np.errstate(invalid="ignore"):
        apart = np.flatnonzero(np.abs(values) > APART)
    if len(apart) > MOST_APART:
        apart = apart[np.argpartition(-np.abs(values[apart]), MOST_APART)[:MOST_APART]]
    begin, end = float(times.min()), float(times.max())
    extent = (begin, end if end > begin else begin + 1.0, -reach, reach)
    image = density(times, values, extent)
    style = {"cmap": "Blues", "interpolation": "nearest", "aspect": "auto", "origin": "lower", "vmin": 0.0}
    axis.imshow(image, extent=extent, vmax=float(image.max(initial=0.0)) or 1.0, **style)
    for height, color in ((-2.0, PALE), (0.0, INK), (2.0, PALE)):
        axis.axhline(height, color=color, linewidth=0.5)
    dots = {"color": VERMILION, "markersize": 1.8, "markeredgewidth": 0}
    axis.plot(times[apart], values[apart], "o", **dots)


def density(times: Array, values: Array, extent: tuple[float, float, float, float]) -> Array:
    """Shares (ROWS, COLUMNS) of the values of each column; a column without values is zero."""
    begin, end, low, high = extent
    there = np.isfinite(values)
    column = np.minimum((times[there] - begin) * (COLUMNS / (end - begin)), COLUMNS - 1).astype(np.int64)
    row = np.clip((values[there] - low) * (ROWS / (high - low)), 0, ROWS - 1).astype(np.int64)
    counts = np.bincount(column * ROWS + row, minlength=COLUMNS * ROWS).reshape(COLUMNS, ROWS)
    return (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).T
