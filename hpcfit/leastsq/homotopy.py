"""From loose to exact continuity: hidden states and long series, where the exact method loses its way.

The continuity conditions get a standard deviation, `looseness` times the size of the state, that is driven
down from large to small. Nodes whose surroundings get worse are held back (Levenberg), each for itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcfit.leastsq.course import Course, Flags, Numbers, Problem, linearised
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.weak import loose_step
from hpcfit.records import Array

LOOSEST_HIDDEN, LOOSEST_OBSERVED = 10.0, 1.0
REJECTIONS = 6  # at one looseness
PATIENCE = 4  # rejections that are left to the nodes; then the parameters go slower as well
LARGEST_CHANGE = 0.3  # of a parameter in one step
NEIGHBOURS = 7  # nodes that are judged together


class Care(NamedTuple):
    """How slowly continuity is tightened."""

    tightest: float
    tightening: float
    steps: int  # at one looseness
    margin: float  # by which a neighbourhood may get worse before it is held back
    total: float  # relative fall of the whole merit at which the next looseness begins
    local: float  # the same of the merit of every neighbourhood, absolute
    iterations: int


QUICK = Care(1e-3, 0.4, 4, 0.5, 0.02, np.inf, 100)
# The whole merit of many nodes settles while a few of them are still on their way: each of these is judged.
THOROUGH = Care(1e-4, 0.6, 8, 0.1, np.inf, 1.0, 250)
UTMOST = THOROUGH._replace(tightest=1e-6, iterations=400)  # an exact step can still lose one node of 10^5


class Homotopy:
    """Continuity from loose to tight, each member with its own looseness and care."""

    def __init__(self, z: Unknowns) -> None:
        members = len(z.nodes)
        self.care = [QUICK] * members
        self.looseness = np.ones(members)
        self.holds = np.zeros(z.nodes.shape[:2])
        self.taken, self.rejected = np.zeros(members, dtype=int), np.zeros(members, dtype=int)
        self.done = np.zeros(members, dtype=int)
        self.reach = np.full(members, LARGEST_CHANGE)  # of the parameters in one step

    def begin(self, members: Numbers, loosest: float = LOOSEST_OBSERVED, care: Care = QUICK) -> None:
        for member in members.tolist():
            self.care[member] = care
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
        change = across.around(after, reach) - across.around(before, reach)
        self._learn(members, totals, change, across.largest(np.abs(change)), fell)
        self.done[members] += 1
        more = self.done[members] < self._cared("iterations", members)
        return members[more & (self.looseness[members] >= self._cared("tightest", members))]

    def _cared(self, what: str, members: Numbers) -> Array:
        """One of the numbers of the members' care (m,)."""
        return np.array([getattr(self.care[member], what) for member in members.tolist()], dtype=float)

    def _learn(
        self, members: Numbers, totals: tuple[Array, Array], change: Array, largest: Array, fell: Flags
    ) -> None:
        """Holds, reach and looseness of the next step, by what this one did.

        totals: the merit before and after (m,). change (m, N): of the merit around each node of this rank;
        largest (m,): of its moduli, on all ranks.
        """
        before, after = totals
        worse = change > self._cared("margin", members)[:, None]
        self.holds[members] = _new_holds(self.holds[members], worse, fell)
        slower = np.where(self.rejected[members] >= PATIENCE, 0.1, 1.0) * self.reach[members]
        self.reach[members] = np.where(fell, LARGEST_CHANGE, slower)
        self.taken[members] += fell
        self.rejected[members] = np.where(fell, 0, self.rejected[members] + 1)
        settled = before - after < self._cared("total", members) * before
        settled &= largest < self._cared("local", members)
        tired = (self.taken[members] >= self._cared("steps", members)) | (
            self.rejected[members] >= REJECTIONS
        )
        onward = members[fell & settled | tired]
        self.looseness[onward] *= self._cared("tightening", onward)
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
