"""From loose to exact continuity: hidden states and long series, where the exact method loses its way.

The continuity conditions get a standard deviation, `looseness` times the size of the state, that is driven
down from large to small. Nodes whose surroundings get worse are held back (Levenberg), each for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Flags, Numbers, Problem, linearised
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.weak import loose_step
from hpcfit.records import Array

LOOSEST_HIDDEN, LOOSEST_OBSERVED, TIGHTEST = 10.0, 1.0, 1e-3
TIGHTENING = 0.4
INNER_STEPS = 4  # at one looseness
REJECTIONS = 6  # at one looseness
PATIENCE = 4  # rejections that are left to the nodes; then the parameters go slower as well
SETTLED = 0.02  # relative fall of the merit at which the next looseness begins
LARGEST_CHANGE = 0.3  # of a parameter in one step
NEIGHBOURS = 7  # nodes that are judged together
MAX_ITERATIONS = 100


class Homotopy:
    """Continuity from loose to tight, each member with its own looseness."""

    def __init__(self, z: Unknowns) -> None:
        members = len(z.nodes)
        self.looseness = np.ones(members)
        self.holds = np.zeros(z.nodes.shape[:2])
        self.taken, self.rejected = np.zeros(members, dtype=int), np.zeros(members, dtype=int)
        self.done = np.zeros(members, dtype=int)
        self.reach = np.full(members, LARGEST_CHANGE)  # of the parameters in one step

    def begin(self, members: Numbers, loosest: float = LOOSEST_OBSERVED) -> None:
        self.looseness[members], self.holds[members], self.reach[members] = loosest, 0.0, LARGEST_CHANGE
        self.taken[members] = self.rejected[members] = self.done[members] = 0

    def iterate(self, comm: Any, problem: Problem, course: Course, members: Numbers) -> Numbers:
        members, part, z, chain = linearised(comm, problem, course, members)
        if not len(members):
            return members
        loose = self.looseness[members]
        across = part.across(comm)
        scales, step = loose_step(comm, chain, z, loose, self.holds[members])
        step = _capped(step, z, scales, self.reach[members])
        moved = z.plus(step, np.ones(len(members)))
        here = scaled_residuals(chain.residuals, scales)
        before = _merit(across, here, loose)
        after = _merit(across, scaled_residuals(part.residuals(comm, moved), scales), loose)
        totals = across.total(before), across.total(after)
        fell = totals[1] < totals[0]
        course.move(members[fell], moved.take(fell))
        length, rank = across.norms(scales.scaled(step)), np.full(len(members), chain.shape[-1])
        objective, defect = across.objective(here), across.largest(np.abs(here.links))
        course.note("weak", members, (objective, defect, length, fell.astype(float), rank))
        reach = NEIGHBOURS // 2
        worse = across.around(after, reach) > across.around(before, reach) + 0.5
        self._learn(members, totals, worse, fell)
        self.done[members] += 1
        return members[(self.looseness[members] >= TIGHTEST) & (self.done[members] < MAX_ITERATIONS)]

    def _learn(self, members: Numbers, totals: tuple[Array, Array], worse: Flags, fell: Flags) -> None:
        """Holds, reach and looseness of the next step, by what this one did: merit (M,), nodes (M, N)."""
        before, after = totals
        self.holds[members] = _new_holds(self.holds[members], worse, fell)
        slower = np.where(self.rejected[members] >= PATIENCE, 0.1, 1.0) * self.reach[members]
        self.reach[members] = np.where(fell, LARGEST_CHANGE, slower)
        self.taken[members] += fell
        self.rejected[members] = np.where(fell, 0, self.rejected[members] + 1)
        settled = after > (1.0 - SETTLED) * before
        tired = (self.taken[members] >= INNER_STEPS) | (self.rejected[members] >= REJECTIONS)
        onward = members[fell & settled | tired]
        self.looseness[onward] *= TIGHTENING
        self.taken[onward] = self.rejected[onward] = 0


def _capped(step: Unknowns, z: Unknowns, scales: Scales, reach: Array) -> Unknowns:
    """No parameter changes by more than its reach, a part of itself (or of what it does in one interval)."""
    allowed = reach[:, None] * np.maximum(np.abs(z.parameters), 0.01 * scales.parameters)
    excess = np.abs(step.parameters / allowed).max(axis=1, keepdims=True, initial=1.0)
    return Unknowns(step.nodes, step.parameters / excess)


def _merit(across: Across, residuals: Residuals, looseness: Array) -> Array:
    """What each node adds to the sum of squares (M, N): its data, and half of the links beside it."""
    merit: Array = (residuals.rows**2).sum(axis=2)
    links = (residuals.links**2).sum(axis=2) / looseness[:, None] ** 2
    links = np.where(np.isfinite(links), links, 1e30)
    merit = np.where(np.isfinite(merit), merit, 1e30)
    return merit + across.halves(links, merit.shape[1])


def _new_holds(holds: Array, worse: Flags, fell: Flags) -> Array:
    """Levenberg's parameter per node: up where the surroundings got worse, else down after a good step."""
    good = np.where(worse, np.maximum(3.0 * holds, 0.1), 0.2 * holds)
    good[good < 1e-4] = 0.0
    bad = np.where(worse, np.maximum(8.0 * holds, 0.3), holds)
    return np.where(fell[:, None], good, bad)
