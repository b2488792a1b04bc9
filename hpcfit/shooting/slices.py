"""A long problem whose nodes are spread over ranks: each integrates, reads and linearises its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns
from hpcfit.linear.segments import Segments
from hpcfit.mpi.neighbours import from_after
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import gathered
from hpcfit.records import Array
from hpcfit.shooting.grid import Grid
from hpcfit.shooting.problem import Problem

STEPS_OF_ALGEBRA = 2.0  # at a node


@dataclass(frozen=True)
class Slice:
    """The nodes of some segments; where the last is linked to the next rank's first, `inner` has that too."""

    inner: Problem  # without data at the node of the next rank
    segments: Segments

    @property
    def nodes(self) -> int:
        """Of this rank."""
        return int(self.segments.nodes.sum())

    def take(self, members: Members) -> Slice:
        return replace(self, inner=self.inner.take(members))

    def put(self, members: Members, other: Slice) -> None:
        self.inner.put(members, other.inner)

    @property
    def grid(self) -> Grid:
        return self.inner.grid

    @property
    def conditions(self) -> None:
        """A problem with conditions is not sliced."""

    @property
    def free(self) -> tuple[int, ...]:
        return self.inner.free

    def observed(self) -> NDArray[np.int64]:
        """How many values of this rank the fit is to (1,)."""
        return self.inner.observed()

    def roughly(self, tolerance: float) -> Slice:
        return replace(self, inner=self.inner.roughly(tolerance))

    def across(self, comm: Any) -> Across:
        return Across(comm, self.segments)

    def residuals(self, comm: Any, z: Unknowns) -> Residuals:
        found = self.inner.residuals(SERIAL, self._extended(comm, z))
        return Residuals(found.rows[:, : self.nodes], found.links)

    def read(self, comm: Any, z: Unknowns) -> tuple[Array, Array]:
        """As of a problem, at the nodes of this rank."""
        values, off = self.inner.read(SERIAL, self._extended(comm, z))
        return values[:, : self.nodes], off[:, : self.nodes]

    def linearise(self, comm: Any, z: Unknowns) -> Chain:
        chain = self.inner.linearise(SERIAL, self._extended(comm, z))
        alive = gathered(comm, chain.finite()).all(keepdims=True)
        return replace(
            chain,
            rows_by_node=chain.rows_by_node[:, : self.nodes],
            rows_by_parameters=chain.rows_by_parameters[:, : self.nodes],
            residuals=Residuals(chain.residuals.rows[:, : self.nodes], chain.residuals.links),
            alive=alive,
            segments=self.segments,
        )

    def failures(self, z: Unknowns) -> str:
        """Where this rank's nodes cannot be integrated; '' if they can."""
        return self.inner.failures(self._repeated(z))

    def cost(self, z: Unknowns) -> Array:
        """What a linearisation of each segment costs (S,), in steps of the integrator."""
        steps = self.inner.steps(self._repeated(z)).astype(float)
        return self.segments.sums(steps) + STEPS_OF_ALGEBRA * self.segments.nodes

    def _repeated(self, z: Unknowns) -> Unknowns:
        """The nodes, and the last again for the next rank's first, where nothing begins."""
        missing = len(self.inner.grid.times) - self.nodes
        nodes = np.concatenate([z.nodes, z.nodes[:, self.nodes - missing :]], axis=1)
        return Unknowns(nodes, z.parameters)

    def _extended(self, comm: Any, z: Unknowns) -> Unknowns:
        """The nodes, and the first of the next rank where a link leads to it."""
        beyond = from_after(comm, z.nodes[:, :1])
        if len(self.inner.grid.times) == self.nodes:
            return z
        assert beyond is not None
        return Unknowns(np.concatenate([z.nodes, beyond], axis=1), z.parameters)
