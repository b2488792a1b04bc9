"""The generalised inverse of many members at once, in machine code; `inverse.AnyInverse` is the reference.

Members whose condition is in doubt go to the reference, one by one: a member's numbers do not depend on its
company.
"""

from __future__ import annotations

import ctypes
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hpcfit.kernels.chains import chain_kernel
from hpcfit.kernels.compiler import find_compiler
from hpcfit.kernels.room import room
from hpcfit.linear.chain import Chain, Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.inverse import AnyInverse, Held, Numbers, first_nodes, root_sums
from hpcfit.linear.windows import GROWTH
from hpcfit.records import Array

DOUBTFUL = 1e8  # condition from which singular values decide on the rank
WIDEST = 64  # states and parameters together, and rows at a node: beyond, the reference is as fast


class Structure(ctypes.Structure):
    """The `chain` of kernels/chain.c."""

    _fields_ = [
        *[(name, ctypes.c_long) for name in ("members", "nodes")],
        *[(name, ctypes.c_void_p) for name in ("at_nodes", "at_parameters")],
        *[(name, ctypes.c_void_p) for name in ("rows_by_node", "rows_by_parameters")],
        ("row_strides", ctypes.c_long * 4),
        *[(name, ctypes.c_void_p) for name in ("links_by_node", "links_by_parameters", "rows", "links")],
        ("linked", ctypes.c_void_p),
        ("freedoms", ctypes.c_int),
        ("growth", ctypes.c_double),
        *[(name, ctypes.c_void_p) for name in ("states", "parameters", "step_nodes", "step_parameters")],
        *[(name, ctypes.c_void_p) for name in ("increment", "objective", "defect")],
        *[(name, ctypes.c_void_p) for name in ("inverse", "windows", "closes", "condition")],
    ]


def can_be_compiled(chain: Chain) -> bool:
    """Whether machine code is there and pays."""
    _, _, k, n, q = chain.shape
    return n + q <= WIDEST and k <= WIDEST and has_compiler()


@lru_cache(maxsize=1)
def has_compiler() -> bool:
    return find_compiler() is not None


