"""Phases: which come when, and that a better end is never given up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hpcfit.leastsq.gauss_newton import Course
from hpcfit.leastsq.strategy import Options, plausible_objective, solve
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Outcome
from tests.leastsq.toy_problems import Curve, noisy_lines, regression

NOBODY_ASKS = np.full(3, np.inf)


def phases(course: Course, member: int = 0) -> list[str]:
    """The phases in order, each once for as long as it lasts."""
    names = [note.phase for note in course.history[member]]
    return [name for k, name in enumerate(names) if k == 0 or names[k - 1] != name]


def solved(problem: Curve, guess: float, precision: float, largest: Any = NOBODY_ASKS, **more: Any) -> Course:
    course = Course.begin(problem.begin(guess))
    solve(SERIAL, problem, course, np.array([precision]), largest, Options(**more))
    return course


@pytest.mark.parametrize(
    ("asked", "precision", "expected"),
    [
        ("auto", 1.0, ["presolve", "exact"]),
        ("auto", 0.0, ["weak", "exact"]),
        ("presolve", 1.0, ["presolve", "exact"]),
        ("weak", 1.0, ["weak", "exact"]),
        ("exact", 1.0, ["exact"]),
        ("exact", 0.0, ["exact"]),
    ],
)
def test_all_ways_lead_to_the_same_solution_through_their_phases(
    asked: str, precision: float, expected: list[str]
) -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, 0.5, precision, phases=asked)
    assert course.outcomes == [Outcome.CONVERGED] * 3
    assert [phases(course, k) for k in range(3)] == [expected] * 3
    np.testing.assert_allclose(course.z.parameters[:, 0], np.log(regression(problem.data)[:, 1]), rtol=1e-9)
    exact = [sum(note.phase == "exact" for note in each) for each in course.history]
    assert course.iterations.tolist() == exact
    assert course.linearisations.tolist() == [len(each) for each in course.history]


def test_a_member_that_does_not_converge_begins_again_with_loose_continuity() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    short = {"max_iterations": 3, "tolerance": 1e-8}  # too few to come from far away
    assert solved(problem, 8.0, 1.0, phases="presolve", **short).outcomes == [Outcome.UNFINISHED] * 3
    course = solved(problem, 8.0, 1.0, **short)
    assert course.outcomes == [Outcome.CONVERGED] * 3
    assert phases(course) == ["presolve", "exact", "weak", "exact"]
    np.testing.assert_allclose(course.z.parameters[:, 0], np.log(regression(problem.data)[:, 1]), rtol=1e-9)


def test_a_stalled_member_is_an_outcome() -> None:
    """arctan from 1e4: the damping that would help is below the smallest."""
    problem = Curve(noisy_lines(), np.arctan, lambda p: 1.0 / (1.0 + p**2))
    course = solved(problem, 1e4, 1.0, phases="exact")
    assert course.outcomes == [Outcome.STALLED] * 3
    np.testing.assert_array_equal(course.z.parameters, np.full((3, 1), 1e4))


def test_only_implausible_members_begin_again_and_the_better_end_is_kept() -> None:
    """sin p = slope has several solutions: all of them fit as well, so the first is kept."""
    problem = Curve(noisy_lines(), np.sin, np.cos)
    once = solved(problem, 0.3, 1.0)
    largest = np.array([np.inf, 0.0, np.inf])
    again = solved(problem, 0.3, 1.0, largest)
    assert phases(again, 0) == phases(again, 2) == ["presolve", "exact"]
    assert phases(again, 1).count("weak") == 2
    np.testing.assert_array_equal(again.z.parameters[[0, 2]], once.z.parameters[[0, 2]])
    assert again.outcomes == [Outcome.CONVERGED] * 3
    first, last = (problem.residuals(SERIAL, each.z).objective()[1] for each in (once, again))
    assert last <= first


def test_a_failure_everywhere_is_the_best_of_the_failures() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, 3.0, 1.0, max_iterations=1)
    assert course.outcomes == [Outcome.UNFINISHED] * 3
    assert np.isfinite(course.z.parameters).all()


def test_members_that_cannot_be_integrated_say_so_in_every_phase() -> None:
    problem = Curve(noisy_lines())
    for asked in ("auto", "presolve", "weak", "exact"):
        start = problem.begin(0.5)
        start.parameters[1] = np.nan
        course = Course.begin(start)
        solve(SERIAL, problem, course, np.ones(1), NOBODY_ASKS, Options(phases=asked))
        assert course.outcomes == [Outcome.CONVERGED, Outcome.NOT_INTEGRABLE, Outcome.CONVERGED], asked


def test_a_plausible_objective_is_one_that_chance_exceeds_once_in_a_million() -> None:
    """chi2 of 2 degrees of freedom exceeds x with probability exp(-x / 2)."""
    limits = plausible_objective(np.array([2, 393]), True)
    assert limits[0] == pytest.approx(-2.0 * math.log(1e-6), rel=1e-9)
    assert 500 < limits[1] < 550
    assert np.isinf(plausible_objective(np.array([2]), False)).all()
