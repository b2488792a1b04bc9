"""A line of text that shows a curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

_DOTS = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]])  # braille: from below, left right
_MARKS = ".-'"  # the heights within one ASCII character


def curve(times: Array, values: Array, width: int, *, unicode: bool, height: int = 1) -> list[str]:
    """`height` lines of `width` characters, the highest first; blank where values are missing."""
    columns, levels = (2 * width, 4 * height) if unicode else (width, 3 * height)
    low, high = _by_column(times, values, columns)
    filled = np.isfinite(low)
    if not filled.any():
        return [" " * width] * height
    floor, top = low[filled].min(), high[filled].max()
    bottom, peak = (_level(edge, floor, top, levels) for edge in (low, high))
    if not unicode:
        bottom = peak = (bottom + peak) // 2
    bits = np.zeros((levels, columns), dtype=bool)
    for column in np.flatnonzero(filled):
        bits[bottom[column] : peak[column] + 1, column] = True
    return _braille(bits, height) if unicode else _ascii(bits, height)


def _level(values: Array, floor: float, top: float, levels: int) -> NDArray[np.int_]:
    """Heights of 0..levels - 1; the middle if all values are the same."""
    size = max(abs(floor), abs(top))
    if not top > floor or size < 1e-300:
        return np.full(len(values), (levels - 1) // 2)
    share = (values / size - floor / size) / (top / size - floor / size)
    return np.rint(np.nan_to_num(share) * (levels - 1)).astype(int)


def _by_column(times: Array, values: Array, columns: int) -> tuple[Array, Array]:
    """Least and greatest value of each column; a column between samples takes the line between them."""
    good = np.isfinite(values) & (np.abs(values) < 1e300)
    if not good.any():
        return np.full(columns, np.nan), np.full(columns, np.nan)
    span = times[-1] - times[0]
    place = np.zeros(len(times)) if span == 0 else (times - times[0]) / span * (columns - 1)
    column = np.rint(place).astype(int)
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    np.minimum.at(low, column[good], values[good])
    np.maximum.at(high, column[good], values[good])
    if len(times) < columns:
        held = np.interp(np.arange(columns), place[good], values[good])
        inside = np.interp(np.arange(columns), place, good.astype(float)) == 1.0
        between = ~np.isfinite(low) & inside & (len(times) > 1)
        low[between] = high[between] = held[between]
    return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)


def _braille(bits: np.ndarray, height: int) -> list[str]:
    cells = bits.reshape(height, 4, -1, 2)  # row of text, dot from below, character, left right
    codes = 0x2800 + np.einsum("rdcs,ds->rc", cells, _DOTS)
    return ["".join(map(chr, row)).replace("\u2800", " ") for row in codes[::-1]]


def _ascii(bits: np.ndarray, height: int) -> list[str]:
    cells = bits.reshape(height, 3, -1)
    rows = [["".join(_MARKS[k] for k in range(3) if cell[k])[:1] or " " for cell in row.T] for row in cells]
    return ["".join(row) for row in rows[::-1]]
