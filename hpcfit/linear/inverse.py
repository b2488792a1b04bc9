"""What Gauss-Newton asks of a linearised problem: increments, their lengths, what the data determine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.chain import COMMON, ByMember, Chain, Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.scaling import natural_scales
from hpcfit.records import Array

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Held(ByMember):
    """What became of further conditions (2.4): which are held, and how the data pull at them."""

    active: NDArray[np.bool_]  # (M, c)
    multipliers: Array  # (M, c) in units of 1/2 ||F1||^2 and of the conditions; zero where not held
    errors: Array  # (M, c) their standard deviations, if those of the rows are one; NaN where not held
    contradictory: NDArray[np.bool_]  # (M, c) those that cannot all be met
    pinned: Numbers  # (M,) how many unknowns the held ones determine
    exact: NDArray[np.bool_] = field(metadata=COMMON)  # (c,)

    def told(self) -> Array:
        """The multipliers (M, c), with NaN where conditions are not held."""
        return np.where(self.active, self.multipliers, np.nan)


class Inverse(Protocol):
    """J+ of (4.9) at the point z of every member, with the increment dz = -J+ F.

    Lengths are in natural units; `which` are numbers of members that rise.
    """

    freedoms: int  # unknowns that the data have to determine
    scales: Scales
    step: Unknowns  # dz, in the problem's own units
    increment: Array  # (M,) its length

    @property
    def held(self) -> Held | None:
        """Where the chain has conditions."""

    @property
    def objective(self) -> Array:
        """||F1||^2 (M,)."""

    @property
    def defect(self) -> Array:
        """The largest |F2| (M,), in natural units."""

    @property
    def rank(self) -> Numbers:
        """Per member (M,)."""

    @property
    def residuals(self) -> Residuals:
        """F, with the links in natural units."""

    def away(self, alpha: Array, which: Numbers, residuals: Residuals) -> Array:
        """||-J+ F - (1 - alpha) dz|| for other residuals of some members: how far from linear they are."""

    def multipliers(self, which: Numbers) -> Array:
        """lambda_c of (4.10) of some members (m, N - 1, n), in natural units."""

    def covariance_factor(self, which: Numbers, *, all_nodes: bool) -> tuple[Array, Array]:
        """L of the covariance L L^t of some members, in the problem's own units.

        For nodes (m, N, n, f), or those at which an experiment begins, and for the parameters (m, q, f).
        """

    def node_errors(self, which: Numbers) -> Array:
        """Root of the diagonal of the covariance at all nodes (m, N, n), or at those of this rank."""

    def blind(self, which: Numbers) -> tuple[Array, Array]:
        """How far unknowns take part in directions that the data do not see: (m, e n) and (m, q), else zero.

        The n states at the begin of each of the e experiments, and the parameters; in natural units.
        """


class AnyInverse:
    """The same by any solver of the scaled chain: numpy's bodies, readable, and the measure of the others."""

    held: Held | None = None

    def __init__(self, chain: Chain, z: Unknowns, solver: Callable[[Chain], Any]) -> None:
        self.linked = chain.linked
        self.scales = natural_scales(chain, z)
        self._chain = chain.scaled(self.scales)
        self._plus = solver(self._chain)
        self._scaled = self._plus.solve(self._chain.residuals)
        self.step = self.scales.unscaled(self._scaled)
        self.increment = self._scaled.norms()
        self.freedoms: int = self._plus.freedoms

    @property
    def rank(self) -> Numbers:
        ranks: Numbers = self._plus.rank
        return ranks

    @property
    def residuals(self) -> Residuals:
        return self._chain.residuals

    @cached_property
    def objective(self) -> Array:
        return self.residuals.objective()

    @cached_property
    def defect(self) -> Array:
        return self.residuals.defect()

    def away(self, alpha: Array, which: Numbers, residuals: Residuals) -> Array:
        bar = self._plus.take(which).solve(scaled_residuals(residuals, self.scales.take(which)))
        length: Array = bar.plus(self._scaled.take(which), alpha - 1.0).norms()
        return length

    def multipliers(self, which: Numbers) -> Array:
        found: Array = self._plus.take(which).multipliers(
            self.residuals.take(which), self._scaled.take(which)
        )
        return found

    def covariance_factor(self, which: Numbers, *, all_nodes: bool) -> tuple[Array, Array]:
        nodes, parameters = self._plus.take(which).covariance_factor()
        scales = self.scales.take(which)
        wanted = nodes if all_nodes else nodes[:, first_nodes(self.linked)]
        return wanted * scales.states[:, None, :, None], parameters * scales.parameters[..., None]

    def node_errors(self, which: Numbers) -> Array:
        return root_sums(self.covariance_factor(which, all_nodes=True)[0])

    def blind(self, which: Numbers) -> tuple[Array, Array]:
        members, _, _, n, q = self._chain.take(which).shape
        first = first_nodes(self.linked)
        if (self.rank[which] == self.freedoms).all():
            return np.zeros((members, n * len(first))), np.zeros((members, q))
        directions = [self._plus.take(which).null_directions(node) for node in first]
        states = np.concatenate([nodes for nodes, _ in directions], axis=1)
        return np.linalg.norm(states, axis=2), np.linalg.norm(directions[0][1], axis=2)


def first_nodes(linked: NDArray[np.bool_]) -> list[int]:
    """The node at which each experiment begins."""
    return [0, *(np.flatnonzero(~linked) + 1).tolist()]


def root_sums(factors: Array) -> Array:
    """Roots of the diagonal of L L^t (...,) for L (..., f)."""
    roots: Array = np.sqrt((factors**2).sum(axis=-1))
    return roots
