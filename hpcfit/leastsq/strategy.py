"""Which phases a member goes through: start values, loose continuity where it is needed, the exact method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Flags, Numbers, Phase, Problem
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE, GaussNewton
from hpcfit.leastsq.homotopy import LOOSEST_HIDDEN, LOOSEST_OBSERVED, Homotopy
from hpcfit.leastsq.presolve import Presolve
from hpcfit.leastsq.quantiles import chi_square_above
from hpcfit.leastsq.statistics import Spread
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.solvers import Solver, dense
from hpcfit.records import Array, Outcome

PHASES = ("auto", "exact", "presolve", "weak")
IMPLAUSIBLE = 1e-6  # probability of a misfit as large, with the standard deviations as stated
TIGHT_BEGIN = 0.1  # looseness of the last attempt


@dataclass(frozen=True)
class Options:
    """How a fit is to be solved."""

    tolerance: float = TOLERANCE
    max_iterations: int = MAX_ITERATIONS
    level: str = "natural"
    phases: str = "auto"
    solver: Solver = dense


def solve(
    comm: Any,
    problem: Problem,
    course: Course,
    precision: Array,
    largest: Array,
    options: Options,
    rough: float = 0.0,
) -> Iterator[Numbers]:
    """Bring all members to their solutions; yields those that have come to their end.

    precision (n,): of the nodes, 0 for hidden states. rough: relative errors that do not matter beside those
    of the data. largest (M,): the objective that is still plausible;
    a member above it, or one that does not converge, begins again with loose continuity. Whoever takes the
    ended members may put new ones in their places (`Course.enter`) before the next are asked for.
    """
    way = _Way(course, precision, largest, options, rough)
    way.enter(course.newcomers())
    while way.busy.any():
        for number, phase in enumerate(way.phases):
            members = np.flatnonzero(way.busy & (way.phase_of == number))
            if not len(members):
                continue
            onward = phase.iterate(comm, problem, course, members)
            ended = way.advance(np.setdiff1d(members, onward, assume_unique=True))
            if len(ended):
                yield ended
                way.enter(course.newcomers())


def plausible_objective(degrees_of_freedom: Numbers, sigma_known: bool) -> Array:
    """The sum of squares that a correct model passes with probability IMPLAUSIBLE (M,)."""
    if not sigma_known:
        return np.full(len(degrees_of_freedom), np.inf)
    return chi_square_above(np.maximum(degrees_of_freedom, 1), IMPLAUSIBLE)


class _Way:
    """Where every member is on its way through the phases; attempts begin at the same start values."""

    def __init__(
        self, course: Course, precision: Array, largest: Array, options: Options, rough: float
    ) -> None:
        count = len(course.outcomes)
        self.course, self.largest = course, largest
        observed = bool((precision > 0.0).all())
        self.presolves = options.phases == "presolve" or (options.phases == "auto" and observed)
        self.attempts = _attempts(options.phases, observed)
        self.weak = Homotopy(course.z)
        self.exact = GaussNewton(
            count,
            tolerance=options.tolerance,
            max_iterations=options.max_iterations,
            level=options.level,
            solver=options.solver,
        )
        self.phases: list[Phase] = [Presolve(count, precision, rough), self.weak, self.exact]
        self.phase_of = np.zeros(count, dtype=np.int64)
        self.attempt = np.zeros(count, dtype=np.int64)
        self.busy: Flags = np.zeros(count, dtype=bool)
        self.begin = Unknowns(course.z.nodes.copy(), course.z.parameters.copy())
        self.best = _Best(course)

    def enter(self, members: Numbers) -> None:
        """Members at the begin of their way."""
        self.busy[members], self.attempt[members], self.phase_of[members] = True, 0, 0
        if self.presolves:
            self.phases[0].begin(members)
        else:
            self._depart(members)

    def advance(self, members: Numbers) -> Numbers:
        """Members that are through with their phase go to the next; those that have ended are returned."""
        phase = self.phase_of[members]
        self._depart(members[phase == 0])
        self._go(members[phase == 1], self.exact)
        return self._arrive(members[phase == 2])

    def _depart(self, members: Numbers) -> None:
        """Start values are found: the first attempt."""
        if len(members):
            z = self.course.z.take(members)
            self.begin.nodes[members], self.begin.parameters[members] = z.nodes, z.parameters
            self._attempt(members)

    def _attempt(self, members: Numbers) -> None:
        for number in np.unique(self.attempt[members]):
            own = members[self.attempt[members] == number]
            loosest = self.attempts[number]
            if loosest is None:
                self._go(own, self.exact)
            else:
                self.weak.begin(own, loosest)
                self.phase_of[own] = 1

    def _go(self, members: Numbers, phase: Phase) -> None:
        phase.begin(members)
        self.phase_of[members] = self.phases.index(phase)

    def _arrive(self, members: Numbers) -> Numbers:
        """At the end of the exact phase: a good end is the last; else another attempt, if there is one."""
        if not len(members):
            return members
        course, last = self.course, self.attempt[members] == len(self.attempts) - 1
        good = course.converged(members) & (course.spread.objective[members] <= self.largest[members])
        first = self.attempt[members] == 0
        tried = members[~(first & (good | last))]
        self.best.keep(tried, self.attempt[tried] == 0)
        ended = members[good | last]
        self.best.restore(np.intersect1d(ended, tried, assume_unique=True))
        self.busy[ended] = False
        again = members[~(good | last)]
        course.move(again, self.begin.take(again))
        course.end(again, Outcome.UNFINISHED)
        self.attempt[again] += 1
        self._attempt(again)
        return ended


def _attempts(phases: str, observed: bool) -> list[float | None]:
    """How loose continuity is at the begin of each attempt; None: exact."""
    loosest = LOOSEST_OBSERVED if observed else LOOSEST_HIDDEN
    if phases == "weak":
        return [loosest]
    if phases == "auto":
        return [None if observed else loosest, LOOSEST_OBSERVED, TIGHT_BEGIN]
    return [None]


class _Best:
    """The best end that members have reached so far: converged before not, then the smaller objective."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.ends: dict[int, tuple[tuple[bool, float], Outcome, Unknowns, Spread]] = {}

    def keep(self, members: Numbers, first: Flags) -> None:
        for member, begins in zip(members.tolist(), first.tolist(), strict=True):
            outcome, objective = self.course.outcomes[member], float(self.course.spread.objective[member])
            key = (outcome is not Outcome.CONVERGED, objective if np.isfinite(objective) else np.inf)
            if begins or key < self.ends[member][0]:
                own = np.array([member])
                z = Unknowns(self.course.z.nodes[own], self.course.z.parameters[own])
                spread = Spread(**{k: v[own] for k, v in vars(self.course.spread).items()})
                self.ends[member] = (key, outcome, z, spread)

    def restore(self, members: Numbers) -> None:
        for member in members.tolist():
            _, outcome, z, spread = self.ends.pop(member)
            own = np.array([member])
            self.course.move(own, z)
            self.course.end(own, outcome)
            self.course.spread.put(own, spread)
