"""Loose continuity, tightened: from zeros to the neighbourhood of the solution."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hpcfit import Noise, simulate
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.gauss_newton import GaussNewton
from hpcfit.leastsq.homotopy import (
    LARGEST_CHANGE,
    LOOSEST_HIDDEN,
    LOOSEST_OBSERVED,
    NEIGHBOURS,
    QUICK,
    THOROUGH,
    Homotopy,
)
from hpcfit.linear.across import Across
from hpcfit.models.catalogue import find
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Iteration, Outcome
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.pose import Posed, pose
from tests.leastsq.toy_problems import Curve, noisy_lines, run_phase, unknowns_alike

LORENZ = find("lorenz")
GUESS = {"sigma": 5.0, "r": 20.0, "b": 1.0}
TRUTH = np.array([10.0, 46.0, 8 / 3])


def hidden_lorenz(members: int = 1) -> Posed:
    """x alone, every 0.1, with little noise; y and z begin at zero."""
    times = 0.1 * np.arange(25)
    start = [5.76540, 10.50547, 30.58941]
    paths = [
        simulate(
            LORENZ,
            start=start,
            parameters=TRUTH,
            times=times,
            observe=["x"],
            noise=Noise(sd=0.01),
            seed=4,
            member=m,
        )
        for m in range(members)
    ]
    series = [path.observed for path in paths]
    assert series[0] is not None
    values = np.stack([each.values for each in series if each is not None])
    return pose(LORENZ, [series[0]], guess=GUESS).with_values([values])


def tighten(problem: Any, course: Course, loosest: float, members: np.ndarray | None = None) -> None:
    phase = Homotopy(course.z)
    phase.begin = partial(phase.begin, loosest=loosest)  # type: ignore[method-assign]
    run_phase(problem, course, phase, members)


def tightened(posed: Posed, watch: Any = None) -> Course:
    course = Course.begin(posed.start, watch)
    tighten(posed.problem, course, LOOSEST_HIDDEN)
    return course


def test_hidden_states_from_zero_come_so_near_that_the_exact_method_needs_a_few_steps() -> None:
    posed = hidden_lorenz()
    course = tightened(posed)
    assert np.abs(course.z.parameters[0] / TRUTH - 1.0).max() < 0.005
    assert course.history[0][-1].defect < 2e-3  # in units of the states
    assert course.iterations[0] == 0
    run_phase(posed.problem, course, GaussNewton(1))
    assert course.outcomes == [Outcome.CONVERGED]
    assert course.iterations[0] <= 6


def test_no_step_changes_a_parameter_by_more_than_its_share() -> None:
    posed = hidden_lorenz()
    course = Course.begin(posed.start)
    seen = [posed.start.parameters[0].copy()]
    nodes = [posed.start.nodes[0].copy()]

    def watch(iteration: Iteration) -> None:
        assert iteration.phase == "weak"
        assert iteration.damping in (0.0, 1.0)
        moved = bool((course.z.nodes[0] != nodes[-1]).any())
        assert moved == (iteration.damping == 1.0)
        nodes.append(course.z.nodes[0].copy())
        seen.append(course.z.parameters[0].copy())

    course.watch = watch
    tighten(posed.problem, course, LOOSEST_HIDDEN)
    changes = [np.abs(late / early - 1.0).max() for early, late in pairwise(seen)]
    assert max(changes) <= LARGEST_CHANGE * (1.0 + 1e-12)
    assert max(changes) > 0.99 * LARGEST_CHANGE  # the limit was needed


def test_members_side_by_side_are_those_alone_bit_for_bit() -> None:
    together = hidden_lorenz(3)
    course = tightened(together)
    for k in range(3):
        only = np.array([k])
        one = replace(together, problem=together.problem.take(only), start=together.start.take(only))
        alone = tightened(one)
        np.testing.assert_array_equal(course.z.nodes[k], alone.z.nodes[0])
        np.testing.assert_array_equal(course.z.parameters[k], alone.z.parameters[0])
        assert course.history[k] == alone.history[0]


@pytest.mark.parametrize("spent", [1, 6, 15])
def test_a_place_that_is_used_again_begins_afresh(spent: int) -> None:
    """Whatever was learned of the member before: looseness, holds, reach, what was taken and rejected."""
    posed, only = hidden_lorenz(), np.array([0])
    phase = Homotopy(posed.start)
    new = {name: values.copy() for name, values in vars(phase).items() if name != "care"}
    before = Course.begin(posed.start)
    phase.begin(only, LOOSEST_HIDDEN)
    for _ in range(spent):
        phase.iterate(SERIAL, posed.problem, before, only)
    assert not all(np.array_equal(vars(phase)[name], values) for name, values in new.items())
    phase.holds[:], phase.reach[:], phase.rejected[:] = 0.3, 0.01, 5  # as after rejections
    phase.begin(only, LOOSEST_HIDDEN)
    course, fresh = Course.begin(posed.start), tightened(posed)
    left = only
    while len(left):
        left = phase.iterate(SERIAL, posed.problem, course, left)
    assert course.history == fresh.history
    unknowns_alike(course.z, fresh.z)


def test_straight_lines_with_loose_joints_end_near_the_regression() -> None:
    """The last looseness still lets the nodes towards the data, by little."""
    problem = Curve(noisy_lines())
    course = Course.begin(problem.begin(0.5))
    tighten(problem, course, LOOSEST_OBSERVED)
    exact = Course.begin(problem.begin(0.5))
    run_phase(problem, exact, GaussNewton(3))
    assert np.abs(course.z.parameters - exact.z.parameters).max() < 1e-3
    assert np.abs(course.z.nodes - exact.z.nodes).max() < 1e-2
    assert (course.iterations == 0).all()


def test_neighbourhoods_are_sums_of_their_nodes_however_large_the_others_are() -> None:
    merit = np.arange(1.0, 21.0)[None].repeat(2, axis=0)
    merit[1, 0] = 1e30  # a node from which nothing could be integrated
    reach = NEIGHBOURS // 2
    for k in range(20):
        own = merit[:, max(k - reach, 0) : k + reach + 1].sum(axis=1)
        np.testing.assert_allclose(Across(SERIAL).around(merit, reach)[:, k], own, rtol=1e-15)


def test_thorough_tightening_ends_tighter() -> None:
    posed, found = hidden_lorenz(), []
    for care in (QUICK, THOROUGH):
        course, phase, only = Course.begin(posed.start), Homotopy(posed.start), np.array([0])
        phase.begin(only, LOOSEST_HIDDEN, care)
        left = only
        while len(left):
            left = phase.iterate(SERIAL, posed.problem, course, left)
        found.append(course.history[0][-1].defect)
        assert phase.looseness[0] < care.tightest
        assert np.abs(course.z.parameters[0] / TRUTH - 1.0).max() < 0.005
    assert found[1] < found[0]


def test_a_state_that_nothing_sees_stays_where_it_is() -> None:
    pair = model_from_strings(
        "pair", states=["x", "y"], parameters=["k"], equations={"x": "-k*x", "y": "-k*y"}
    )
    times = np.linspace(0.0, 2.0, 21)
    posed = pose(
        pair,
        [Experiment(times, {"x": np.exp(-0.7 * times)}, 0.01).series],
        guess={"k": 1.0},
        start={"y": 0.0},
    )
    course = tightened(posed)
    assert course.z.parameters[0, 0] == pytest.approx(0.7, abs=1e-6)
    assert np.abs(course.z.nodes[0, :, 1]).max() < 1e-10
    np.testing.assert_allclose(course.z.nodes[0, :, 0], np.exp(-0.7 * times), atol=1e-6)


def test_a_member_that_cannot_be_integrated_ends_and_the_others_do_not_notice() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    start = problem.begin(0.3)
    alone = Course.begin(start)
    tighten(problem, alone, 1.0, np.array([0, 2]))
    start.parameters[1] = np.nan
    course = Course.begin(start)
    tighten(problem, course, 1.0)
    assert course.outcomes[1] is Outcome.NOT_INTEGRABLE
    np.testing.assert_array_equal(course.z.parameters[[0, 2]], alone.z.parameters[[0, 2]])
