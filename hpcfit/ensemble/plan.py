"""The members of an ensemble: realisations of every cell of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Cells are the product of the keys' values, the last key varies fastest; without a grid there is one.

    Members count from 1, realisation by realisation: more realisations add members, and leave those that are
    there as they are. Random numbers belong to (seed, realisation): all cells see the same noise.
    """

    realisations: int  # of each cell
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each key has."""
        return tuple(len(values) for values in self.grid.values())

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def members(self) -> int:
        return self.realisations * self.cells

    @property
    def numbers(self) -> range:
        """Of all members."""
        return range(1, self.members + 1)

    def cell_of(self, members: Numbers) -> Numbers:
        """The cells (m,) of members (m,); they count from 0."""
        return (np.asarray(members, dtype=np.int64) - 1) % self.cells

    def realisation_of(self, members: Numbers) -> Numbers:
        """The realisations (m,) of members (m,); they count from 1."""
        return (np.asarray(members, dtype=np.int64) - 1) // self.cells + 1

    def member(self, cell: int, realisation: int) -> int:
        return (realisation - 1) * self.cells + cell + 1

    def choices(self, cells: Numbers) -> Numbers:
        """Which value of each key (m, n_keys) the cells (m,) have."""
        cells = np.asarray(cells, dtype=np.int64)
        if not self.grid:
            return np.zeros((len(cells), 0), dtype=np.int64)
        return np.stack(np.unravel_index(cells, self.shape), axis=1)

    def values(self, cell: int) -> dict[str, Any]:
        """The value of each key in a cell."""
        (chosen,) = self.choices(np.array([cell]))
        return {key: values[k] for (key, values), k in zip(self.grid.items(), chosen.tolist(), strict=True)}
