"""Weak continuity: the links are rows like the data, with a standard deviation instead of exactness.

One orthogonal sweep along the chain eliminates node after node (the square-root information form), and one
back along it substitutes; linear in the number of nodes, whatever grows along the chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.linear.chain import Chain, Scales, Unknowns
from hpcfit.linear.compiled import can_be_compiled, weak_steps
from hpcfit.linear.constrained import step_within
from hpcfit.linear.long import long_weak_step
from hpcfit.linear.scaling import natural_scales
from hpcfit.records import Array

SMALLEST_HOLD = 1e-8  # keeps a state that neither data nor links see where it is


def loose_step(
    comm: Any, chain: Chain, z: Unknowns, looseness: Array, holds: Array
) -> tuple[Scales, Unknowns]:
    """Natural scales and the step with loose continuity, in the problem's own units; see `weak_step`.

    Machine code where there is a compiler; a member whose condition is in doubt goes to the reference.
    """
    if chain.segments is not None:
        return long_weak_step(comm, chain, z, looseness, holds)
    if chain.conditions is not None or not can_be_compiled(chain):
        return _reference(chain, z, looseness, holds)
    scales, step, doubtful = weak_steps(chain, z, looseness, holds)
    for member in doubtful:
        own = np.array([member])
        _, alone = _reference(chain.take(own), z.take(own), looseness[own], holds[own])
        step.nodes[own], step.parameters[own] = alone.nodes, alone.parameters
    return scales, step


def _reference(chain: Chain, z: Unknowns, looseness: Array, holds: Array) -> tuple[Scales, Unknowns]:
    scales = natural_scales(chain, z)
    return scales, scales.unscaled(weak_step(chain.scaled(scales), looseness, holds))


def weak_step(chain: Chain, looseness: Array, holds: Array) -> Unknowns:
    """Minimise rows^2 + (links / looseness)^2 + (holds ds)^2 of a scaled chain.

    looseness (M,): the standard deviation of the links. holds (M, N): what keeps each node where it is.
    """
    members, nodes, k, n, q = chain.shape
    strength = 1.0 / looseness[:, None, None]
    border = n + n + q
    height = (n + q + 1) + k + n + n
    pivots = np.empty((members, nodes, n, border + 1))  # of s_j: by s_j, s_j+1, p, 1
    rest = np.zeros((members, n + q + 1, n + q + 1))  # rows on s_j, p, 1 that the nodes before left
    table = np.zeros((members, height, border + 1))
    unit = np.eye(n)
    data, hold, link = n + q + 1, n + q + 1 + k, n + q + 1 + k + n
    for j in range(nodes):
        table[:] = 0.0
        table[:, :data, :n], table[:, :data, n + n :] = rest[..., :n], rest[..., n:]
        table[:, data:hold, :n] = chain.rows_by_node[:, j]
        table[:, data:hold, n + n : border] = chain.rows_by_parameters[:, j]
        table[:, data:hold, border] = chain.residuals.rows[:, j]
        table[:, hold:link, :n] = np.maximum(holds[:, j, None, None], SMALLEST_HOLD) * unit
        if j < nodes - 1 and chain.linked[j]:
            table[:, link:, :n] = strength * chain.links_by_node[:, j]
            table[:, link:, n : n + n] = -strength * unit
            table[:, link:, n + n : border] = strength * chain.links_by_parameters[:, j]
            table[:, link:, border] = strength[..., 0] * chain.residuals.links[:, j]
        triangle: Array = np.linalg.qr(table, mode="r")  # type: ignore[assignment]
        pivots[:, j] = triangle[:, :n]
        rest = triangle[:, n : n + n + q + 1, n:]
    if chain.conditions is not None:
        square, right = rest[:, :, n : n + q], rest[:, :, n + q]
        return _substituted(pivots, step_within(square, right, chain.conditions), n)
    return _substituted(pivots, _parameters(rest, n, q), n)


def _parameters(rest: Array, n: int, q: int) -> Array:
    """dp from the rows that no node is left in; of smallest length where they do not determine it."""
    square, right = rest[:, :, n : n + q], rest[:, :, n + q]
    solved: Array = -(np.linalg.pinv(square, rcond=1e-12) @ right[..., None])[..., 0]
    return solved


def _substituted(pivots: Array, parameters: Array, n: int) -> Unknowns:
    members, nodes = pivots.shape[:2]
    right = pivots[..., -1] + (pivots[..., n + n : -1] @ parameters[:, None, :, None])[..., 0]
    result = np.empty((members, nodes, n))
    after = np.zeros((members, n))
    for j in range(nodes - 1, -1, -1):
        known = right[:, j] + np.einsum("mil,ml->mi", pivots[:, j, :, n : n + n], after)
        after = -np.linalg.solve(pivots[:, j, :, :n], known[..., None])[..., 0]
        result[:, j] = after
    return Unknowns(result, parameters)
