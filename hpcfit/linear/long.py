"""One long chain, or one of many experiments, whose nodes are spread over ranks.

Nodes belong to segments (`segments.py`), whose parts are computed side by side in machine code: with exact
continuity they are condensed to windows, with weak continuity to rows on their first nodes. What is left is
joined along a tree (`coarse.py`), and the way back gives every node its increment. All sums go by segment, so
that the numbers do not depend on the ranks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hpcfit.kernels.chains import segments_kernel
from hpcfit.kernels.room import room
from hpcfit.linear.chain import Chain, Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.coarse import Coarse, Exact, Weak
from hpcfit.linear.compiled import Structure, is_zero, packed, passed
from hpcfit.linear.scaling import SMALLEST_PART
from hpcfit.linear.segments import Numbers, Segments
from hpcfit.linear.tree import Forest, Nodes
from hpcfit.linear.windows import GROWTH
from hpcfit.mpi.together import gathered
from hpcfit.records import Array


class _Seats(ctypes.Structure):
    """The `seats` of kernels/runtime/seats.h."""

    _fields_ = [
        ("count", ctypes.c_long),
        *[(name, ctypes.c_void_p) for name in ("first", "nodes", "joined", "order")],
    ]


class _Windows(ctypes.Structure):
    """The `windows` of kernels/segments.c."""

    _fields_ = [
        ("capacity", ctypes.c_long),
        *[(name, ctypes.c_void_p) for name in ("rows", "ends", "begins", "counts", "objective", "defect")],
    ]


@dataclass(frozen=True)
class Condensed:
    """Windows of a rank's segments: their rows and ends by state and parameters, and right-hand sides."""

    rows: Array  # (W, f, f + 1) triangle
    ends: Array  # (W, n, f + 1) the state after the window
    begins: Numbers  # (W,) the first node
    counts: Numbers  # (S,) how many each segment has
    objective: Array  # (S,) ||F1||^2
    defect: Array  # (S,) largest |F2|


