"""The generalised inverse of many members at once, in machine code; `dense` is the reference.

Members whose condition is in doubt, or that need more windows than machine code keeps, go to the reference,
one by one: a member's numbers do not depend on its company.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.kernels.chains import chain_kernel
from hpcfit.kernels.compiler import find_compiler
from hpcfit.linear.chain import Chain, Members, Residuals, Scales, Unknowns
from hpcfit.linear.dense import GeneralisedInverse, generalised_inverse
from hpcfit.linear.windows import GROWTH
from hpcfit.records import Array

DOUBTFUL = 1e8  # condition from which singular values decide on the rank
WIDEST = 64  # states and parameters together, and rows at a node: beyond, the reference is as fast


class _Chain(ctypes.Structure):
    """The `chain` of kernels/chain.c."""

    _fields_ = [
        *[(name, ctypes.c_long) for name in ("members", "nodes")],
        *[(name, ctypes.c_void_p) for name in ("rows_by_node", "rows_by_parameters")],
        *[(name, ctypes.c_void_p) for name in ("links_by_node", "links_by_parameters")],
        ("row_strides", ctypes.c_long * 4),
        *[(name, ctypes.c_void_p) for name in ("states", "parameters", "linked")],
        ("freedoms", ctypes.c_int),
        ("growth", ctypes.c_double),
        *[(name, ctypes.c_void_p) for name in ("store", "coarse", "windows", "closes", "condition")],
    ]


def can_be_compiled(chain: Chain) -> bool:
    """Whether machine code is there and pays."""
    _, _, k, n, q = chain.shape
    return n + q <= WIDEST and k <= WIDEST and find_compiler() is not None


class CompiledInverse:
    """J+ of (4.9) for the members of a chain, in units of the scales."""

    def __init__(self, chain: Chain, scales: Scales, growth: float = GROWTH) -> None:
        members, nodes, k, n, q = chain.shape
        self.chain, self.scales, self.growth = chain, scales, growth
        self.freedoms = n * (1 + chain.linked.count(False)) + q
        self._library = chain_kernel(n, q, k).library
        self._arrays: dict[str, Any] = {
            "rows_by_node": _packed(chain.rows_by_node),
            "rows_by_parameters": _packed(chain.rows_by_parameters),
            "links_by_node": np.ascontiguousarray(chain.links_by_node),
            "links_by_parameters": np.ascontiguousarray(chain.links_by_parameters),
            "states": np.ascontiguousarray(scales.states),
            "parameters": np.ascontiguousarray(scales.parameters),
            "linked": np.array(chain.linked, dtype=np.uint8),
            "store": _aligned(_size(self._library.store_size, members, nodes)),
            "coarse": np.empty(
                members * _size(self._library.coarse_size)
            ),  # pages that are not used cost nothing
            "windows": np.zeros(members, dtype=np.int32),
            "closes": np.zeros((members, nodes), dtype=np.uint8),  # used: one row a group of lanes
            "condition": np.empty(members),
        }
        rows = (self._arrays["rows_by_node"], self._arrays["rows_by_parameters"])
        self._struct = _Chain(
            members=members,
            nodes=nodes,
            row_strides=(ctypes.c_long * 4)(*(stride // 8 for each in rows for stride in each.strides[:2])),
            freedoms=self.freedoms,
            growth=growth,
            **{name: array.ctypes.data for name, array in self._arrays.items()},
        )
        self._library.factor(ctypes.byref(self._struct))

    def take(self, members: Members) -> Part:
        """The inverse of some members, whose numbers rise."""
        whole = np.arange(self.chain.shape[0])
        return Part(self, whole[members])

    def solve(self, residuals: Residuals) -> Unknowns:
        """dz = -J+ F (4.9)."""
        return self.solve_some(residuals, np.arange(self.chain.shape[0]))

    def solve_some(self, residuals: Residuals, which: NDArray[np.int64]) -> Unknowns:
        """The same for the residuals of some members, whose numbers rise."""
        _, nodes, _, n, q = self.chain.shape
        rows, links = np.ascontiguousarray(residuals.rows), np.ascontiguousarray(residuals.links)
        step = Unknowns(np.empty((len(which), nodes, n)), np.empty((len(which), q)))
        arrays = (which, rows, links, step.nodes, step.parameters)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
        self._library.solve(ctypes.byref(self._struct), ctypes.c_long(len(which)), *pointers)
        for member, reference in self._doubtful.items():
            (at,) = np.nonzero(which == member)
            if len(at):
                own = reference.solve(residuals.take(at))
                step.nodes[at], step.parameters[at] = own.nodes, own.parameters
        return step

    @property
    def rank(self) -> NDArray[np.int64]:
        """Per member (M,)."""
        ranks = np.full(self.chain.shape[0], self.freedoms)
        for member, reference in self._doubtful.items():
            ranks[member] = reference.rank[0]
        return ranks

    def covariance_factor(self) -> tuple[Array, Array]:
        """L of the covariance L L^t: for the nodes (M, N, n, f) and for the parameters (M, q, f)."""
        members, nodes, _, n, q = self.chain.shape
        of_nodes = np.empty((members, nodes, n, self.freedoms))
        of_parameters = np.empty((members, q, self.freedoms))
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (of_nodes, of_parameters))
        self._library.covariance_factor(ctypes.byref(self._struct), *pointers)
        for member, reference in self._doubtful.items():
            own_nodes, own_parameters = reference.covariance_factor()
            of_nodes[member], of_parameters[member] = own_nodes[0], own_parameters[0]
        return of_nodes, of_parameters

    def null_directions(self, node: int = 0) -> tuple[Array, Array]:
        """Directions that the data do not see, else zero: node (M, n, f), parameters (M, q, f)."""
        members, _, _, n, q = self.chain.shape
        of_node, of_parameters = np.zeros((members, n, self.freedoms)), np.zeros((members, q, self.freedoms))
        for member, reference in self._doubtful.items():
            own_node, own_parameters = reference.null_directions(node)
            of_node[member], of_parameters[member] = own_node[0], own_parameters[0]
        return of_node, of_parameters

    @cached_property
    def _doubtful(self) -> dict[int, GeneralisedInverse]:
        """Members that the reference has to solve."""
        doubtful = np.flatnonzero(~(self._arrays["condition"] < DOUBTFUL))
        return {int(member): self.reference(np.array([member])) for member in doubtful}

    def reference(self, members: NDArray[np.int64]) -> GeneralisedInverse:
        """The same in numpy, for some members."""
        chain = self.chain.take(members).scaled(self.scales.take(members))
        return generalised_inverse(None, chain, self.growth)


@dataclass(frozen=True)
class Part:
    """The inverse of some members of a chain."""

    whole: CompiledInverse
    members: NDArray[np.int64]

    def take(self, members: Members) -> Part:
        return Part(self.whole, self.members[members])

    def solve(self, residuals: Residuals) -> Unknowns:
        return self.whole.solve_some(residuals, self.members)

    def multipliers(self, residuals: Residuals, step: Unknowns) -> Array:
        """lambda_c of (4.10), by the reference."""
        return self._reference.multipliers(residuals, step)

    @property
    def chain(self) -> Chain:
        """Scaled."""
        return self._reference.chain

    @cached_property
    def _reference(self) -> GeneralisedInverse:
        return self.whole.reference(self.members)


def _packed(rows: Array) -> Array:
    """The rows with their last two axes contiguous; constant ones may keep strides of zero before these."""
    *_, outer, inner = rows.strides
    return rows if inner == 8 and outer == 8 * rows.shape[-1] else np.ascontiguousarray(rows)


def _size(function: Any, *arguments: int) -> int:
    function.restype = ctypes.c_long
    return int(function(*(ctypes.c_long(each) for each in arguments)))


def _aligned(count: int) -> Array:
    """Doubles that begin at a multiple of 64 bytes."""
    whole = np.empty(count + 8)
    first = (-whole.ctypes.data % 64) // 8
    return whole[first : first + count]
