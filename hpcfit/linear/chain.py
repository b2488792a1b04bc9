"""A linearised problem: nodes in a row, linked one to the next, bordered by parameters that all share.

All arrays carry a leading axis of members: problems of the same shape that are solved side by side.
M members, N nodes, k rows at a node, n states, q parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.segments import Segments
from hpcfit.records import Array

Members = NDArray[np.int64] | NDArray[np.bool_]


COMMON: dict[str, bool] = {"common": True}


@dataclass(frozen=True)
class ByMember:
    """Arrays that all begin with the axis of members, but for fields that are marked as COMMON."""

    def take(self, members: Members) -> Self:
        """The same for some of the members, whose numbers rise; for all of them no copy."""
        parts = {each.name: getattr(self, each.name) for each in fields(self) if not each.metadata}
        count = next(len(part) for part in parts.values() if isinstance(part, np.ndarray))
        if is_everybody(members, count):
            return self
        return replace(self, **{name: _taken(part, members) for name, part in parts.items()})


def _taken(value: Any, members: Members) -> Any:
    if isinstance(value, ByMember):
        return value.take(members)
    return value[members] if isinstance(value, np.ndarray) else value


def is_everybody(members: Members, count: int) -> bool:
    """Whether these are all members in their order."""
    if members.dtype == bool:
        return bool(members.all())
    return len(members) == count and bool((members == np.arange(count)).all())


@dataclass(frozen=True)
class Unknowns(ByMember):
    """The unknowns z of (4.3), or an increment of them, in named blocks."""

    nodes: Array  # (M, N, n) s_j
    parameters: Array  # (M, q) p

    def plus(self, step: Unknowns, damping: Array) -> Unknowns:
        """z + alpha dz, with one alpha per member (4.7)."""
        return Unknowns(
            self.nodes + damping[:, None, None] * step.nodes,
            self.parameters + damping[:, None] * step.parameters,
        )

    def norms(self) -> Array:
        """Length per member (M,): root mean square over the nodes, and all parameters."""
        mean = np.einsum("mji,mji->m", self.nodes, self.nodes) / max(self.nodes.shape[1], 1)
        length: Array = np.sqrt(mean + np.einsum("mi,mi->m", self.parameters, self.parameters))
        return length


@dataclass(frozen=True)
class Scales(ByMember):
    """What counts as one unit of each state and of each parameter."""

    states: Array  # (M, n)
    parameters: Array  # (M, q)

    def scaled(self, step: Unknowns) -> Unknowns:
        return Unknowns(step.nodes / self.states[:, None], step.parameters / self.parameters)

    def unscaled(self, step: Unknowns) -> Unknowns:
        return Unknowns(step.nodes * self.states[:, None], step.parameters * self.parameters)


@dataclass(frozen=True)
class Residuals(ByMember):
    """F(z) of (4.6): what is minimised and what must vanish; NaN where the flow could not be followed."""

    rows: Array  # (M, N, k) F1
    links: Array  # (M, N - 1, n) F2, the continuity defects (4.5)
    conditions: Array | None = None  # (M, c) F2, further conditions (2.4), where there are any

    def finite(self) -> NDArray[np.bool_]:
        """Which members are finite throughout (M,)."""
        good: NDArray[np.bool_] = np.isfinite(self.rows).all(axis=(1, 2))
        good &= np.isfinite(self.links).all(axis=(1, 2))
        return good if self.conditions is None else good & np.isfinite(self.conditions).all(axis=1)

    def objective(self) -> Array:
        """||F1||^2 per member (M,)."""
        total: Array = np.einsum("mjk,mjk->m", self.rows, self.rows)
        return total

    def defect(self) -> Array:
        """The largest |F2| per member (M,)."""
        largest: Array = np.abs(self.links).max(axis=(1, 2), initial=0.0)
        return largest


@dataclass(frozen=True)
class Conditions(ByMember):
    """Linearised conditions (2.4): sum C_v ds_v + D dp + c = 0 for exact ones, >= 0 for the others.

    c conditions look at v of the nodes.
    """

    values: Array  # (M, c) c
    by_node: Array  # (M, v, c, n) C
    by_parameters: Array  # (M, c, q) D
    likely: NDArray[np.bool_]  # (M, c) those that held in the iteration before
    exact: NDArray[np.bool_] = field(metadata=COMMON)  # (c,)
    nodes: NDArray[np.int64] = field(metadata=COMMON)  # (v,)
    of_states: NDArray[np.bool_] = field(metadata=COMMON)  # (c,) which look at states at all

    def scaled(self, scales: Scales) -> Conditions:
        """In units of the scales; the conditions keep their own."""
        states, parameters = scales.states[:, None, None], scales.parameters[:, None]
        return replace(self, by_node=self.by_node * states, by_parameters=self.by_parameters * parameters)

    def moduli(self) -> Conditions:
        """Slopes without their signs."""
        return replace(self, by_node=np.abs(self.by_node), by_parameters=np.abs(self.by_parameters))

    def along(self, nodes: Array, parameters: Array) -> Array:
        """C ds + D dp for increments as columns (M, N, n, f) and (M, q, f): (M, c, f)."""
        found: Array = np.einsum("mvcn,mvnf->mcf", self.by_node, nodes[:, self.nodes])
        return found + self.by_parameters @ parameters

    def pull(self, multipliers: Array, nodes: int) -> tuple[Array, Array]:
        """C^t lambda at all nodes (M, N, n), and D^t lambda (M, q)."""
        members, _, _, n = self.by_node.shape
        at_nodes = np.zeros((members, nodes, n))
        at_nodes[:, self.nodes] = np.einsum("mvcn,mc->mvn", self.by_node, multipliers)
        return at_nodes, np.einsum("mcq,mc->mq", self.by_parameters, multipliers)


@dataclass(frozen=True)
class Chain(ByMember):
    """J(z) and F(z) of (4.8): minimise A_j ds_j + B_j dp + r_j, with G_j ds_j + H_j dp - ds_j+1 + d_j = 0."""

    rows_by_node: Array  # (M, N, k, n) A
    rows_by_parameters: Array  # (M, N, k, q) B
    links_by_node: Array  # (M, N - 1, n, n) G
    links_by_parameters: Array  # (M, N - 1, n, q) H
    residuals: Residuals  # r, d
    linked: NDArray[np.bool_] = field(metadata=COMMON)  # (N - 1,) False where an experiment ends
    alive: NDArray[np.bool_] | None = None  # (M,) which members could be linearised, where that is known
    arrivals: Array | None = None  # (M, N - 1, n) where the intervals end; absent: d_j + s_j+1
    segments: Segments | None = field(default=None, metadata=COMMON)  # of a part, with up to N links
    conditions: Conditions | None = None

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """M, N, k, n, q."""
        members, nodes, rows, states = self.rows_by_node.shape
        return members, nodes, rows, states, self.rows_by_parameters.shape[-1]

    def finite(self) -> NDArray[np.bool_]:
        """Which members could be linearised (M,)."""
        if self.alive is not None:
            return self.alive if self.conditions is None else self.alive & self._conditions_are_finite()
        slopes = (self.links_by_node, self.links_by_parameters, self.rows_by_node, self.rows_by_parameters)
        good = self.residuals.finite()
        if self.conditions is not None:
            good &= self._conditions_are_finite()
        for slope in slopes:
            own = slope[:1] if slope.strides[0] == 0 else slope  # what all share is looked at once
            with np.errstate(all="ignore"):
                good &= np.isfinite(own.sum(axis=(1, 2, 3)))
        return good

    def _conditions_are_finite(self) -> NDArray[np.bool_]:
        assert self.conditions is not None
        own = self.conditions
        good: NDArray[np.bool_] = np.isfinite(own.values).all(axis=1)
        return (
            good
            & np.isfinite(own.by_node).all(axis=(1, 2, 3))
            & np.isfinite(own.by_parameters).all(axis=(1, 2))
        )

    def scaled(self, scales: Scales) -> Chain:
        """The same in units of the scales; the links stay of the form ... - ds_j+1."""
        states, parameters = scales.states[:, None, None], scales.parameters[:, None, None]
        by_state = scales.states[:, None, :, None]
        return Chain(
            self.rows_by_node * states,
            self.rows_by_parameters * parameters,
            self.links_by_node * states / by_state,
            self.links_by_parameters * parameters / by_state,
            scaled_residuals(self.residuals, scales),
            self.linked,
            self.alive,
            segments=self.segments,
            conditions=None if self.conditions is None else self.conditions.scaled(scales),
        )

    def predicted_squares(self, which: NDArray[np.int64], step: Unknowns) -> Array:
        """||F1 + A ds + B dp||^2 at the nodes of some members (m, N), where their small steps lead."""
        rows = self.residuals.rows[which]
        rows += (_of(self.rows_by_node, which) @ step.nodes[..., None])[..., 0]
        rows += (_of(self.rows_by_parameters, which) @ step.parameters[:, None, :, None])[..., 0]
        squares: Array = np.einsum("mjk,mjk->mj", rows, rows)
        return squares


def _of(rows: Array, which: NDArray[np.int64]) -> Array:
    """The rows of some members; once, where all share them."""
    return rows[:1] if rows.strides[0] == 0 else rows[which]


def violated(values: Array | None, exact: NDArray[np.bool_]) -> Array:
    """|c| of exact conditions, and what inequalities lack, max(-c, 0) (M, c)."""
    assert values is not None
    return np.where(exact, np.abs(values), np.maximum(-values, 0.0))


def scaled_residuals(residuals: Residuals, scales: Scales) -> Residuals:
    """Defects in units of the states."""
    return Residuals(residuals.rows, residuals.links / scales.states[:, None], residuals.conditions)
