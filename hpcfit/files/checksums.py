"""Checksums of rows that add up: those of all parts together are that of the whole, in any order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_GOLDEN = 0x9E3779B97F4A7C15
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def checksums(places: NDArray[np.int64], rows: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Of every array of rows (m, ...), whose rows lie at these places (m,) among all members.

    The sum modulo 2**64 over the rows of h(h(place) + sum over the row's 64-bit words w of h(w + k g)),
    k = 1, 2, ..., with the mixing h and the constant g of splitmix64: Steele, Lea and Flood (2014).
    """
    seats = _mixed(places.astype(np.uint64))
    return {
        name: int(_mixed(seats + _row_words(values)).sum(dtype=np.uint64)) for name, values in rows.items()
    }


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The checksums of two sets of rows together."""
    return {name: (one.get(name, 0) + other.get(name, 0)) % 2**64 for name in {**one, **other}}


def _row_words(values: NDArray[Any]) -> Words:
    """One word for each row (m,)."""
    wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
    words = np.ascontiguousarray(wide).view(np.uint64)
    words = words.reshape(len(values), math.prod(values.shape[1:]))
    total = np.zeros(len(values), dtype=np.uint64)
    for k in range(words.shape[1]):
        total += _mixed(words[:, k] + np.uint64((k + 1) * _GOLDEN % 2**64))
    return total


def _mixed(words: Words) -> Words:
    """splitmix64's output function."""
    words = (words ^ (words >> _SHIFTS[0])) * _MIX[0]
    words = (words ^ (words >> _SHIFTS[1])) * _MIX[1]
    return words ^ (words >> _SHIFTS[2])
