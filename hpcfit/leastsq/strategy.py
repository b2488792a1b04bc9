"""Which phases a fit goes through: start values, loose continuity where it is needed, the exact method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE, Course, Problem, gauss_newton
from hpcfit.leastsq.homotopy import LOOSEST_HIDDEN, LOOSEST_OBSERVED, tighten
from hpcfit.leastsq.levels import Numbers
from hpcfit.leastsq.presolve import presolve
from hpcfit.leastsq.quantiles import chi_square_above
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.solvers import Solver, dense
from hpcfit.records import Array, Outcome

PHASES = ("auto", "exact", "presolve", "weak")
IMPLAUSIBLE = 1e-6  # probability of a misfit as large, with the standard deviations as stated


@dataclass(frozen=True)
class Options:
    """How a fit is to be solved."""

    tolerance: float = TOLERANCE
    max_iterations: int = MAX_ITERATIONS
    level: str = "natural"
    phases: str = "auto"
    solver: Solver = dense


def solve(
    comm: Any, problem: Problem, course: Course, precision: Array, largest: Array, options: Options
) -> None:
    """Bring all members to their solutions.

    precision (n,): of the nodes, 0 for hidden states. largest (M,): the objective that is still plausible;
    a member above it, or one that does not converge, begins again with loose continuity.
    """
    everybody = np.arange(len(course.outcomes))
    observed = bool((precision > 0.0).all())
    if options.phases == "presolve" or (options.phases == "auto" and observed):
        presolve(comm, problem, course, everybody, precision)
    begin = Unknowns(course.z.nodes.copy(), course.z.parameters.copy())
    attempts: list[float | None] = [None]
    if options.phases == "weak":
        attempts = [LOOSEST_OBSERVED if observed else LOOSEST_HIDDEN]
    elif options.phases == "auto":
        attempts = [None, LOOSEST_OBSERVED, 0.1] if observed else [LOOSEST_HIDDEN, LOOSEST_OBSERVED, 0.1]
    best = _Best(course)
    members = everybody
    for loosest in attempts:
        course.move(members, begin.take(members))
        if loosest is not None:
            tighten(comm, problem, course, members, np.full(len(members), loosest))
        gauss_newton(
            comm,
            problem,
            course,
            members,
            tolerance=options.tolerance,
            max_iterations=options.max_iterations,
            level=options.level,
            solver=options.solver,
        )
        objective = problem.take(members).residuals(comm, course.z.take(members)).objective()
        best.keep(members, objective)
        members = members[~best.good(members, largest)]
        if not len(members):
            break
    best.restore()


def plausible_objective(degrees_of_freedom: Numbers, sigma_known: bool) -> Array:
    """The sum of squares that a correct model passes with probability IMPLAUSIBLE (M,)."""
    if not sigma_known:
        return np.full(len(degrees_of_freedom), np.inf)
    return chi_square_above(np.maximum(degrees_of_freedom, 1), IMPLAUSIBLE)


class _Best:
    """The best end that each member has reached so far: converged before not, then the smaller objective."""

    def __init__(self, course: Course) -> None:
        count = len(course.outcomes)
        self.course = course
        self.z = Unknowns(course.z.nodes.copy(), course.z.parameters.copy())
        self.objective = np.full(count, np.inf)
        self.outcomes: list[Outcome] = [Outcome.UNFINISHED] * count
        self.iterations = np.zeros(count, dtype=np.int64)

    def keep(self, members: Numbers, objective: Array) -> None:
        for member, value in zip(members, objective, strict=True):
            outcome = self.course.outcomes[member]
            key = (outcome is not Outcome.CONVERGED, value if np.isfinite(value) else np.inf)
            mine = (self.outcomes[member] is not Outcome.CONVERGED, self.objective[member])
            if key < mine or not self.iterations[member]:
                self.objective[member], self.outcomes[member] = key[1], outcome
                self.z.nodes[member] = self.course.z.nodes[member]
                self.z.parameters[member] = self.course.z.parameters[member]
            self.iterations[member] = self.course.iterations[member]

    def good(self, members: Numbers, largest: Array) -> Any:
        converged = np.array([self.outcomes[member] is Outcome.CONVERGED for member in members])
        return converged & (self.objective[members] <= largest[members])

    def restore(self) -> None:
        self.course.move(np.arange(len(self.outcomes)), self.z)
        self.course.outcomes[:] = self.outcomes
