"""One long chain, or one of many experiments, whose nodes are spread over ranks.

Nodes belong to segments (`segments.py`), whose parts are computed side by side in machine code: with exact
continuity they are condensed to windows, with weak continuity to rows on their first nodes. What is left is
joined along a tree (`coarse.py`), and the way back gives every node its increment. All sums go by segment, so
that the numbers do not depend on the ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from hpcfit.linear.chain import Chain, Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.coarse import Coarse, Exact, Weak
from hpcfit.linear.inverse import Held
from hpcfit.linear.segmented import Condensed, Task
from hpcfit.linear.segments import Numbers, Segments
from hpcfit.linear.tree import Forest, Nodes
from hpcfit.mpi.together import gathered
from hpcfit.records import Array


class TreeSolver:
    """Windows of all ranks by a tree of joints."""

    def __init__(self, comm: Any, task: Task) -> None:
        self.comm, self.task = comm, task
        self.kind = Exact(task.library, task.n, task.q)

    def solve(self, windows: Condensed) -> tuple[Array, Array]:
        """States of this rank's windows (W, n), and dp (q,)."""
        self._grow(windows)
        values, p = self.coarse.solve()
        return self._window_states(values, 1.0)[..., 0], p

    def _grow(self, windows: Condensed) -> None:
        counts, segments = windows.counts, self.task.segments
        group = np.repeat(np.arange(len(counts)), counts)
        index = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
        leaves = Nodes.leaves(group, index, counts[group])
        self.inner = Forest(self.kind.join, self.kind.leaves(windows.rows, windows.ends), leaves)
        self.by_segment = self.inner.roots.take(np.argsort(self.inner.roots.group))
        self.coarse = Coarse(self.comm, self.kind, self.inner.blocks[self.by_segment.at], segments)

    def _window_states(self, values: Array, one: float) -> Array:
        def split(ways: Array, whole: Array) -> tuple[Array, Array]:
            return self.kind.split(ways, whole, one)

        return self.inner.spread(self.by_segment, values, split)[:, : self.task.n]

    @property
    def rank(self) -> int:
        return self.coarse.rank

    @property
    def freedoms(self) -> int:
        return self.coarse.freedoms

    def factors(self, windows: Condensed) -> tuple[Array, Array]:
        """L of the covariance: windows (W, n, n + q), parameters (q, n + q); see `Coarse.factors`."""
        self._grow(windows)
        values, parameters = self.coarse.factors()
        return self._window_states(values, 0.0), parameters

    def unseen(self, windows: Condensed) -> tuple[Array, Array]:
        """Directions that the data do not see, as `factors`."""
        self._grow(windows)
        values, parameters = self.coarse.unseen()
        return self._window_states(values, 0.0), parameters


