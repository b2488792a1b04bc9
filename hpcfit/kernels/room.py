"""Memory for results, used again when nobody looks at it any more: new pages cost more than numbers."""

from __future__ import annotations

import math

import numpy as np

from hpcfit.records import Array

SMALLEST = 1 << 13  # doubles; smaller arrays are left to numpy
MOST_FREE = 24  # blocks

_free: list[Array] = []


class _Block:
    """Doubles that numpy looks at as long as an array or a view of one needs them."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        _free.append(self.memory)
        if len(_free) > MOST_FREE:
            del _free[0]


def room(*shape: int) -> Array:
    """An array like np.empty(shape); large ones in memory that was used before."""
    count = math.prod(shape)
    if count < SMALLEST:
        return np.empty(shape)
    for k in range(len(_free) - 1, -1, -1):
        if count <= len(_free[k]) <= 2 * count:
            memory = _free.pop(k)
            break
    else:
        memory = np.empty(count)
    whole: Array = np.asarray(_Block(memory))
    return whole[:count].reshape(shape)
