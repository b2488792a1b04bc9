"""Nodes held where they are: an increment of the parameters alone."""

from __future__ import annotations

import numpy as np

from hpcfit.linear.chain import Chain, Unknowns
from hpcfit.linear.compiled import can_be_compiled, held_steps
from hpcfit.records import Array


def held_step(chain: Chain, z: Unknowns, precision: Array) -> tuple[Array, Array]:
    """The misfit (M,), and the dp of smallest scaled length that minimises B dp + r and w (H dp + d) (M, q).

    precision (n,): w. Machine code where there is a compiler; a member whose condition is in doubt goes to
    the reference.
    """
    if not can_be_compiled(chain):
        return held_step_reference(chain, precision)
    misfit, step, doubtful = held_steps(chain, z, precision)
    for member in doubtful:
        step[member] = held_step_reference(chain.take(np.array([member])), precision)[1][0]
    return misfit, step


def held_step_reference(chain: Chain, precision: Array) -> tuple[Array, Array]:
    """The same in numpy."""
    members, _, _, _, q = chain.shape
    links = precision[:, None] * chain.links_by_parameters
    table = np.concatenate(
        [chain.rows_by_parameters.reshape(members, -1, q), links.reshape(members, -1, q)], axis=1
    )
    gaps = precision * chain.residuals.links
    right = np.concatenate([chain.residuals.rows.reshape(members, -1), gaps.reshape(members, -1)], axis=1)
    size = np.sqrt((table**2).sum(axis=1))
    size = np.where(size > 0.0, size, 1.0)
    orthogonal, triangle = np.linalg.qr(table / size[:, None])
    projected = np.einsum("mrq,mr->mq", orthogonal, right)
    solved: Array = -(np.linalg.pinv(triangle, rcond=1e-10) @ projected[..., None])[..., 0] / size
    return (right**2).sum(axis=1), solved
