"""A rank's segments of a long chain in machine code (kernels/segments.c): condensed, expanded, stretched."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.kernels.chains import segments_kernel
from hpcfit.kernels.room import room
from hpcfit.linear.chain import Chain, Residuals, Scales, Unknowns
from hpcfit.linear.compiled import Structure, is_zero, packed, passed
from hpcfit.linear.scaling import SMALLEST_PART
from hpcfit.linear.segments import Numbers
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
