"""The generalised Gauss-Newton method (4.7, 4.8) for many problems of the same shape side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.leastsq.anchors import Anchors
from hpcfit.leastsq.course import Course, Flags, Numbers, Problem, linearised
from hpcfit.leastsq.levels import LEVELS
from hpcfit.linear.chain import Chain, Residuals
from hpcfit.linear.inverse import Held
from hpcfit.linear.solvers import Solver, dense
from hpcfit.records import Array, Outcome

TOLERANCE = 1e-10  # of the scaled increment
MAX_ITERATIONS = 60
FLOOR = 1e-7  # scaled increments below this that no longer fall are rounding errors
PATIENCE = 6  # full steps without a clearly smaller increment; then they become shorter


class GaussNewton:
    """The exact method: members move to their solutions, or to where they cannot go on.

    z_k+1 = z_k + alpha_k dz_k (4.7), dz_k = -J_k+ F(z_k) (4.9), until the scaled increment is below the
    tolerance, or does not fall any more below FLOOR. The covariance is that of the last linearisation.
    """

    def __init__(
        self,
        members: int,
        *,
        tolerance: float = TOLERANCE,
        max_iterations: int = MAX_ITERATIONS,
        level: str = "natural",
        solver: Solver = dense,
    ) -> None:
        self.tolerance, self.max_iterations, self.solver = tolerance, max_iterations, solver
        self.damper = LEVELS[level](members)
        self.last = np.full(members, np.inf)  # the increment before, where it was taken in full
        self.done = np.zeros(members, dtype=np.int64)
        self.pace = Pace(members)
        self.anchors = Anchors()
        self.faces = Faces(members)

    def begin(self, members: Numbers) -> None:
        self.damper.forget(members)
        self.pace.forget(members)
        self.faces.forget(members)
        if len(members):
            self.anchors.forget()
        self.last[members], self.done[members] = np.inf, 0

    def iterate(self, comm: Any, problem: Problem, course: Course, members: Numbers) -> Numbers:
        members, part, z, chain = linearised(comm, problem, course, members)
        if not len(members):
            return members
        across = part.across(comm)
        chain = self.faces.recalled(members, chain)
        here = self.solver(comm, self.anchors.added(chain), z)
        self.faces.remember(members, here.held)
        increment, last = here.increment, self.last[members]
        course.distance[members] = increment
        spent = self.done[members] >= self.max_iterations
        arrived = (increment < self.tolerance) | (
            (increment < FLOOR) & (increment > self.anchors.pace * last)
        )
        arrived &= ~spent

        def trial(alpha: Any, which: Numbers) -> Residuals:
            step = here.step.take(which)
            found = part.take(which).residuals(comm, z.take(which).plus(step, alpha))
            return self.anchors.pulled(found, step, alpha)

        alpha = np.where(spent, 0.0, 1.0)
        far = np.flatnonzero((increment >= FLOOR) & ~spent)  # nearer, the test would measure rounding errors
        if len(far):
            alpha[far] = self.damper.damping(here, far, trial, members[far])
        if across.segments is None:
            alpha = self.pace.limited(members, increment, alpha)
        else:
            self.anchors.learn(across, here, alpha)
        course.move(members, z.plus(here.step, alpha))
        stalled = (alpha == 0.0) & ~spent
        leaving = np.flatnonzero(arrived | stalled | spent)
        if len(leaving):
            free = self.solver(comm, chain, z) if self.anchors.hold else here
            course.spread.keep(across, members[leaving], chain, free, leaving, alpha[leaving])
        self._end(course, members, arrived, stalled, spent, here.rank < here.freedoms)
        if here.held is not None:  # where the nearest point to contradictory conditions is reached
            apart = here.held.contradictory.any(axis=1) & (arrived | stalled)
            course.end(members[apart], Outcome.CONTRADICTORY)
        self.last[members] = np.where(alpha == 1.0, increment, np.inf)
        self.done[members] += 1
        course.iterations[members[~spent]] += 1
        course.linearisations[members[spent]] -= 1  # it was only looked around
        course.note(
            "exact",
            members[~spent],
            [each[~spent] for each in (here.objective, here.defect, increment, alpha, here.rank)],
            None if here.held is None else here.held.told()[~spent],
        )
        return members[~arrived & ~stalled & ~spent]

    def _end(
        self, course: Course, members: Numbers, arrived: Any, stalled: Any, spent: Any, deficient: Any
    ) -> None:
        course.end(members[spent], Outcome.UNFINISHED)
        course.end(members[stalled], Outcome.STALLED)
        course.end(members[arrived & ~deficient], Outcome.CONVERGED)
        course.end(members[arrived & deficient], Outcome.RANK_DEFICIENT)


class Faces:
    """Which conditions were held in the last iteration of every member: there the next search begins."""

    def __init__(self, members: int) -> None:
        self.active: list[Flags | None] = [None] * members

    def forget(self, members: Numbers) -> None:
        for member in members.tolist():
            self.active[member] = None

    def recalled(self, members: Numbers, chain: Chain) -> Chain:
        """The chain with what is remembered of its members."""
        if chain.conditions is None:
            return chain
        likely = chain.conditions.likely.copy()
        for own, member in zip(likely, members.tolist(), strict=True):
            if (known := self.active[member]) is not None:
                own[:] = known
        return replace(chain, conditions=replace(chain.conditions, likely=likely))

    def remember(self, members: Numbers, held: Held | None) -> None:
        if held is not None:
            for member, active in zip(members.tolist(), held.active, strict=True):
                self.active[member] = active


class Pace:
    """Shorter steps for members whose increments have ceased to fall although they are taken in full.

    Where the data bend more than the linearised path, full steps overshoot and come back for ever; the
    frozen J+ of the level functions cannot see that, shorter steps end it.
    """

    def __init__(self, members: int) -> None:
        self.share, self.smallest = np.ones(members), np.full(members, np.inf)
        self.since = np.zeros(members, dtype=np.int64)  # iterations since the smallest increment

    def forget(self, members: Numbers) -> None:
        self.share[members], self.smallest[members], self.since[members] = 1.0, np.inf, 0

    def limited(self, members: Numbers, increment: Array, alpha: Array) -> Array:
        """Damping factors (m,) of these increments, no longer than the pace."""
        falls = increment < 0.7 * self.smallest[members]
        full = alpha >= self.share[members]  # else the level function is at work
        since = np.where(falls | ~full, 0, self.since[members] + 1)
        tired = since >= PATIENCE
        self.share[members] *= np.where(tired, 0.5, 1.0)
        self.since[members] = np.where(tired, 0, since)
        self.smallest[members] = np.where(falls | ~full | tired, increment, self.smallest[members])
        return np.minimum(alpha, self.share[members])
