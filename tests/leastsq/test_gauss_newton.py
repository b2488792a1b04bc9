"""The loop: where it goes, how it ends, and that the natural level falls on its way."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from hpcfit import Noise, simulate
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.gauss_newton import FLOOR, PATIENCE, GaussNewton, Pace
from hpcfit.linear.chain import Chain, Residuals, Unknowns
from hpcfit.models.catalogue import find
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Iteration, Outcome
from hpcfit.shooting.pose import Posed, pose
from tests.leastsq.toy_problems import Curve, noisy_lines, regression, run_phase


def solved(problem: Any, start: Unknowns, **more: Any) -> Course:
    course = Course.begin(start)
    run_phase(problem, course, GaussNewton(len(course.outcomes), **more))
    return course


@pytest.mark.parametrize("level", ["natural", "T1"])
def test_straight_lines_are_found_in_one_step_whatever_the_guess(level: str) -> None:
    problem = Curve(noisy_lines())
    course = solved(problem, problem.begin(1e3), level=level)
    assert course.outcomes == [Outcome.CONVERGED] * 3
    assert (course.iterations <= 3).all()  # there; then an increment of rounding errors
    expected = regression(problem.data)
    np.testing.assert_allclose(course.z.nodes[:, 0, 0], expected[:, 0], rtol=1e-12)
    np.testing.assert_allclose(course.z.parameters[:, 0], expected[:, 1], rtol=1e-12)


def test_only_the_named_members_move() -> None:
    problem = Curve(noisy_lines())
    course = Course.begin(problem.begin(5.0))
    run_phase(problem, course, GaussNewton(3), np.array([2]))
    assert course.outcomes == [Outcome.UNFINISHED, Outcome.UNFINISHED, Outcome.CONVERGED]
    np.testing.assert_array_equal(course.z.nodes[:2], problem.begin(5.0).nodes[:2])
    assert course.iterations.tolist()[:2] == [0, 0]
    assert [len(each) for each in course.history] == [0, 0, course.iterations[2]]


def test_a_spent_budget_is_an_outcome() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, problem.begin(1.0), max_iterations=1)
    assert course.outcomes == [Outcome.UNFINISHED] * 3
    assert course.iterations.tolist() == [1, 1, 1]
    assert solved(problem, problem.begin(1.0)).outcomes == [Outcome.CONVERGED] * 3


@pytest.mark.parametrize("budget", [4, 5, 6, 7])
def test_the_budget_is_never_exceeded(budget: int) -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, problem.begin(1.0), max_iterations=budget)
    assert (course.iterations <= budget).all()


def test_full_steps_that_overshoot_for_ever_become_shorter_and_other_steps_stay() -> None:
    pace, members = Pace(2), np.arange(2)
    bounce, full = np.array([1e-3, 1.0]), np.ones(2)
    taken = []
    for k in range(2 * PATIENCE + 2):
        taken.append(pace.limited(members, bounce * [1.0, 0.5**k], full).tolist())
    assert taken[PATIENCE - 1] == [1.0, 1.0]
    assert taken[PATIENCE] == [0.5, 1.0]
    assert taken[-1] == [0.25, 1.0]
    assert pace.limited(members, bounce, np.array([0.1, 0.1])).tolist() == [0.1, 0.1]
    pace.forget(members)
    assert pace.limited(members, bounce, full).tolist() == [1.0, 1.0]


def test_damped_steps_may_take_as_long_as_the_level_function_needs() -> None:
    pace, own = Pace(1), np.array([0])
    for _ in range(5 * PATIENCE):
        assert pace.limited(own, np.ones(1), np.full(1, 0.3)).tolist() == [0.3]
    assert pace.limited(own, np.ones(1), np.ones(1)).tolist() == [1.0]


@pytest.mark.parametrize("level", ["natural", "T1"])
def test_wrong_derivatives_end_without_descent_and_where_they_began(level: str) -> None:
    problem = Curve(noisy_lines(), slope=lambda p: -np.ones_like(p))
    start = problem.begin(5.0)
    course = solved(problem, start, level=level)
    assert course.outcomes == [Outcome.STALLED] * 3
    assert course.iterations.tolist() == [1, 1, 1]
    assert [each[0].damping for each in course.history] == [0.0] * 3
    np.testing.assert_array_equal(course.z.parameters, start.parameters)
    np.testing.assert_array_equal(course.z.nodes, start.nodes)


def test_members_that_cannot_be_linearised_end_and_the_others_do_not_notice() -> None:
    lines = noisy_lines()
    problem = Curve(lines, np.log, lambda p: 1.0 / p)
    start = problem.begin(2.0)
    alone = [solved(problem.take(np.array([k])), start.take(np.array([k]))) for k in (0, 2)]
    start.parameters[1] = np.nan
    together = solved(problem, start)
    assert together.outcomes == [Outcome.CONVERGED, Outcome.NOT_INTEGRABLE, Outcome.CONVERGED]
    for k, one in zip((0, 2), alone, strict=True):
        np.testing.assert_array_equal(together.z.parameters[k], one.z.parameters[0])
        np.testing.assert_array_equal(together.z.nodes[k], one.z.nodes[0])
        assert together.history[k] == one.history[0]


def test_a_trial_that_is_not_finite_is_shortened_not_fatal() -> None:
    """log(p) from p = 2 wants to step below zero, where it does not exist."""
    problem = Curve(np.broadcast_to(-3.0 * np.arange(8.0), (1, 8)), np.log, lambda p: 1.0 / p)
    with np.errstate(invalid="ignore"):
        course = solved(problem, problem.begin(2.0))
    assert course.outcomes == [Outcome.CONVERGED]
    assert course.z.parameters[0, 0] == pytest.approx(math.exp(-3.0), rel=1e-12)
    assert min(each.damping for each in course.history[0]) < 1.0


def test_a_parameter_that_does_nothing_is_left_where_it_is_and_the_rank_says_so() -> None:
    problem = Curve(noisy_lines())
    course = solved(problem, problem.begin([5.0, 7.0]))
    assert course.outcomes == [Outcome.RANK_DEFICIENT] * 3
    np.testing.assert_allclose(course.z.parameters[:, 0], regression(problem.data)[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(course.z.parameters[:, 1], [7.0] * 3)
    assert {each.rank for each in course.history[0]} == {2}


# What the last linearisation says is kept


def by_formula(problem: Curve, z: Unknowns, member: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariances of the nodes (N,) and of (s_0, p) (2, 2) without the common factor: a straight line."""
    steps = np.arange(problem.data.shape[1])
    slope = problem.slope(z.parameters[member, :1])[0]
    table = np.stack([np.ones(len(steps)), steps * slope], axis=1)
    covariance = np.linalg.inv(table.T @ table)
    return np.einsum("jk,kl,jl->j", table, covariance, table), covariance


