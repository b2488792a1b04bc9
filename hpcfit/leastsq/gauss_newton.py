"""The generalised Gauss-Newton method (4.7, 4.8) for many problems of the same shape side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hpcfit.leastsq.levels import LEVELS, Level, Numbers
from hpcfit.leastsq.scaling import natural_scales
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns, scaled_residuals
from hpcfit.linear.solvers import Solver, dense
from hpcfit.records import Array, Iteration, Outcome

TOLERANCE = 1e-10  # of the scaled increment
MAX_ITERATIONS = 60
FLOOR = 1e-7  # scaled increments below this that no longer fall are rounding errors


class Problem(Protocol):
    """What the loop needs to know of a problem."""

    def take(self, members: Members) -> Problem: ...

    def residuals(self, comm: Any, z: Unknowns) -> Residuals: ...

    def linearise(self, comm: Any, z: Unknowns) -> Chain: ...


Watch = Callable[[Iteration], None]


@dataclass
class Course:
    """Where all members are, and how they came there; phases hand it on to each other."""

    z: Unknowns
    outcomes: list[Outcome]
    iterations: Numbers  # (M,) exact ones
    linearisations: Numbers  # (M,) of all phases
    history: list[list[Iteration]] = field(default_factory=list)
    watch: Watch | None = None

    @classmethod
    def begin(cls, z: Unknowns, watch: Watch | None = None) -> Course:
        members = len(z.parameters)
        zeros = np.zeros(members, dtype=np.int64)
        return cls(
            Unknowns(z.nodes.copy(), z.parameters.copy()),
            [Outcome.UNFINISHED] * members,
            zeros,
            zeros.copy(),
            [[] for _ in range(members)],
            watch,
        )

    def move(self, members: Members, z: Unknowns) -> None:
        self.z.nodes[members], self.z.parameters[members] = z.nodes, z.parameters

    def end(self, members: Numbers, outcome: Outcome) -> None:
        for member in members:
            self.outcomes[member] = outcome

    def note(self, member: int, iteration: Iteration) -> None:
        self.history[member].append(iteration)
        if self.watch is not None:
            self.watch(iteration)


def gauss_newton(
    comm: Any,
    problem: Problem,
    course: Course,
    members: Numbers,
    *,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    level: str = "natural",
    solver: Solver = dense,
) -> None:
    """Move the named members of the course to their solutions, or to where they cannot go on.

    z_k+1 = z_k + alpha_k dz_k (4.7), dz_k = -J_k+ F(z_k) (4.9), until the scaled increment is below the
    tolerance, or does not fall any more below FLOOR.
    """
    damper = LEVELS[level](len(course.outcomes))
    last = np.full(len(course.outcomes), np.inf)  # the increment before, where it was taken in full
    for member in members:
        course.outcomes[member] = Outcome.UNFINISHED
    for _ in range(max_iterations):
        if not len(members):
            return
        members = _iterate(comm, problem, course, members, damper, last, tolerance, solver)


def _iterate(
    comm: Any,
    problem: Problem,
    course: Course,
    members: Numbers,
    damper: Level,
    last: Array,
    tolerance: float,
    solver: Solver,
) -> Numbers:
    """One iteration; the members that go on are returned."""
    members, part, z, chain = linearised(comm, problem, course, members)
    if not len(members):
        return members
    course.iterations[members] += 1
    scales = natural_scales(chain, z)
    here = scaled_residuals(chain.residuals, scales)
    plus = solver(comm, chain, scales)
    step = plus.solve(here)
    increment = step.norms()
    arrived = (increment < tolerance) | ((increment < FLOOR) & (increment > 0.5 * last[members]))

    def trial(alpha: Array, which: Numbers) -> Residuals:
        moved = z.take(which).plus(scales.take(which).unscaled(step.take(which)), alpha)
        return scaled_residuals(part.take(which).residuals(comm, moved), scales.take(which))

    alpha = np.ones(len(members))
    far = np.flatnonzero(increment >= FLOOR)  # nearer, the test would measure rounding errors
    if len(far):
        alpha[far] = damper.damping(
            plus.take(far), step.take(far), lambda a, which: trial(a, far[which]), members[far]
        )
    course.move(members, z.plus(scales.unscaled(step), alpha))
    _note(course, members, here, plus.rank, increment, alpha)
    last[members] = np.where(alpha == 1.0, increment, np.inf)
    stalled = alpha == 0.0
    course.end(members[stalled], Outcome.STALLED)
    deficient = plus.rank < plus.freedoms
    course.end(members[arrived & ~deficient], Outcome.CONVERGED)
    course.end(members[arrived & deficient], Outcome.RANK_DEFICIENT)
    return members[~arrived & ~stalled]


def linearised(
    comm: Any, problem: Problem, course: Course, members: Numbers
) -> tuple[Numbers, Problem, Unknowns, Chain]:
    """The chains of those members whose paths can be integrated; the others have come to their end."""
    part, z = problem.take(members), course.z.take(members)
    chain = part.linearise(comm, z)
    course.linearisations[members] += 1
    alive = chain.finite()
    if alive.all():
        return members, part, z, chain
    course.end(members[~alive], Outcome.NOT_INTEGRABLE)
    return members[alive], part.take(alive), z.take(alive), chain.take(alive)


def _note(
    course: Course, members: Numbers, residuals: Residuals, rank: Numbers, increment: Array, alpha: Array
) -> None:
    objective, defect = residuals.objective(), np.abs(residuals.links).max(axis=(1, 2))
    for k, member in enumerate(members):
        course.note(
            member,
            Iteration(
                phase="exact",
                objective=float(objective[k]),
                defect=float(defect[k]),
                increment=float(increment[k]),
                damping=float(alpha[k]),
                rank=int(rank[k]),
            ),
        )
