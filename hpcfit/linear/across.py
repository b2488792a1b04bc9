"""Sums over all nodes, whoever has them: a rank has all of them, or the nodes of some segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.linear.chain import Residuals, Unknowns
from hpcfit.linear.segments import Segments
from hpcfit.mpi.neighbours import from_after, from_before
from hpcfit.mpi.together import gathered
from hpcfit.records import Array


@dataclass(frozen=True)
class Across:
    """All nodes of a problem; without segments a rank has all of them."""

    comm: Any
    segments: Segments | None = None

    def total(self, by_node: Array) -> Array:
        """Sums (M,) of values by node (M, N), or by link."""
        if self.segments is None:
            return by_node.sum(axis=1)
        return gathered(self.comm, self.segments.sums(by_node[0])).sum(keepdims=True)

    def largest(self, values: Array) -> Array:
        """The largest (M,) of what is not negative (M, ...)."""
        own: Array = values.reshape(len(values), -1).max(axis=1, initial=0.0)
        return own if self.segments is None else gathered(self.comm, own).max(keepdims=True)

    def added(self, own: Array) -> Array:
        """Sums (M, ...) of what every rank has of each member."""
        return own if self.segments is None else gathered(self.comm, own).sum(axis=0, keepdims=True)

    def nodes(self, z: Unknowns) -> int:
        """How many nodes there are."""
        if self.segments is None:
            return z.nodes.shape[1]
        return int(gathered(self.comm, np.array([z.nodes.shape[1]])).sum())

    def objective(self, residuals: Residuals) -> Array:
        """||F1||^2 (M,)."""
        return residuals.objective() if self.segments is None else self.total((residuals.rows**2).sum(axis=2))

    def norms(self, step: Unknowns) -> Array:
        """Lengths (M,): root mean square over the nodes, and all parameters."""
        if self.segments is None:
            return step.norms()
        mean = self.total((step.nodes**2).sum(axis=2)) / self.nodes(step)
        length: Array = np.sqrt(mean + (step.parameters**2).sum(axis=1))
        return length

    def halves(self, by_link: Array, nodes: int) -> Array:
        """Values of links (M, N - 1), or N, shared by the nodes (M, N) beside them."""
        shared = np.zeros((len(by_link), nodes))
        shared[:, : by_link.shape[1]] += 0.5 * by_link
        shared[:, 1:] += 0.5 * by_link[:, : nodes - 1]
        if self.segments is not None:
            crossing = by_link[:, nodes - 1 :]  # to the next rank's first node, if there is one
            arriving = from_before(self.comm, crossing)
            if arriving is not None and arriving.shape[1]:
                shared[:, 0] += 0.5 * arriving[:, 0]
        return shared

    def around(self, by_node: Array, reach: int) -> Array:
        """Sums (M, N) over each node and so many on both sides of it."""
        before: Array | None = None
        after: Array | None = None
        if self.segments is not None:
            before, after = (
                from_before(self.comm, by_node[:, -reach:]),
                from_after(self.comm, by_node[:, :reach]),
            )
        members, nodes = by_node.shape
        padded = np.zeros((members, nodes + 2 * reach))
        padded[:, reach : reach + nodes] = by_node
        if before is not None:
            padded[:, reach - before.shape[1] : reach] = before
        if after is not None:
            padded[:, reach + nodes : reach + nodes + after.shape[1]] = after
        sums = np.zeros_like(by_node)
        for shift in range(2 * reach + 1):
            sums += padded[:, shift : shift + nodes]
        return sums