class LongInverse:
    """J+ of (4.9) for one long chain; see `inverse.Inverse`. All ranks make it and use it together."""

    held: Held | None = None

    def __init__(
        self, comm: Any, chain: Chain, z: Unknowns, solver: Callable[[Any, Task], Any] = TreeSolver
    ) -> None:
        self.comm, self.chain, self.task = comm, chain, Task(comm, chain, z)
        self.solver = solver(comm, self.task)
        self.scales = self.task.scales
        self._scaled, windows = self._solved(chain.residuals)
        self._windows = windows
        self.step = self.scales.unscaled(self._scaled)
        self.increment = self._length(self._scaled)
        self.objective = gathered(comm, windows.objective).sum(keepdims=True)
        self.defect = gathered(comm, windows.defect).max(keepdims=True, initial=0.0)
        self.freedoms: int = self.solver.freedoms
        self.rank = np.array([self.solver.rank])

    def _solved(self, residuals: Residuals) -> tuple[Unknowns, Condensed]:
        windows = self.task.condense(residuals)
        states, p = self.solver.solve(windows)
        nodes = self.task.expand(windows, states, p, residuals.links[0])
        return Unknowns(nodes[None], p[None]), windows

    def _length(self, step: Unknowns) -> Array:
        return spread_norm(self.comm, self.task.segments, step)

    @cached_property
    def residuals(self) -> Residuals:
        return scaled_residuals(self.chain.residuals, self.scales)

    def away(self, alpha: Array, which: Numbers, residuals: Residuals) -> Array:
        if not len(which):
            return np.zeros(0)
        finite = np.array([residuals.finite().all()])
        if not gathered(self.comm, finite).all():
            return np.full(1, np.nan)
        bar, _ = self._solved(residuals)
        return self._length(bar.plus(self._scaled, alpha - 1.0))

    def multipliers(self, which: Numbers) -> Array:
        raise NotImplementedError("T1 is for problems that a rank has as a whole")

    def covariance_factor(self, which: Numbers, *, all_nodes: bool) -> tuple[Array, Array]:
        """Of the first node of each experiment, on all ranks; of all nodes there are `node_errors`."""
        assert not all_nodes
        n, q = self.task.n, self.task.q
        windows, parameters = self._factors
        first = self._at_begins(windows)
        count = len(first)
        nodes = np.zeros((count, n, count * n + q))
        for e in range(count):
            nodes[e, :, e * n : (e + 1) * n] = first[e, :, :n]
        nodes[:, :, count * n :] = first[:, :, n:]
        border = np.concatenate([np.zeros((q, count * n)), parameters[:, n:]], axis=1)
        return (
            (nodes * self.scales.states[0][:, None])[None],
            (border * self.scales.parameters[0][:, None])[None],
        )

    def node_errors(self, which: Numbers) -> Array:
        """Root of the diagonal of the covariance at this rank's nodes (1, N, n)."""
        windows, parameters = self._factors
        total = np.zeros((self.task.nodes, self.task.n))
        for column in range(windows.shape[2]):
            total += self.task.expand(self._windows, windows[..., column], parameters[:, column], None) ** 2
        return np.sqrt(total)[None] * self.scales.states[:, None]

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self.solver.factors(self._windows)
        return found

    def _at_begins(self, windows: Array) -> Array:
        """What stands at the first window of each experiment, of all ranks (e, ...)."""
        begins = np.flatnonzero(self.task.segments.number == 0)
        at = (np.cumsum(self._windows.counts) - self._windows.counts)[begins]
        return gathered(self.comm, windows[at])

    def blind(self, which: Numbers) -> tuple[Array, Array]:
        if self.rank[0] == self.freedoms:
            return np.zeros((1, self.freedoms - self.task.q)), np.zeros((1, self.task.q))
        windows, parameters = self.solver.unseen(self._windows)
        first = self._at_begins(windows)
        return np.linalg.norm(first, axis=2).reshape(1, -1), np.linalg.norm(parameters, axis=1)[None]


def spread_norm(comm: Any, segments: Segments, step: Unknowns) -> Array:
    """As `Unknowns.norms`, for nodes that are spread over ranks (1,)."""
    own = segments.sums((step.nodes[0] ** 2).sum(axis=1))
    total = gathered(comm, np.stack([own, segments.nodes], axis=1)).sum(axis=0)
    length: Array = np.sqrt(total[:1] / total[1] + (step.parameters**2).sum(axis=1))
    return length


def long_weak_step(
    comm: Any, chain: Chain, z: Unknowns, looseness: Array, holds: Array
) -> tuple[Scales, Unknowns]:
    """As `weak.loose_step`: natural scales and the step with loose continuity, in the problem's own units."""
    task = Task(comm, chain, z)
    pivots, blocks, _, _ = task.stretch(float(looseness[0]), holds[0])
    values, p = Coarse(comm, Weak(task.library, task.n, task.q), blocks, task.segments).solve()
    nodes = task.unstretch(pivots, values[..., 0], p)
    return task.scales, task.scales.unscaled(Unknowns(nodes[None], p[None]))
