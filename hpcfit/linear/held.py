"""Nodes held where they are: an increment of the parameters alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.linear.chain import Chain, Unknowns
from hpcfit.linear.compiled import can_be_compiled, held_steps
from hpcfit.linear.constrained import step_within
from hpcfit.linear.segments import Segments
from hpcfit.mpi.together import gathered
from hpcfit.records import Array


def held_step(comm: Any, chain: Chain, z: Unknowns, precision: Array) -> tuple[Array, Array]:
    """The misfit (M,), and the dp of smallest scaled length that minimises B dp + r and w (H dp + d) (M, q).

    precision (n,): w. Machine code where there is a compiler; a member whose condition is in doubt goes to
    the reference.
    """
    if chain.segments is not None:
        return _long_held_step(comm, chain, chain.segments, precision)
    if chain.conditions is not None or not can_be_compiled(chain):
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
    whole = np.concatenate([table, right[..., None]], axis=2)
    if chain.conditions is not None:
        triangle: Array = np.linalg.qr(whole, mode="r")  # type: ignore[assignment]
        return (right**2).sum(axis=1), step_within(triangle[..., :-1], triangle[..., -1], chain.conditions)
    return (right**2).sum(axis=1), _smallest_step(whole)


def _smallest_step(table: Array) -> Array:
    """The dp (M, q) that minimises rows on (dp, 1) (M, rows, q + 1), of smallest length in scaled columns."""
    triangle: Array = np.linalg.qr(table, mode="r")  # type: ignore[assignment]
    square, right = triangle[..., :-1], triangle[..., -1]
    size = np.sqrt((square**2).sum(axis=1))
    size = np.where(size > 0.0, size, 1.0)
    solved: Array = -(np.linalg.pinv(square / size[:, None], rcond=1e-10) @ right[..., None])[..., 0] / size
    return solved


def _long_held_step(comm: Any, chain: Chain, segments: Segments, precision: Array) -> tuple[Array, Array]:
    """The same for nodes that are spread over ranks: a triangle of each segment, then one of all."""
    _, _nodes, _, _, q = chain.shape
    misfit, triangles = np.zeros(len(segments)), np.zeros((len(segments), q + 1, q + 1))
    for s, (first, count) in enumerate(zip(segments.first, segments.nodes, strict=True)):
        here = slice(first, first + count)
        rows = np.concatenate(
            [chain.rows_by_parameters[0, here], chain.residuals.rows[0, here, :, None]], axis=2
        )
        links = np.concatenate(
            [chain.links_by_parameters[0, here], chain.residuals.links[0, here, :, None]], axis=2
        )
        links *= precision[:, None]
        table = np.concatenate([rows.reshape(-1, q + 1), links.reshape(-1, q + 1), np.zeros((q + 1, q + 1))])
        misfit[s] = table[:, q] @ table[:, q]
        triangles[s] = np.linalg.qr(table, mode="r")
    everybody = gathered(comm, triangles).reshape(1, -1, q + 1)
    return gathered(comm, misfit).sum(keepdims=True), _smallest_step(everybody)
