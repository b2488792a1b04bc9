"""How well the data determine the unknowns: covariance, intervals, and what they do not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from hpcfit.leastsq.quantiles import fisher, student
from hpcfit.linear.across import Across
from hpcfit.linear.chain import ByMember, Chain, Members, Unknowns
from hpcfit.linear.inverse import Held, Inverse, Numbers
from hpcfit.records import Array

MANY = 64  # unknowns
INVOLVED = 0.1  # of the largest component: an unknown that takes part in a direction that the data do not see


@dataclass(frozen=True)
class Spread(ByMember):
    """Covariance factors without the common factor, covariance = beta^2 L L^t; NaN: nothing is known.

    e experiments, f = e n + q unknowns.
    """

    nodes: Array  # (M, e, n, f) L of the nodes at which experiments begin
    node_errors: Array  # (M, N, n) roots of the diagonal at all nodes, or at those of this rank; or (M, 0, n)
    parameters: Array  # (M, q, f) L
    objective: Array  # (M,)
    blind_states: Array  # (M, e n) part of the first nodes in directions that the data do not see
    blind_parameters: Array  # (M, q)
    multipliers: Array  # (M, c) of further conditions; NaN where not held
    multiplier_errors: Array  # (M, c) without the common factor; NaN where not held
    contradictory: Array  # (M, c) 1: one of those that cannot all be met
    pinned: Array  # (M,) how many unknowns conditions determine

    @classmethod
    def empty(cls, z: Unknowns, experiments: int, *, all_nodes: bool, conditions: int = 0) -> Spread:
        members, nodes, n = z.nodes.shape
        q = z.parameters.shape[1]
        unknowns, wanted = experiments * n + q, nodes if all_nodes else 0
        shapes = ((experiments, n, unknowns), (wanted, n), (q, unknowns), (), (experiments * n,), (q,))
        of_conditions = ((conditions,), (conditions,), (conditions,), ())
        return cls(*(np.full((members, *shape), np.nan) for shape in (*shapes, *of_conditions)))

    def keep(
        self,
        across: Across,
        members: Numbers,
        chain: Chain,
        inverse: Inverse,
        which: Numbers,
        alpha: Array,
    ) -> None:
        """What the last linearisation says of some members, which then took the part alpha of their step."""
        self.nodes[members], self.parameters[members] = inverse.covariance_factor(which, all_nodes=False)
        if self.node_errors.shape[1]:
            self.node_errors[members] = inverse.node_errors(which)
        self.blind_states[members], self.blind_parameters[members] = inverse.blind(which)
        self._keep_held(members, inverse.held, which)
        step = inverse.step.take(which)
        taken = Unknowns(alpha[:, None, None] * step.nodes, alpha[:, None] * step.parameters)
        self.objective[members] = across.total(chain.predicted_squares(which, taken))

    def _keep_held(self, members: Numbers, held: Held | None, which: Numbers) -> None:
        self.pinned[members] = 0.0 if held is None else held.pinned[which]
        if held is not None:
            self.multipliers[members] = held.told()[which]
            self.multiplier_errors[members] = held.errors[which]
            self.contradictory[members] = held.contradictory[which]

    def forget(self, members: Members) -> None:
        for field in fields(self):
            getattr(self, field.name)[members] = np.nan

    def put(self, members: Members, other: Spread) -> None:
        """What is known of others in the places of these members."""
        for field in fields(self):
            getattr(self, field.name)[members] = getattr(other, field.name)


def squared(factor: Array) -> Array:
    """L L^t (f, f); many columns of L belong to one experiment alone, and cost no more than that."""
    if len(factor) < MANY:
        dense: Array = factor @ factor.T
        return dense
    from scipy.sparse import csr_matrix

    common = np.count_nonzero(factor, axis=0) > MANY
    shared, own = factor[:, common], csr_matrix(factor[:, ~common])
    covariance: Array = shared @ shared.T
    blocks = (own @ own.T).tocoo()
    covariance[blocks.row, blocks.col] += blocks.data
    return covariance


def involved(names: Sequence[str], parts: Array) -> tuple[str, ...]:
    """The unknowns that the data do not determine."""
    largest = np.nanmax(parts, initial=0.0)
    return tuple(name for name, part in zip(names, parts, strict=True) if part > INVOLVED * largest > 0.0)


def common_factor(objective: Array, degrees_of_freedom: Numbers) -> Array:
    """beta^2 (M,); NaN without degrees of freedom."""
    return np.where(degrees_of_freedom > 0, objective / np.maximum(degrees_of_freedom, 1), np.nan)


def fisher_factor(unknowns: int, degrees_of_freedom: int, level: float = 0.95) -> float:
    """gamma = sqrt(l1 F(level; l1, l2)) (5.9)."""
    if degrees_of_freedom < 1:
        return float("nan")
    return float(np.sqrt(unknowns * fisher(unknowns, degrees_of_freedom, level)))


def single_factor(degrees_of_freedom: int, level: float = 0.95) -> float:
    """Student's quantile of a two-sided interval of one unknown."""
    return student(degrees_of_freedom, 0.5 + 0.5 * level) if degrees_of_freedom > 0 else float("nan")
