"""From loose to exact continuity: hidden states and long series, where the exact method loses its way.

The continuity conditions get a standard deviation, `looseness` times the size of the state, that is driven
down from large to small. Nodes whose surroundings get worse are held back (Levenberg), each for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.leastsq.gauss_newton import Course, Problem, linearised
from hpcfit.leastsq.levels import Flags, Numbers
from hpcfit.leastsq.scaling import natural_scales
from hpcfit.linear.chain import Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.weak import weak_step
from hpcfit.records import Array, Iteration

LOOSEST_HIDDEN, LOOSEST_OBSERVED, TIGHTEST = 10.0, 1.0, 1e-3
TIGHTENING = 0.4
INNER_STEPS = 4  # at one looseness
REJECTIONS = 6  # at one looseness
PATIENCE = 4  # rejections that are left to the nodes; then the parameters go slower as well
SETTLED = 0.02  # relative fall of the merit at which the next looseness begins
LARGEST_CHANGE = 0.3  # of a parameter in one step
NEIGHBOURS = 7  # nodes that are judged together
MAX_ITERATIONS = 100


def tighten(comm: Any, problem: Problem, course: Course, members: Numbers, loosest: Array) -> None:
    """Weak-constraint homotopy for the named members; `loosest` (M of them,)."""
    count = len(course.outcomes)
    looseness = np.ones(count)
    looseness[members] = loosest
    holds = np.zeros(course.z.nodes.shape[:2])
    taken, rejected = np.zeros(count, dtype=int), np.zeros(count, dtype=int)
    reach = np.full(count, LARGEST_CHANGE)  # of the parameters in one step
    for _ in range(MAX_ITERATIONS):
        members = members[looseness[members] >= TIGHTEST]
        if not len(members):
            return
        members, part, z, chain = linearised(comm, problem, course, members)
        if not len(members):
            return
        scales, loose = natural_scales(chain, z), looseness[members]
        step = scales.unscaled(weak_step(chain.scaled(scales), loose, holds[members]))
        step = _capped(step, z, scales, reach[members])
        moved = z.plus(step, np.ones(len(members)))
        before = _merit(scaled_residuals(chain.residuals, scales), loose)
        after = _merit(scaled_residuals(part.residuals(comm, moved), scales), loose)
        worse = _around(after) > _around(before) + 0.5
        fell = after.sum(axis=1) < before.sum(axis=1)
        holds[members] = _new_holds(holds[members], worse, fell)
        stuck = rejected[members] >= PATIENCE
        reach[members] = np.where(fell, LARGEST_CHANGE, np.where(stuck, 0.1, 1.0) * reach[members])
        course.move(members[fell], moved.take(fell))
        taken[members] += fell
        rejected[members] = np.where(fell, 0, rejected[members] + 1)
        settled = after.sum(axis=1) > (1.0 - SETTLED) * before.sum(axis=1)
        ready = fell & settled | (taken[members] >= INNER_STEPS) | (rejected[members] >= REJECTIONS)
        for k, member in enumerate(members):
            course.note(
                member,
                Iteration(
                    "weak",
                    float(chain.residuals.objective()[k]),
                    float(np.abs(chain.residuals.links[k] / scales.states[k]).max()),
                    float(scales.scaled(step).norms()[k]),
                    float(fell[k]),
                    chain.shape[-1],
                ),
            )
        onward = members[ready]
        looseness[onward] *= TIGHTENING
        taken[onward] = rejected[onward] = 0


def _capped(step: Unknowns, z: Unknowns, scales: Scales, reach: Array) -> Unknowns:
    """No parameter changes by more than its reach, a part of itself (or of what it does in one interval)."""
    allowed = reach[:, None] * np.maximum(np.abs(z.parameters), 0.01 * scales.parameters)
    excess = np.abs(step.parameters / allowed).max(axis=1, keepdims=True, initial=1.0)
    return Unknowns(step.nodes, step.parameters / excess)


def _merit(residuals: Residuals, looseness: Array) -> Array:
    """What each node adds to the sum of squares (M, N): its data, and half of the links beside it."""
    merit: Array = (residuals.rows**2).sum(axis=2)
    links = (residuals.links**2).sum(axis=2) / looseness[:, None] ** 2
    links = np.where(np.isfinite(links), links, 1e30)
    merit = np.where(np.isfinite(merit), merit, 1e30)
    merit[:, :-1] += 0.5 * links
    merit[:, 1:] += 0.5 * links
    return merit


def _around(merit: Array) -> Array:
    """Sums over NEIGHBOURS nodes."""
    reach = NEIGHBOURS // 2
    total = np.cumsum(np.pad(merit, ((0, 0), (reach + 1, reach))), axis=1)
    sums: Array = total[:, NEIGHBOURS:] - total[:, :-NEIGHBOURS]
    return sums


def _new_holds(holds: Array, worse: Flags, fell: Flags) -> Array:
    """Levenberg's parameter per node: up where the surroundings got worse, else down after a good step."""
    good = np.where(worse, np.maximum(3.0 * holds, 0.1), 0.2 * holds)
    good[good < 1e-4] = 0.0
    bad = np.where(worse, np.maximum(8.0 * holds, 0.3), holds)
    return np.where(fell[:, None], good, bad)
