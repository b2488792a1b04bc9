"""Phases: which come when, that a better end is never given up, and that a place can be used again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hpcfit.leastsq import presolve
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.strategy import LONG, VERY_LONG, Options, plausible_objective, solve
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.solvers import SOLVERS
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Outcome
from tests.leastsq.toy_problems import Curve, noisy_lines, regression, unknowns_alike

NOBODY_ASKS = np.full(3, np.inf)


def phases(course: Course, member: int = 0) -> list[str]:
    """The phases in order, each once for as long as it lasts."""
    names = [note.phase for note in course.history[member]]
    return [name for k, name in enumerate(names) if k == 0 or names[k - 1] != name]


def solved(problem: Curve, guess: float, precision: float, largest: Any = NOBODY_ASKS, **more: Any) -> Course:
    course = Course.begin(problem.begin(guess))
    for _ in solve(SERIAL, problem, course, np.array([precision]), largest, Options(**more)):
        pass
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
    assert again.spread.objective[1] <= once.spread.objective[1]
    # the stated objective is the prediction of the last linearisation: the true one but for rounding
    for each in (once, again):
        true = problem.residuals(SERIAL, each.z).objective()
        np.testing.assert_allclose(each.spread.objective, true, rtol=1e-10)


def test_a_failure_everywhere_is_the_best_of_the_failures() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, 3.0, 1.0, max_iterations=1)
    assert course.outcomes == [Outcome.UNFINISHED] * 3
    assert np.isfinite(course.z.parameters).all()
    assert [sum(note.phase == "exact" for note in each) for each in course.history] == [3, 3, 3]
    first = solved(problem, 3.0, 1.0, phases="presolve", max_iterations=1)
    assert (course.distance <= first.distance).all()


def test_members_that_cannot_be_integrated_say_so_in_every_phase() -> None:
    problem = Curve(noisy_lines())
    for asked in ("auto", "presolve", "weak", "exact"):
        start = problem.begin(0.5)
        start.parameters[1] = np.nan
        course = Course.begin(start)
        for _ in solve(SERIAL, problem, course, np.ones(1), NOBODY_ASKS, Options(phases=asked)):
            pass
        assert course.outcomes == [Outcome.CONVERGED, Outcome.NOT_INTEGRABLE, Outcome.CONVERGED], asked


def test_every_attempt_says_why_it_was_made() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    assert solved(problem, 0.5, 1.0).attempts == [["presolve, exact: all states observed"]] * 3
    assert solved(problem, 0.5, 0.0).attempts == [["weak continuity from 10, exact: hidden states"]] * 3
    assert (
        solved(problem, 0.5, 1.0, phases="weak").attempts == [["weak continuity from 1, exact: as asked"]] * 3
    )
    again = solved(problem, 8.0, 1.0, max_iterations=3, tolerance=1e-8).attempts
    assert again is not None
    assert again[0] == [
        "presolve, exact: all states observed",
        "weak continuity from 1, exact: the exact method did not converge",
    ]
    implausible = solved(problem, 0.5, 1.0, np.array([np.inf, 0.0, np.inf])).attempts
    assert implausible is not None
    assert [len(each) for each in implausible] == [1, 3, 1]
    assert implausible[1][1] == "weak continuity from 1, exact: implausible misfit"


def test_where_nobody_asks_attempts_are_not_remembered() -> None:
    problem = Curve(noisy_lines())
    course = Course.begin(problem.begin(0.5), remembers=False)
    for _ in solve(SERIAL, problem, course, np.ones(1), NOBODY_ASKS, Options()):
        pass
    assert course.attempts is None


@pytest.mark.parametrize(
    ("grown", "first"),
    [
        (0.9 * LONG, "presolve, exact: all states observed"),
        (
            1.1 * LONG,
            "presolve, weak continuity slowly to 0.0001 from 1, exact: "
            "long series, errors grow 10^33-fold along it",
        ),
        (
            1.1 * VERY_LONG,
            "presolve, weak continuity slowly to 1e-06 from 1, exact: "
            "long series, errors grow 10^2200-fold along it",
        ),
    ],
)
def test_long_series_begin_with_loose_continuity(
    monkeypatch: pytest.MonkeyPatch, grown: float, first: str
) -> None:
    monkeypatch.setattr(presolve, "SHORT", 0)
    monkeypatch.setattr(presolve, "decades", lambda across, chain: np.full(chain.shape[0], grown))
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, 0.5, 1.0)
    assert course.outcomes == [Outcome.CONVERGED] * 3
    assert course.attempts == [[first]] * 3
    np.testing.assert_allclose(course.z.parameters[:, 0], np.log(regression(problem.data)[:, 1]), rtol=1e-9)


def test_a_failure_at_the_data_is_not_the_best_of_the_failures() -> None:
    """Nodes at the data have the objective zero, and the whole way before them."""
    problem = Curve(noisy_lines(), np.arctan, lambda p: 1.0 / (1.0 + p**2))
    course = solved(problem, 1e4, 0.0, phases="exact")
    assert (course.spread.objective < 1e-20).all()
    assert (course.distance > 0.1).all()
    best = solved(problem, 1e4, 0.0)
    assert (best.distance < course.distance).all()


def test_a_plausible_objective_is_one_that_chance_exceeds_once_in_a_million() -> None:
    """chi2 of 2 degrees of freedom exceeds x with probability exp(-x / 2)."""
    limits = plausible_objective(np.array([2, 393]), True)
    assert limits[0] == pytest.approx(-2.0 * math.log(1e-6), rel=1e-9)
    assert 500 < limits[1] < 550
    assert np.isinf(plausible_objective(np.array([2]), False)).all()


# Places that are used again

CROWD = 40
WAYS = {
    "auto": ({}, 1.0),
    "auto, hidden": ({}, 0.0),
    "auto, too few iterations": ({"max_iterations": 3, "tolerance": 1e-8}, 1.0),
    "presolve": ({"phases": "presolve"}, 1.0),
    "weak": ({"phases": "weak"}, 1.0),
    "exact": ({"phases": "exact"}, 1.0),
    "T1": ({"phases": "exact", "level": "T1"}, 1.0),
    "reference": ({"solver": SOLVERS["reference"]}, 1.0),
}


def crowd() -> tuple[Curve, Unknowns, np.ndarray]:
    """Members that need few and many iterations; some cannot be integrated, some are never good enough."""
    problem = Curve(noisy_lines(CROWD), np.exp, np.exp)
    start = problem.begin(0.5)
    start.parameters[:, 0] = np.random.default_rng(7).uniform(-2.0, 4.0, CROWD)
    start.parameters[5::11] = np.nan
    largest = np.full(CROWD, np.inf)
    largest[::7] = 0.0
    return problem, start, largest


def in_places(count: int, order: np.ndarray, precision: float, options: Options) -> tuple[Course, int]:
    """The crowd through so many places; the ends of all members in the order of the crowd, and the rounds."""
    problem, start, largest = crowd()
    first = order[:count]
    part, limits = Curve(problem.data[first], np.exp, np.exp), largest[first]
    course = Course.begin(start.take(first), remembers=False)
    ends = Course.begin(start, remembers=False)
    waiting, inside, rounds = order[count:].tolist(), first.copy(), 0
    for ended in solve(SERIAL, part, course, np.array([precision]), limits, options):
        rounds += 1
        who = inside[ended]
        ends.move(who, course.z.take(ended))
        ends.spread.put(who, course.spread.take(ended))
        ends.iterations[who], ends.linearisations[who] = (
            course.iterations[ended],
            course.linearisations[ended],
        )
        for member, place in zip(who, ended, strict=True):
            ends.outcomes[member] = course.outcomes[place]
        new = np.array(waiting[: len(ended)], dtype=np.int64)
        del waiting[: len(new)]
        free = ended[: len(new)]
        inside[free], limits[free] = new, largest[new]
        part.put(free, Curve(problem.data[new]))
        if len(new):
            course.enter(free, Unknowns(start.nodes[new], start.parameters[new]))
    assert not waiting
    return ends, rounds


@pytest.mark.parametrize("count", [1, 3, 17])
@pytest.mark.parametrize("way", WAYS)
def test_members_in_the_places_of_ended_ones_end_as_in_a_batch_of_their_own(way: str, count: int) -> None:
    """Bit for bit, whatever the place, the company, and who was there before."""
    asked, precision = WAYS[way]
    options, everybody = Options(**asked), np.arange(CROWD)
    whole, _ = in_places(CROWD, everybody, precision, options)
    assert whole.outcomes[5] is Outcome.NOT_INTEGRABLE
    assert np.isnan(whole.spread.parameters[5]).all()
    assert whole.outcomes[:3] == [Outcome.CONVERGED] * 3
    assert len(set(whole.linearisations.tolist())) > 3
    for order in (everybody, np.random.default_rng(count).permutation(CROWD)):
        refilled, rounds = in_places(count, order, precision, options)
        assert rounds > CROWD // count - 1
        assert refilled.outcomes == whole.outcomes
        np.testing.assert_array_equal(refilled.iterations, whole.iterations)
        np.testing.assert_array_equal(refilled.linearisations, whole.linearisations)
        unknowns_alike(refilled.z, whole.z)
        for name, values in vars(whole.spread).items():
            np.testing.assert_array_equal(getattr(refilled.spread, name), values, err_msg=name)


def test_ended_members_are_told_once_and_nobody_has_to_be_put_in_their_places() -> None:
    problem, start, largest = crowd()
    course = Course.begin(start)
    told = [
        member
        for ended in solve(SERIAL, problem, course, np.ones(1), largest, Options())
        for member in ended.tolist()
    ]
    assert sorted(told) == list(range(CROWD))
    assert told != sorted(told)  # as they come to their end
    busy = [len(each) for each in course.history or []]
    assert busy == [  # a member that cannot be integrated has nothing to note
        0 if outcome is Outcome.NOT_INTEGRABLE else count
        for outcome, count in zip(course.outcomes, course.linearisations.tolist(), strict=True)
    ]