class Task:
    """A rank's part of a chain, in the units of its scales, for machine code."""

    def __init__(self, comm: Any, chain: Chain, z: Unknowns, growth: float = GROWTH) -> None:
        assert chain.segments is not None
        _, nodes, k, n, q = chain.shape
        self.segments, self.library = chain.segments, segments_kernel(n, q, k).library
        self.n, self.q, self.nodes = n, q, nodes
        self.scales = spread_scales(comm, chain, z)
        a, b = packed(chain.rows_by_node), packed(chain.rows_by_parameters)
        arrays: dict[str, Any] = {
            "rows_by_node": a,
            "links_by_node": np.ascontiguousarray(chain.links_by_node),
            "links_by_parameters": np.ascontiguousarray(chain.links_by_parameters),
            "rows": np.ascontiguousarray(chain.residuals.rows),
            "links": np.ascontiguousarray(chain.residuals.links),
            "states": np.ascontiguousarray(self.scales.states),
            "parameters": np.ascontiguousarray(self.scales.parameters),
        }
        if not is_zero(b):
            arrays["rows_by_parameters"] = b
        seats: dict[str, Any] = {
            "first": self.segments.first,
            "nodes": np.ascontiguousarray(self.segments.nodes),
            "joined": self.segments.joined.astype(np.uint8),
            "order": self.segments.order,
        }
        self._kept = (arrays, seats)
        self.struct = Structure(
            members=1,
            nodes=nodes,
            row_strides=(ctypes.c_long * 4)(*(stride // 8 for each in (a, b) for stride in each.strides[:2])),
            growth=growth,
            **{name: array.ctypes.data for name, array in arrays.items()},
        )
        self.seats = _Seats(
            count=len(self.segments), **{name: array.ctypes.data for name, array in seats.items()}
        )
        self._windows = 0
        self.library.condense_segments.restype = ctypes.c_long
        self.library.stretch_pivots.restype = ctypes.c_long

    def call(self, name: str, *arguments: Any) -> int:
        given = [each if isinstance(each, ctypes.Structure) else passed(each) for each in arguments]
        by_reference = [ctypes.byref(each) if isinstance(each, ctypes.Structure) else each for each in given]
        found: int = getattr(self.library, name)(
            ctypes.byref(self.struct), ctypes.byref(self.seats), *by_reference
        )
        return found

    def condense(self, residuals: Residuals) -> Condensed:
        """The windows of all segments, for any residuals."""
        n, f, count = self.n, self.n + self.q, len(self.segments)
        rows, links = np.ascontiguousarray(residuals.rows), np.ascontiguousarray(residuals.links)
        capacity = self._windows or 3 * count + self.nodes // 32
        while True:
            found = Condensed(
                room(capacity, f, f + 1),
                room(capacity, n, f + 1),
                np.empty(capacity, dtype=np.int64),
                np.zeros(count, dtype=np.int64),
                np.zeros(count),
                np.zeros(count),
            )
            out = _Windows(capacity=capacity, **{k: v.ctypes.data for k, v in vars(found).items()})
            self._windows = total = self.call("condense_segments", rows, links, out)
            if total <= capacity:
                break
            capacity = total
        return Condensed(
            found.rows[:total],
            found.ends[:total],
            found.begins[:total],
            found.counts,
            found.objective,
            found.defect,
        )

    def expand(self, windows: Condensed, states: Array, parameters: Array, links: Array | None) -> Array:
        """ds of the nodes (N, n) in units of the scales, from states of windows (W, n) and dp (q,)."""
        nodes = room(self.nodes, self.n)
        self.call(
            "expand_segments",
            windows.counts,
            windows.begins,
            np.ascontiguousarray(states),
            np.ascontiguousarray(parameters),
            None if links is None else np.ascontiguousarray(links),
            1,
            nodes,
        )
        return nodes

    def stretch(self, looseness: float, holds: Array) -> tuple[Array, Array, Array, Array]:
        """Weak continuity: pivots, blocks (S, ., .), objective and defect (S,)."""
        span, count = 2 * self.n + self.q + 1, len(self.segments)
        pivots = room(int(self.library.stretch_pivots(ctypes.byref(self.seats))) + 16)
        pivots = pivots[(-pivots.ctypes.data // 8) % 8 :]  # where vectors may stand
        left, objective, defect = np.empty((count, span - 1, span)), np.empty(count), np.empty(count)
        given = np.array([looseness])
        self.call("stretch_segments", given, np.ascontiguousarray(holds), pivots, left, objective, defect)
        return pivots, left, objective, defect

    def unstretch(self, pivots: Array, values: Array, parameters: Array) -> Array:
        """ds of the nodes (N, n), from (a, c, p) of the segments (S, 2 n + q)."""
        n = self.n
        nodes = np.empty((self.nodes, n))
        first, after = np.ascontiguousarray(values[:, :n]), np.ascontiguousarray(values[:, n : n + n])
        self.call("unstretch_segments", pivots, first, after, np.ascontiguousarray(parameters), nodes)
        return nodes


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


def spread_scales(comm: Any, chain: Chain, z: Unknowns) -> Scales:
    """As `scaling.natural_scales`, for nodes that are spread over ranks."""
    segments = chain.segments
    assert segments is not None
    _, _, _, n, q = chain.shape
    ends = chain.arrivals[0] if chain.arrivals is not None else chain.residuals.links[0] + z.nodes[0, 1:]
    linked = np.asarray(chain.linked, dtype=float)[:, None]
    by_link = (linked * np.abs(chain.links_by_parameters[0]).reshape(len(linked), -1)) ** 2
    table = np.concatenate(
        [
            segments.sums(z.nodes[0] ** 2),
            segments.sums(linked * ends**2),
            segments.sums(by_link),
            segments.sums(linked),
            segments.nodes[:, None],
        ],
        axis=1,
    )
    total = gathered(comm, table).sum(axis=0)
    departed, arrived, moved = total[:n], total[n : n + n], total[n + n : -2].reshape(n, q)
    links, nodes = max(total[-2], 1.0), total[-1]
    size = np.sqrt(0.5 * (departed / nodes + arrived / links))
    states = np.maximum(size, SMALLEST_PART * size.max())
    states = np.where(states > 0.0, states, 1.0)
    reach = np.sqrt((moved / states[:, None] ** 2).sum(axis=0) / links)
    with np.errstate(divide="ignore"):
        parameters = np.where(reach > 0.0, 1.0 / reach, np.maximum(np.abs(z.parameters[0]), 1.0))
    return Scales(states[None], parameters[None])


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
