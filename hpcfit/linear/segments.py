"""A long chain in segments: where they begin, and which of them a rank has.

Segments depend on the lengths of the experiments alone, so that what is computed of them, and the order in
which it is put together, does not depend on the number of ranks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

Numbers = NDArray[np.int64]

LENGTH = 128  # nodes of a segment, at most


@dataclass(frozen=True)
class Segments:
    """Some segments in a row, those of a rank or all of them; nodes are numbered from the first of them."""

    nodes: Numbers  # (S,) how many each has
    experiment: Numbers  # (S,)
    number: Numbers  # (S,) of a segment within its experiment
    of: Numbers  # (S,) how many segments that experiment has

    @classmethod
    def cut(cls, lengths: Sequence[int] | Numbers, longest: int = LENGTH) -> Segments:
        """All segments of experiments with so many nodes; those of one differ by at most one node."""
        counts = -(-np.asarray(lengths, dtype=np.int64) // longest)
        experiment = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(experiment)) - np.repeat(np.cumsum(counts) - counts, counts)
        each, extra = np.divmod(np.asarray(lengths, dtype=np.int64), counts)
        nodes = each[experiment] + (number < extra[experiment])
        return cls(nodes, experiment, number, counts[experiment])

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, part: slice) -> Segments:
        return Segments(self.nodes[part], self.experiment[part], self.number[part], self.of[part])

    @cached_property
    def first(self) -> Numbers:
        """The first node of each (S,)."""
        return np.cumsum(self.nodes) - self.nodes

    @cached_property
    def joined(self) -> NDArray[np.bool_]:
        """Whether a link leads on from the last node of each (S,)."""
        return self.number < self.of - 1

    @cached_property
    def order(self) -> Numbers:
        """Segments that are alike stand together (S,)."""
        return np.lexsort((np.arange(len(self)), self.joined, self.nodes))

    def sums(self, values: Array) -> Array:
        """Sums over the nodes of each segment (S, ...) of values by node (N, ...)."""
        there = self.first < len(values)  # the last may have a node and no link
        totals = np.zeros((len(self), *values.shape[1:]))
        totals[there] = np.add.reduceat(values, self.first[there], axis=0)
        return totals

    def shares(self, parts: int, cost: Array | None = None) -> list[slice]:
        """Which segments each of so many ranks gets, not more than there are segments.

        In a row, at least one, with about the same cost (S,).
        """
        weight = self.nodes.astype(float) if cost is None else cost
        middle = (np.cumsum(weight) - 0.5 * weight) / weight.sum() * parts
        cuts = np.searchsorted(middle, np.arange(parts + 1))
        cuts[-1] = len(self)
        for rank in range(parts - 1, 0, -1):  # everybody has at least one
            cuts[rank] = min(cuts[rank], cuts[rank + 1] - 1)
        for rank in range(1, parts):
            cuts[rank] = max(cuts[rank], cuts[rank - 1] + 1)
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(cuts)]
