"""Start values: the parameters alone, with the nodes held at the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.leastsq.gauss_newton import Course, Problem, linearised
from hpcfit.leastsq.levels import Numbers
from hpcfit.linear.chain import Chain, Residuals, Unknowns
from hpcfit.records import Array, Iteration

MAX_ITERATIONS = 8
HALVINGS = 8
ENOUGH = 0.01  # change of the misfit, relative, at which the parameters are good enough to begin with


def presolve(comm: Any, problem: Problem, course: Course, members: Numbers, precision: Array) -> None:
    """Gauss-Newton steps in p that minimise the defects; precision (n,): 1 / sigma of the nodes."""
    if not course.z.parameters.shape[1]:
        return
    for _ in range(MAX_ITERATIONS):
        if not len(members):
            return
        members, part, z, chain = linearised(comm, problem, course, members)
        if not len(members):
            return
        weights = np.broadcast_to(precision, (len(members), len(precision)))
        before = _misfit(chain.residuals, weights)
        step = _step(chain, weights)
        alpha, after = np.ones(len(members)), np.full(len(members), np.inf)
        for _ in range(HALVINGS):
            moved = Unknowns(z.nodes, z.parameters + alpha[:, None] * step)
            after = _misfit(part.residuals(comm, moved), weights)
            worse = ~(after <= before)
            if not worse.any():
                break
            alpha = np.where(worse, 0.5 * alpha, alpha)
        alpha = np.where(after <= before, alpha, 0.0)
        course.move(members, Unknowns(z.nodes, z.parameters + alpha[:, None] * step))
        for k, member in enumerate(members):
            course.note(
                member,
                Iteration(
                    "presolve",
                    float(before[k]),
                    float(np.abs(chain.residuals.links[k]).max()),
                    float(np.linalg.norm(step[k])),
                    float(alpha[k]),
                    step.shape[1],
                ),
            )
        members = members[(alpha > 0.0) & (before - after > ENOUGH * before)]


def _misfit(residuals: Residuals, weights: Array) -> Array:
    links = ((weights[:, None] * residuals.links) ** 2).sum(axis=(1, 2))
    total: Array = residuals.objective() + links
    return total


def _step(chain: Chain, weights: Array) -> Array:
    """dp of smallest scaled length that minimises B dp + r and w (H dp + d) (M, q)."""
    members, _, _, _, q = chain.shape
    links = weights[:, None, :, None] * chain.links_by_parameters
    table = np.concatenate(
        [chain.rows_by_parameters.reshape(members, -1, q), links.reshape(members, -1, q)], 1
    )
    right = np.concatenate(
        [
            chain.residuals.rows.reshape(members, -1),
            (weights[:, None] * chain.residuals.links).reshape(members, -1),
        ],
        axis=1,
    )
    size = np.sqrt((table**2).sum(axis=1))
    size = np.where(size > 0.0, size, 1.0)
    orthogonal, triangle = np.linalg.qr(table / size[:, None])
    projected = np.einsum("mrq,mr->mq", orthogonal, right)
    solved: Array = -(np.linalg.pinv(triangle, rcond=1e-10) @ projected[..., None])[..., 0] / size
    return solved
