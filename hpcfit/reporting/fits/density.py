"""More values over time than dots can show: their density, and those that lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.records import Array
from hpcfit.reporting.style import INK, PALE, VERMILION

FEWEST_COLUMNS, MOST_COLUMNS = 24, 160
A_COLUMN = 200  # values that show a distribution
FEW_ROWS, ROWS = 31, 61  # odd numbers: one of them around zero
APART = 4.0  # a value beyond is a dot of its own
MOST_APART = 400


def draw_density(axis: Any, times: Array, values: Array, *, reach: float, most_columns: int) -> None:
    """The part of the values of each column of time that lie in each row up to +- reach; dots beyond four."""
    columns = min(int(np.clip(len(values) // A_COLUMN, FEWEST_COLUMNS, MOST_COLUMNS)), most_columns)
    rows = ROWS if len(values) > 2 * A_COLUMN * MOST_COLUMNS else FEW_ROWS
    with np.errstate(invalid="ignore"):
        apart = np.flatnonzero(np.abs(values) > APART)
    if len(apart) > MOST_APART:
        apart = apart[np.argpartition(-np.abs(values[apart]), MOST_APART)[:MOST_APART]]
    begin, end = float(times.min()), float(times.max())
    extent = (begin, end if end > begin else begin + 1.0, -reach, reach)
    image = density(times, values, extent, (rows, columns))
    style = {"cmap": "Blues", "interpolation": "nearest", "aspect": "auto", "origin": "lower", "vmin": 0.0}
    axis.imshow(image, extent=extent, vmax=float(image.max(initial=0.0)) or 1.0, **style)
    for height, color in ((-2.0, PALE), (0.0, INK), (2.0, PALE)):
        axis.axhline(height, color=color, linewidth=0.5)
    dots = {"color": VERMILION, "markersize": 1.8, "markeredgewidth": 0}
    axis.plot(times[apart], values[apart], "o", **dots)


def density(
    times: Array, values: Array, extent: tuple[float, float, float, float], shape: tuple[int, int]
) -> Array:
    """Shares (rows, columns) of the values of each column; a column without values is zero."""
    (begin, end, low, high), (rows, columns) = extent, shape
    there = np.isfinite(values)
    column = np.minimum((times[there] - begin) * (columns / (end - begin)), columns - 1).astype(np.int64)
    row = np.clip((values[there] - low) * (rows / (high - low)), 0, rows - 1).astype(np.int64)
    counts = np.bincount(column * rows + row, minlength=columns * rows).reshape(columns, rows)
    return (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).T
