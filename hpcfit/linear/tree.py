"""Neighbours that become one, in pairs, then pairs of pairs: a fixed tree, whoever has its leaves.

A forest has groups of leaves, numbered within their group. A rank joins what it has; nodes whose other half
is elsewhere are left over, and everybody joins the leftovers of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hpcfit.linear.segments import Numbers
from hpcfit.records import Array

Join = Callable[[Numbers, Numbers, Numbers, Array], Array]  # left, right, into, blocks -> ways
Split = Callable[[Array, Array], tuple[Array, Array]]  # ways, values of whole -> of left, of right


@dataclass(frozen=True)
class Nodes:
    """Nodes of a forest: where their blocks are, and where they stand."""

    at: Numbers
    group: Numbers
    level: Numbers
    index: Numbers  # within the level of their group
    total: Numbers  # nodes of that level

    def take(self, which: Numbers | np.ndarray) -> Nodes:
        return Nodes(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @classmethod
    def joined(cls, *parts: Nodes) -> Nodes:
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def leaves(cls, group: Numbers, index: Numbers, total: Numbers) -> Nodes:
        return cls(np.arange(len(group)), group, np.zeros_like(group), index, total)

    def __len__(self) -> int:
        return len(self.at)


@dataclass
class Forest:
    """Blocks of leaves and of all that was joined from them; `roots` and what was left over."""

    join: Join
    blocks: Array  # (B, ...)
    leaves: Nodes
    roots: Nodes = field(init=False)
    left_over: Nodes = field(init=False)
    _joints: list[tuple[Numbers, Numbers, Numbers, Array]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.blocks)
        room = np.empty((2 * count, *self.blocks.shape[1:]))
        room[:count] = self.blocks
        self.blocks, self._used = room, count
        self._climb()

    def _climb(self) -> None:
        """Level by level; leaves come in at the level that they have."""
        here = self.leaves.take(np.zeros(0, dtype=np.int64))
        done, stranded, level = [here], [here], 0
        last = int(self.leaves.level.max(initial=0))
        while len(here) or level <= last:
            here = Nodes.joined(here, self.leaves.take(self.leaves.level == level))
            here = here.take(np.lexsort((here.index, here.group)))
            done.append(here.take(here.total == 1))
            here = here.take(here.total > 1)
            follows = np.zeros(len(here), dtype=bool)
            follows[:-1] = (here.group[1:] == here.group[:-1]) & (here.index[1:] == here.index[:-1] + 1)
            pair = (here.index % 2 == 0) & follows
            second = np.concatenate([[False], pair[:-1]]) if len(pair) else pair
            alone = (here.index % 2 == 0) & (here.index == here.total - 1)
            stranded.append(here.take(~(pair | second | alone)))
            at = here.at.copy()
            at[pair] = self._join(here.at[pair], here.at[second])
            level += 1
            up = Nodes(at, here.group, here.level + 1, here.index // 2, (here.total + 1) // 2)
            here = up.take(pair | alone)
        self.roots, self.left_over = Nodes.joined(*done), Nodes.joined(*stranded)

    def _join(self, left: Numbers, right: Numbers) -> Numbers:
        into = self._used + np.arange(len(left))
        self._used += len(left)
        if len(left):
            self._joints.append((left, right, into, self.join(left, right, into, self.blocks)))
        return into

    def spread(self, known: Nodes, values: Array, split: Split) -> Array:
        """Values of all leaves, from those of nodes in the order of `known`."""
        found = np.empty((self._used, *values.shape[1:]))
        found[known.at] = values
        for left, right, into, ways in reversed(self._joints):
            found[left], found[right] = split(ways, found[into])
        return found[self.leaves.at]
