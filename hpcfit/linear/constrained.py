"""The generalised inverse under further conditions (2.4): the condensed problem by an active-set method.

Condensing leaves f unknowns y (initial states and parameters), in which the rows are a diagonal s y + b and
every node is an affine function; conditions at any nodes are rows G y + g on the same few unknowns. Which
inequalities hold exactly is found by `active_set.py`; J+ is then that of the rows under the exact and the
held conditions, and gives simplified increments, multipliers and covariance like that of a chain without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear import active_set
from hpcfit.linear.chain import Chain, Conditions, Residuals, Unknowns, scaled_residuals, violated
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.inverse import Held, Numbers, first_nodes, root_sums
from hpcfit.linear.scaling import natural_scales
from hpcfit.linear.windows import GROWTH
from hpcfit.records import Array

Flags = NDArray[np.bool_]

ROUNDING = 1e-14  # of a row of the covariance's factor, relative to what it is made of


class ConstrainedInverse:
    """J+ of (4.9) with the conditions of the chain; see `inverse.Inverse`."""

    def __init__(self, chain: Chain, z: Unknowns, growth: float = GROWTH) -> None:
        assert chain.conditions is not None
        self.scales = natural_scales(chain, z)
        self._chain = chain.scaled(self.scales)
        self._plus = generalised_inverse(self._chain, growth)
        self._nodes, self._parameters = self._plus.directions()
        self._normals = self._conditions.along(self._nodes, self._parameters)
        moduli = self._conditions.moduli().along(np.abs(self._nodes), np.abs(self._parameters))
        self._summed = np.linalg.norm(moduli, axis=2)
        self.freedoms: int = self._plus.freedoms
        self._rows = [active_set.Rows.of(values) for values in self._plus.singular_values]
        self._solved: list[active_set.Solution] = []
        everybody = np.arange(len(chain.residuals.rows))
        self._scaled = self._increment(everybody, self._chain.residuals, first=True)
        self.step = self.scales.unscaled(self._scaled)
        for member, found in enumerate(self._solved):
            if not found.conflict:
                _to_bounds(self.step, member, chain.conditions, found.held)
        self.increment = self._scaled.norms()

    @property
    def _conditions(self) -> Conditions:
        assert self._chain.conditions is not None
        return self._chain.conditions

    def _increment(self, which: Numbers, residuals: Residuals, *, first: bool = False) -> Unknowns:
        """-J+ F of some members; at first the faces are found, then they stay."""
        plus, own = self._plus.take(which), self._conditions.take(which)
        nodes, parameters, b = plus.particular(residuals)
        assert residuals.conditions is not None
        g = residuals.conditions + own.along(nodes[..., None], parameters[..., None])[..., 0]
        y = np.full_like(b, np.nan)
        for at, member in enumerate(which.tolist()):
            if first:
                self._solved.append(self._face(member, b[at], g[at], own.likely[at]))
                y[at] = self._solved[member].y
            elif np.isfinite(b[at]).all() and np.isfinite(g[at]).all():
                y[at] = self._solved[member].again(b[at], g[at])
        return plus.joined(nodes, parameters, y)

    def _face(self, member: int, b: Array, g: Array, likely: Flags) -> active_set.Solution:
        normals, exact = self._normals[member], self._conditions.exact
        return active_set.solve(self._rows[member], b, normals, g, exact, likely, self._summed[member])

    @property
    def residuals(self) -> Residuals:
        return self._chain.residuals

    @cached_property
    def objective(self) -> Array:
        return self.residuals.objective()

    @cached_property
    def defect(self) -> Array:
        """Also of exact conditions, and of inequalities that are not met."""
        lacking = violated(self.residuals.conditions, self._conditions.exact)
        return np.maximum(self.residuals.defect(), lacking.max(axis=1, initial=0.0))

    @property
    def rank(self) -> Numbers:
        """Of rows and held conditions together."""
        return np.array([found.rank for found in self._solved])

    @cached_property
    def held(self) -> Held:
        solved = self._solved
        contradictory = np.zeros(self._conditions.values.shape, dtype=bool)
        for flags, found in zip(contradictory, solved, strict=True):
            flags[list(found.conflict)] = True
        return Held(
            active=np.array([found.active for found in solved]),
            multipliers=np.array([found.multipliers for found in solved]),
            errors=np.array([found.errors for found in solved]),
            contradictory=contradictory,
            pinned=np.array([min(found.face.held, self.freedoms) for found in solved]),
            exact=self._conditions.exact,
        )

    def away(self, alpha: Array, which: Numbers, residuals: Residuals) -> Array:
        bar = self._increment(which, scaled_residuals(residuals, self.scales.take(which)))
        length: Array = bar.plus(self._scaled.take(which), alpha - 1.0).norms()
        return length

    def multipliers(self, which: Numbers) -> Array:
        pulls = self._conditions.take(which).pull(self.held.multipliers[which], self._chain.shape[1])
        found: Array = self._plus.take(which).multipliers(
            self.residuals.take(which), self._scaled.take(which), pulls
        )
        return found

    def covariance_factor(self, which: Numbers, *, all_nodes: bool) -> tuple[Array, Array]:
        factors = self._by_member(which, [self._solved[m].factor for m in which.tolist()])
        wanted = slice(None) if all_nodes else first_nodes(self._chain.linked)
        nodes = _along_face(self._nodes[which][:, wanted], factors[:, None])
        parameters, scales = _along_face(self._parameters[which], factors), self.scales.take(which)
        return nodes * scales.states[:, None, :, None], parameters * scales.parameters[..., None]

    def node_errors(self, which: Numbers) -> Array:
        return root_sums(self.covariance_factor(which, all_nodes=True)[0])

    def blind(self, which: Numbers) -> tuple[Array, Array]:
        unseen = self._by_member(which, [self._solved[m].unseen for m in which.tolist()])
        first = first_nodes(self._chain.linked)
        states = (self._nodes[which][:, first] @ unseen[:, None]).reshape(len(which), -1, self.freedoms)
        return np.linalg.norm(states, axis=2), np.linalg.norm(self._parameters[which] @ unseen, axis=2)

    def _by_member(self, which: Numbers, columns: list[Array]) -> Array:
        """The y of columns (m, f, f), filled up with zeros."""
        whole = np.zeros((len(which), self.freedoms, self.freedoms))
        for table, own in zip(whole, columns, strict=True):
            table[:, : own.shape[1]] = own
        return whole


def _along_face(directions: Array, factors: Array) -> Array:
    """The product, in which rows that are zero but for rounding, as those of pinned unknowns, are zero."""
    product = directions @ factors
    sizes = np.linalg.norm(directions, axis=-1, keepdims=True)
    sizes = sizes * np.linalg.norm(factors, axis=(-2, -1), keepdims=True)
    lengths = np.linalg.norm(product, axis=-1, keepdims=True)
    return np.where(lengths > ROUNDING * sizes, product, 0.0)


def _to_bounds(step: Unknowns, member: int, conditions: Conditions, held: Sequence[int]) -> None:
    """Where a held condition is about one number alone, the step leads there without rounding errors.

    A square root of a parameter that is not negative would not exist a rounding error below zero.
    """
    for k in held:
        value = conditions.values[member, k]
        nodes, states = np.nonzero(conditions.by_node[member, :, k])
        parameters = np.flatnonzero(conditions.by_parameters[member, k])
        if len(nodes) == 1 and not len(parameters):
            slope = conditions.by_node[member, nodes[0], k, states[0]]
            step.nodes[member, conditions.nodes[nodes[0]], states[0]] = -value / slope
        elif not len(nodes) and len(parameters) == 1:
            step.parameters[member, parameters[0]] = (
                -value / conditions.by_parameters[member, k, parameters[0]]
            )


def step_within(square: Array, right: Array, conditions: Conditions) -> Array:
    """The dp (M, q) that minimises ||square dp + right|| under the conditions that look at no state.

    Those on states wait for the exact method. square (M, rows, q), right (M, rows).
    """
    own = np.flatnonzero(~conditions.of_states)
    size = np.sqrt((square**2).sum(axis=1))
    size = np.where(size > 0.0, size, 1.0)
    left, values, across = np.linalg.svd(square / size[:, None], full_matrices=False)
    step = np.empty_like(size)
    for m in range(len(square)):
        normals = (conditions.by_parameters[m, own] / size[m]) @ across[m].T
        b, g = left[m].T @ right[m], conditions.values[m, own]
        exact = conditions.exact[own]
        found = active_set.solve(active_set.Rows.of(values[m]), b, normals, g, exact, np.zeros_like(exact))
        step[m] = (across[m].T @ found.y) / size[m]
    return step