@pytest.mark.parametrize("level", ["natural", "T1"])
def test_the_covariance_is_that_of_the_last_linearisation_and_the_objective_that_of_the_end(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two lies the last increment, below the tolerance of 1e-10 in units of the states."""
    problem = Curve(noisy_lines(), np.exp, np.exp)
    visited: list[Unknowns] = []
    linearise = Curve.linearise

    def noted(self: Curve, comm: Any, z: Unknowns) -> Chain:
        visited.append(Unknowns(z.nodes.copy(), z.parameters.copy()))
        return linearise(self, comm, z)

    monkeypatch.setattr(Curve, "linearise", noted)
    for k in range(3):
        only = np.array([k])
        course = solved(problem.take(only), problem.begin(1.0).take(only), level=level)
        spread, squares = course.spread, problem.take(only).residuals(SERIAL, course.z).objective()
        np.testing.assert_allclose(spread.objective, squares, rtol=1e-10)
        factor = np.stack([spread.nodes[0, 0, 0], spread.parameters[0, 0]])
        for z, allowed in ((visited[-1], 1e-12), (course.z, 2e-9)):
            nodes, expected = by_formula(problem, z, 0)
            np.testing.assert_allclose(spread.node_errors[0, :, 0] ** 2, nodes, rtol=allowed)
            np.testing.assert_allclose(factor @ factor.T, expected, rtol=allowed)
        assert not spread.blind_states.any()
        assert not spread.blind_parameters.any()


def test_first_nodes_alone_are_those_of_all_nodes() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    whole, first = (Course.begin(problem.begin(1.0), all_nodes=every) for every in (True, False))
    for course in (whole, first):
        run_phase(problem, course, GaussNewton(3))
    assert first.spread.nodes.shape == (3, 1, 1, 2)
    assert first.spread.node_errors.shape == (3, 0, 1)
    np.testing.assert_array_equal(first.spread.nodes, whole.spread.nodes)
    for name in ("parameters", "objective", "blind_states", "blind_parameters"):
        np.testing.assert_array_equal(getattr(first.spread, name), getattr(whole.spread, name))


def test_a_member_that_has_spent_its_budget_or_stalls_has_the_spread_of_where_it_is() -> None:
    problem = Curve(noisy_lines(), np.exp, np.exp)
    course = solved(problem, problem.begin(1.0), max_iterations=1)
    assert course.outcomes == [Outcome.UNFINISHED] * 3
    stalled = Curve(noisy_lines(), slope=lambda p: -np.ones_like(p))
    other = solved(stalled, stalled.begin(5.0))
    assert other.outcomes == [Outcome.STALLED] * 3
    for each, where in ((course, problem), (other, stalled)):
        squares = where.residuals(SERIAL, each.z).objective()
        np.testing.assert_allclose(each.spread.objective, squares, rtol=1e-12, atol=1e-25)
        for k in range(3):
            _, expected = by_formula(where, each.z, k)
            factor = np.stack([each.spread.nodes[k, 0, 0], each.spread.parameters[k, 0]])
            np.testing.assert_allclose(factor @ factor.T, expected, rtol=1e-10)
    assert course.linearisations.tolist() == [1, 1, 1]  # the last one, for the covariance, is not counted


def test_nothing_is_known_of_members_that_cannot_be_linearised() -> None:
    problem = Curve(noisy_lines())
    start = problem.begin(2.0)
    start.parameters[1] = np.nan
    spread = solved(problem, start).spread
    for values in vars(spread).values():
        assert np.isnan(values[1]).all()
        assert np.isfinite(values[[0, 2]]).all()


def test_a_parameter_that_does_nothing_is_blind() -> None:
    problem = Curve(noisy_lines())
    spread = solved(problem, problem.begin([5.0, 7.0])).spread
    np.testing.assert_allclose(spread.blind_parameters, [[0.0, 1.0]] * 3, atol=1e-9)
    np.testing.assert_allclose(spread.blind_states, 0.0, atol=1e-9)


# With J+(z_k) frozen, ||J+(z_k) F(z)||^2 falls from z_k to z_k+1 (A3): S18 of Kallrath et al. 1993.


def s18() -> Posed:
    flow = find("henon_heiles")
    path = simulate(
        flow,
        start=[0.0, 0.0, math.sqrt(0.1275), -0.35],
        parameters=[1.0, 1.0, -1.0],
        times=0.2 * np.arange(100),
        noise=Noise(sd=0.03, beyond_3_sigma="redraw"),
        seed=18,
    )
    assert path.observed is not None
    return pose(flow, [path.observed], guess={"a": 10.0, "b": 10.0, "c": 2.0})


def increment(chain: Chain, residuals: Residuals) -> tuple[np.ndarray, np.ndarray]:
    """-J+ F by plain dense algebra with the null space of all constraints: nodes (N, n), parameters (q,)."""
    _, nodes, k, n, q = chain.shape
    width = nodes * n + q
    rows, links = np.zeros((nodes * k, width)), np.zeros(((nodes - 1) * n, width))
    for j in range(nodes):
        rows[j * k : (j + 1) * k, j * n : (j + 1) * n] = chain.rows_by_node[0, j]
    rows[:, nodes * n :] = chain.rows_by_parameters[0].reshape(-1, q)
    for j in range(nodes - 1):
        links[j * n : (j + 1) * n, j * n : (j + 1) * n] = chain.links_by_node[0, j]
        links[j * n : (j + 1) * n, (j + 1) * n : (j + 2) * n] = -np.eye(n)
    links[:, nodes * n :] = chain.links_by_parameters[0].reshape(-1, q)
    whole, triangle = np.linalg.qr(links.T, mode="complete")
    ranged, free = whole[:, : len(links)], whole[:, len(links) :]
    start = -ranged @ np.linalg.solve(triangle[: len(links)].T, residuals.links[0].ravel())
    y = np.linalg.lstsq(rows @ free, -(residuals.rows[0].ravel() + rows @ start), rcond=None)[0]
    step = start + free @ y
    return step[: nodes * n].reshape(nodes, n), step[nodes * n :]


def length(chain: Chain, here: Unknowns, residuals: Residuals) -> float:
    """The increment in the units of the loop: root mean square of a state, effect of a parameter."""
    arrivals = chain.residuals.links + here.nodes[:, 1:]
    states = np.sqrt(0.5 * ((here.nodes[0] ** 2).mean(axis=0) + (arrivals[0] ** 2).mean(axis=0)))
    effect = chain.links_by_parameters[0] / states[:, None]
    parameters = 1.0 / np.sqrt((effect**2).sum(axis=1).mean(axis=0))
    nodes, dp = increment(chain, residuals)
    return float(np.sqrt(((nodes / states) ** 2).sum(axis=1).mean() + ((dp / parameters) ** 2).sum()))


def test_the_natural_level_falls_on_every_accepted_step_of_a_real_fit() -> None:
    posed = s18()
    problem, seen = posed.problem, [posed.start]
    course = Course.begin(posed.start)
    notes: list[Iteration] = []

    def watch(iteration: Iteration) -> None:
        notes.append(iteration)
        seen.append(Unknowns(course.z.nodes.copy(), course.z.parameters.copy()))

    course.watch = watch
    run_phase(problem, course, GaussNewton(1))
    assert course.outcomes == [Outcome.CONVERGED]
    far = [k for k, note in enumerate(notes) if note.increment >= FLOOR]
    assert len(far) > 5
    assert min(notes[k].damping for k in far) < 0.5  # a way with detours: the test would else say little
    for k in far:
        chain = problem.linearise(SERIAL, seen[k])
        before = length(chain, seen[k], chain.residuals)
        after = length(chain, seen[k], problem.residuals(SERIAL, seen[k + 1]))
        assert before == pytest.approx(notes[k].increment, rel=1e-7), k
        # the restrictive test promises more than a fall
        assert after <= (1.0 - 0.5 * notes[k].damping) * before * (1.0 + 1e-7), k


def test_t1_and_the_natural_level_end_at_the_same_solution() -> None:
    posed = s18()
    one, other = (solved(posed.problem, posed.start, level=level) for level in ("natural", "T1"))
    assert one.outcomes == other.outcomes == [Outcome.CONVERGED]
    assert [each.damping for each in one.history[0]] != [each.damping for each in other.history[0]]
    np.testing.assert_allclose(one.z.parameters, other.z.parameters, rtol=1e-9)
    np.testing.assert_allclose(one.z.nodes, other.z.nodes, rtol=0.0, atol=1e-9)


def test_the_last_increment_is_below_the_tolerance_or_at_the_floor_of_rounding() -> None:
    posed = s18()
    run = partial(solved, posed.problem, posed.start)
    fine, coarse = run(tolerance=1e-10), run(tolerance=1e-3)
    assert fine.history[0][-1].increment < 1e-10
    assert 1e-10 < coarse.history[0][-1].increment < 1e-3
    assert coarse.iterations[0] < fine.iterations[0]
    tiny = run(tolerance=1e-300)
    assert tiny.outcomes == [Outcome.CONVERGED]
    assert tiny.history[0][-1].increment < FLOOR
