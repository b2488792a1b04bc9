"""Which phases a member goes through: start values, loose continuity where it is needed, the exact method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hpcfit.leastsq.course import Course, Flags, Numbers, Phase, Problem
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE, GaussNewton
from hpcfit.leastsq.homotopy import LOOSEST_HIDDEN, LOOSEST_OBSERVED, QUICK, THOROUGH, UTMOST, Care, Homotopy
from hpcfit.leastsq.presolve import Presolve
from hpcfit.leastsq.quantiles import chi_square_above
from hpcfit.leastsq.statistics import Spread
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.solvers import Solver, dense
from hpcfit.records import Array, Outcome

PHASES = ("auto", "exact", "presolve", "weak")
IMPLAUSIBLE = 1e-6  # probability of a misfit as large, with the standard deviations as stated
TIGHT_BEGIN = 0.1  # looseness of the last attempt
LONG = 30.0  # decades that errors grow along a series; beyond, one damping for all nodes is too small to move
VERY_LONG = 2000.0  # decades
SPREAD = 0.3  # of that of a hidden state: how far from its mean another attempt begins
SHAKEN = 0.01  # looseness of an attempt that begins where the one before ended
_FAILED = {
    Outcome.CONVERGED: "implausible misfit",
    Outcome.STALLED: "the exact method stalled",
    Outcome.UNFINISHED: "the exact method did not converge",
    Outcome.RANK_DEFICIENT: "the data did not determine all unknowns there",
    Outcome.NOT_INTEGRABLE: "the path could not be integrated",
    Outcome.CONTRADICTORY: "the constraints could not all be met there",
}


class Attempt(NamedTuple):
    """How loose continuity is at the begin of the exact method, and how carefully it is tightened."""

    loosest: float | None  # None: exact from the begin
    care: Care = QUICK
    onward: bool = False  # from where the attempt before ended: nearly right, but for a few nodes
    centred: bool = False  # hidden states begin near the mean of where the attempt before ended

    def __str__(self) -> str:
        if self.loosest is None:
            return "exact"
        how = "" if self.care is QUICK else f"slowly to {self.care.tightest:g} "
        again = "once more " if self.onward else "with centred hidden states " if self.centred else ""
        return f"weak continuity {again}{how}from {self.loosest:g}, exact"


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
            ended = way.advance(problem.across(comm), np.setdiff1d(members, onward, assume_unique=True))
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
        self.asked = options.phases != "auto"
        self.observed, self.hidden = observed, np.flatnonzero(precision == 0.0)
        self.plans = _plans(options.phases, observed)
        self.weak = Homotopy(course.z)
        self.exact = GaussNewton(
            count,
            tolerance=options.tolerance,
            max_iterations=options.max_iterations,
            level=options.level,
            solver=options.solver,
        )
        self.presolve = Presolve(count, precision, rough)
        self.phases: list[Phase] = [self.presolve, self.weak, self.exact]
        self.phase_of = np.zeros(count, dtype=np.int64)
        self.attempt = np.zeros(count, dtype=np.int64)
        self.long = np.zeros(
            count, dtype=np.int64
        )  # which of the plans: 1 of long series, 2 of very long ones
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

    def advance(self, across: Across, members: Numbers) -> Numbers:
        """Members that are through with their phase go to the next; those that have ended are returned."""
        phase = self.phase_of[members]
        self._depart(members[phase == 0])
        self._go(members[phase == 1], self.exact)
        return self._arrive(across, members[phase == 2])

    def _depart(self, members: Numbers) -> None:
        """Start values are found: the first attempt."""
        if not len(members):
            return
        z = self.course.z.take(members)
        self.begin.nodes[members], self.begin.parameters[members] = z.nodes, z.parameters
        if self.presolves:
            self.long[members] = np.searchsorted([LONG, VERY_LONG], self.presolve.growth[members])
        self._attempt(members, [self._first_reason(member) for member in members.tolist()])

    def _first_reason(self, member: int) -> str:
        if self.asked:
            return "as asked"
        if self.long[member]:
            return f"long series, errors grow 10^{self.presolve.growth[member]:.0f}-fold along it"
        return "all states observed" if self.observed else "hidden states"

    def _attempt(self, members: Numbers, reasons: list[str]) -> None:
        for member, reason in zip(members.tolist(), reasons, strict=True):
            own, plan = np.array([member]), self.plans[self.long[member]]
            attempt = plan[self.attempt[member]]
            first = "presolve, " if self.presolves and not self.attempt[member] else ""
            self.course.tell(own, f"{first}{attempt}: {reason}")
            if attempt.loosest is None:
                self._go(own, self.exact)
            else:
                self.weak.begin(own, attempt.loosest, attempt.care)
                self.phase_of[own] = 1

    def _go(self, members: Numbers, phase: Phase) -> None:
        phase.begin(members)
        self.phase_of[members] = self.phases.index(phase)

    def _arrive(self, across: Across, members: Numbers) -> Numbers:
        """At the end of the exact phase: a good end is the last; else another attempt, if there is one."""
        if not len(members):
            return members
        course = self.course
        lengths = np.array([len(plan) for plan in self.plans])
        last = self.attempt[members] == lengths[self.long[members]] - 1
        good = course.converged(members) & (course.spread.objective[members] <= self.largest[members])
        first = self.attempt[members] == 0
        tried = members[~(first & (good | last))]
        self.best.keep(tried, self.attempt[tried] == 0)
        ended = members[good | last]
        self.best.restore(np.intersect1d(ended, tried, assume_unique=True))
        self.busy[ended] = False
        again = members[~(good | last)]
        reasons = [_FAILED[course.outcomes[member]] for member in again.tolist()]
        self.attempt[again] += 1
        for member in again.tolist():
            self._restart(across, np.array([member]))
        course.end(again, Outcome.UNFINISHED)
        self._attempt(again, reasons)
        return ended

    def _restart(self, across: Across, own: Numbers) -> None:
        """Where the next attempt of one member begins."""
        attempt = self.plans[self.long[own[0]]][self.attempt[own[0]]]
        if attempt.onward:
            return
        begin, ended = self.begin.take(own), self.course.z.take(own)
        if attempt.centred:
            nodes = begin.nodes.copy()
            nodes[..., self.hidden] = _near_means(across, ended, self.hidden, int(self.attempt[own[0]]))
            begin = Unknowns(nodes, ended.parameters)
        self.course.move(own, begin)


def _near_means(across: Across, z: Unknowns, states: Numbers, number: int) -> Array:
    """One value for all nodes of some states (k,): their mean, and a part of their spread by chance.

    Chance is that of the number of the attempt: the same on any rank.
    """
    count = across.nodes(z)
    mean = np.array([across.total(z.nodes[..., i])[0] / count for i in states])
    square = np.array([across.total(z.nodes[..., i] ** 2)[0] / count for i in states])
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    found = mean + SPREAD * spread * np.random.default_rng(number).normal(size=len(states))
    return np.where(np.isfinite(found), found, 0.0)


def _plans(phases: str, observed: bool) -> list[list[Attempt]]:
    """The attempts of a series, of one that is long for the exact method, and of one that is very long."""
    loosest = LOOSEST_OBSERVED if observed else LOOSEST_HIDDEN
    again = Attempt(SHAKEN, onward=True)
    if phases == "weak":
        return [[Attempt(loosest)]] * 3
    if phases != "auto":
        return [[Attempt(None)]] * 3
    if not observed:
        first, centred = Attempt(loosest), Attempt(loosest, centred=True)
        slow, tight = Attempt(loosest, THOROUGH), Attempt(TIGHT_BEGIN)
        return [[first, centred, centred, slow, again, centred, tight]] * 3
    short = [Attempt(None), Attempt(loosest), Attempt(TIGHT_BEGIN)]
    return [short, *([Attempt(loosest, care), again] for care in (THOROUGH, UTMOST))]


class _Best:
    """The best end that members have reached so far: converged before not, then the smaller objective.

    Of ends that are none, the one with the smallest increment left: the objective of a discontinuous path
    can be zero.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        self.ends: dict[int, tuple[tuple[bool, float], Outcome, float, Unknowns, Spread]] = {}

    def keep(self, members: Numbers, first: Flags) -> None:
        for member, begins in zip(members.tolist(), first.tolist(), strict=True):
            outcome = self.course.outcomes[member]
            arrived = outcome is Outcome.CONVERGED
            size = float((self.course.spread.objective if arrived else self.course.distance)[member])
            lost = outcome is Outcome.NOT_INTEGRABLE or not np.isfinite(size)
            key = (not arrived, np.inf if lost else size)
            if begins or key < self.ends[member][0]:
                own = np.array([member])
                z = Unknowns(self.course.z.nodes[own], self.course.z.parameters[own])
                spread = Spread(**{k: v[own] for k, v in vars(self.course.spread).items()})
                self.ends[member] = (key, outcome, float(self.course.distance[member]), z, spread)

    def restore(self, members: Numbers) -> None:
        for member in members.tolist():
            _, outcome, self.course.distance[member], z, spread = self.ends.pop(member)
            own = np.array([member])
            self.course.move(own, z)
            self.course.end(own, outcome)
            self.course.spread.put(own, spread)