class _Task:
    """A chain with room for what machine code finds out about it."""

    def __init__(self, chain: Chain, z: Unknowns, growth: float = GROWTH) -> None:
        members, nodes, k, n, q = chain.shape
        self.library = chain_kernel(n, q, k).library
        a, b = packed(chain.rows_by_node), packed(chain.rows_by_parameters)
        self.arrays: dict[str, Any] = {
            "at_nodes": np.ascontiguousarray(z.nodes),
            "at_parameters": np.ascontiguousarray(z.parameters),
            "rows_by_node": a,
            "links_by_node": np.ascontiguousarray(chain.links_by_node),
            "links_by_parameters": np.ascontiguousarray(chain.links_by_parameters),
            "rows": np.ascontiguousarray(chain.residuals.rows),
            "links": np.ascontiguousarray(chain.residuals.links),
            "linked": chain.linked.astype(np.uint8),
            "states": np.empty((members, n)),
            "parameters": np.empty((members, q)),
            "step_nodes": room(members, nodes, n),
            "step_parameters": np.empty((members, q)),
            "increment": np.empty(members),
            "objective": np.empty(members),
            "defect": np.empty(members),
            "inverse": room(members, n + q, n + q),
            "windows": np.zeros(members, dtype=np.int32),
            "closes": np.zeros((members, nodes), dtype=np.uint8),
            "condition": np.empty(members),
        }
        if not is_zero(b):
            self.arrays["rows_by_parameters"] = b
        self.struct = Structure(
            members=members,
            nodes=nodes,
            row_strides=(ctypes.c_long * 4)(*(stride // 8 for each in (a, b) for stride in each.strides[:2])),
            freedoms=n * len(first_nodes(chain.linked)) + q,
            growth=growth,
            **{name: array.ctypes.data for name, array in self.arrays.items()},
        )

    def call(self, name: str, *arguments: Any) -> None:
        """A function of chain.c; arrays go as addresses, None as null, whole numbers as long."""
        getattr(self.library, name)(ctypes.byref(self.struct), *map(passed, arguments))

    def doubtful(self) -> Numbers:
        return np.flatnonzero(~(self.arrays["condition"] < DOUBTFUL))


class CompiledInverse:
    """J+ of (4.9) for the members of a chain; see `inverse.Inverse`."""

    held: Held | None = None

    def __init__(self, chain: Chain, z: Unknowns, growth: float = GROWTH) -> None:
        self.chain, self.z, self.growth = chain, z, growth
        self._task = _Task(chain, z, growth)
        self._task.call("linearise")
        arrays = self._task.arrays
        self.freedoms = int(self._task.struct.freedoms)
        self.scales = Scales(arrays["states"], arrays["parameters"])
        self.step = Unknowns(arrays["step_nodes"], arrays["step_parameters"])
        self.increment, self.objective, self.defect = (
            arrays[name] for name in ("increment", "objective", "defect")
        )
        self._doubtful = {int(m): self.reference(np.array([m])) for m in self._task.doubtful()}
        for member, own in self._doubtful.items():
            self.step.nodes[member], self.step.parameters[member] = own.step.nodes[0], own.step.parameters[0]
            self.increment[member] = own.increment[0]

    def reference(self, members: Numbers) -> AnyInverse:
        """The same in numpy, for some members."""
        return AnyInverse(
            self.chain.take(members),
            self.z.take(members),
            lambda chain: generalised_inverse(chain, self.growth),
        )

    @property
    def rank(self) -> Numbers:
        ranks = np.full(len(self.increment), self.freedoms)
        for member, own in self._doubtful.items():
            ranks[member] = own.rank[0]
        return ranks

    @cached_property
    def residuals(self) -> Residuals:
        return scaled_residuals(self.chain.residuals, self.scales)

    def away(self, alpha: Array, which: Numbers, residuals: Residuals) -> Array:
        away = np.empty(len(which))
        rows, links = np.ascontiguousarray(residuals.rows), np.ascontiguousarray(residuals.links)
        self._task.call("solve", len(which), which, rows, links, None, None, alpha, away)
        for at, own in self._among(which):
            away[at] = own.away(alpha[[at]], np.array([0]), residuals.take(np.array([at])))[0]
        return away

    def multipliers(self, which: Numbers) -> Array:
        return self.reference(which).multipliers(np.arange(len(which)))

    def covariance_factor(self, which: Numbers, *, all_nodes: bool) -> tuple[Array, Array]:
        _, nodes, _, n, q = self.chain.shape
        wanted = nodes if all_nodes else len(first_nodes(self.chain.linked))
        of_nodes = np.empty((len(which), wanted, n, self.freedoms))
        of_parameters = np.empty((len(which), q, self.freedoms))
        self._task.call("covariance_factor", len(which), which, int(all_nodes), of_nodes, of_parameters)
        for at, own in self._among(which):
            (of_nodes[at],), (of_parameters[at],) = own.covariance_factor(np.array([0]), all_nodes=all_nodes)
        return of_nodes, of_parameters

    def node_errors(self, which: Numbers) -> Array:
        return root_sums(self.covariance_factor(which, all_nodes=True)[0])

    def blind(self, which: Numbers) -> tuple[Array, Array]:
        q = self.chain.shape[-1]
        states, parameters = np.zeros((len(which), self.freedoms - q)), np.zeros((len(which), q))
        for at, own in self._among(which):
            (states[at],), (parameters[at],) = own.blind(np.array([0]))
        return states, parameters

    def _among(self, which: Numbers) -> list[tuple[int, AnyInverse]]:
        """Those of some members that the reference has to solve, each with its place."""
        if not self._doubtful:
            return []
        return [(at, self._doubtful[m]) for at, m in enumerate(which.tolist()) if m in self._doubtful]


def weak_steps(chain: Chain, z: Unknowns, looseness: Array, holds: Array) -> tuple[Scales, Unknowns, Numbers]:
    """Weak continuity: natural scales, the step, and the members whose condition is in doubt."""
    task = _Task(chain, z)
    task.call("weaken", np.ascontiguousarray(looseness), np.ascontiguousarray(holds))
    arrays = task.arrays
    step = Unknowns(arrays["step_nodes"], arrays["step_parameters"])
    return Scales(arrays["states"], arrays["parameters"]), step, task.doubtful()


def held_steps(chain: Chain, z: Unknowns, precision: Array) -> tuple[Array, Array, Numbers]:
    """Nodes held: the misfit (M,), dp (M, q), and the members whose condition is in doubt."""
    task = _Task(chain, z)
    misfit, step = np.empty(len(z.parameters)), np.empty(z.parameters.shape)
    task.call("hold", np.ascontiguousarray(precision), misfit, step)
    return misfit, step, task.doubtful()


def passed(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_void_p(None) if argument is None else ctypes.c_long(argument)


def packed(rows: Array) -> Array:
    """The rows with their last two axes contiguous; constant ones may keep strides of zero before these."""
    *_, outer, inner = rows.strides
    return rows if inner == 8 and outer == 8 * rows.shape[-1] else np.ascontiguousarray(rows)


def is_zero(rows: Array) -> bool:
    """Whether rows are known to be zero; those that differ between members are not looked at."""
    return not rows.size or (rows.strides[0] == 0 and not rows[0].any())
