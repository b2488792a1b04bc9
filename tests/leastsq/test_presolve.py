"""The presolve: parameters alone, with the nodes held where they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hpcfit import simulate
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.presolve import MAX_ITERATIONS, Presolve
from hpcfit.linear.chain import Unknowns
from hpcfit.models.catalogue import find
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Outcome
from hpcfit.shooting.pose import pose
from tests.leastsq.toy_problems import Curve, noisy_lines, run_phase

UNIT = np.ones(1)


def presolved(problem: Curve, start: Unknowns, precision: np.ndarray = UNIT) -> Course:
    course = Course.begin(start)
    run_phase(problem, course, Presolve(len(problem.data), precision))
    return course


def misfit(problem: Curve, z: Unknowns) -> np.ndarray:
    return (problem.residuals(SERIAL, z).links ** 2).sum(axis=(1, 2))


def test_the_best_parameters_between_fixed_nodes_are_mean_steps() -> None:
    problem = Curve(noisy_lines())
    start = problem.begin(50.0)
    course = presolved(problem, start)
    np.testing.assert_allclose(course.z.parameters[:, 0], np.diff(problem.data).mean(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(course.z.nodes, start.nodes)
    assert (course.linearisations >= 1).all()
    assert (course.iterations == 0).all()
    assert {note.phase for each in course.history for note in each} == {"presolve"}


def test_the_misfit_never_rises_and_steps_are_halved_where_it_would() -> None:
    """arctan from far away: the full step overshoots by orders of magnitude."""
    problem = Curve(noisy_lines(), np.arctan, lambda p: 1.0 / (1.0 + p**2))
    start = problem.begin(3.0)
    course = presolved(problem, start)
    assert (misfit(problem, course.z) < misfit(problem, start)).all()
    for notes in course.history:
        values = [note.objective for note in notes]
        assert all(later <= earlier for earlier, later in pairwise(values))
    assert min(note.damping for each in course.history for note in each) < 1.0


def test_a_step_that_never_helps_is_not_taken() -> None:
    problem = Curve(noisy_lines(), slope=lambda p: -np.ones_like(p))
    start = problem.begin(5.0)
    course = presolved(problem, start)
    np.testing.assert_array_equal(course.z.parameters, start.parameters)
    assert [[note.damping for note in each] for each in course.history] == [[0.0]] * 3


def test_hidden_states_have_no_say() -> None:
    problem = Curve(noisy_lines())
    start = problem.begin(5.0)
    course = presolved(problem, start, np.zeros(1))
    np.testing.assert_array_equal(course.z.parameters, start.parameters)


def test_members_that_cannot_be_integrated_end_and_others_go_on() -> None:
    problem = Curve(noisy_lines())
    start = problem.begin(5.0)
    start.parameters[1] = np.nan
    course = presolved(problem, start)
    assert course.outcomes[1] is Outcome.NOT_INTEGRABLE
    expected = np.diff(problem.data).mean(axis=1)
    np.testing.assert_allclose(course.z.parameters[[0, 2], 0], expected[[0, 2]], rtol=1e-12)


def test_no_parameters_is_nothing_to_do() -> None:
    problem = Curve(noisy_lines())
    course = Course.begin(Unknowns(problem.data[..., None].copy(), np.zeros((3, 0))))
    run_phase(problem, course, Presolve(3, UNIT))
    assert course.history == [[], [], []]


def test_with_exact_nodes_the_parameters_of_hénon_heiles_are_exact() -> None:
    """From (10, 10, 2), where the exact method alone goes astray for many a noise."""
    flow = find("henon_heiles")
    truth = [1.0, 1.0, -1.0]
    path = simulate(
        flow, start=[0.0, 0.0, 0.357, -0.35], parameters=truth, times=0.2 * np.arange(40), method="taylor128"
    )
    assert path.exact is not None
    posed = pose(flow, [path.exact], guess={"a": 10.0, "b": 10.0, "c": 2.0})
    course = Course.begin(posed.start)
    run_phase(posed.problem, course, Presolve(1, posed.precision))
    assert len(course.history[0]) <= MAX_ITERATIONS
    assert course.z.parameters[0] == pytest.approx(truth, abs=1e-11)
