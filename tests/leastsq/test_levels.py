"""Damping by both level functions, on a rotation whose angle is sought: nonlinear, with a known answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hpcfit.leastsq.course import Course
from hpcfit.leastsq.gauss_newton import FLOOR, GaussNewton
from hpcfit.leastsq.levels import LEVELS, SMALLEST_DAMPING, NaturalLevel, SumLevel, t1
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain, Members, Residuals, Scales, Unknowns, scaled_residuals
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.inverse import AnyInverse
from hpcfit.linear.scaling import natural_scales
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Outcome
from tests.leastsq.toy_problems import run_phase

ANGLE, N_NODES = 0.7, 12
ONLY = np.array([0])


@dataclass(frozen=True)
class Rotation:
    """s_j+1 = R(p^power) s_j, with all nodes observed; NaN where the parameter p passes the limit."""

    data: np.ndarray  # (M, N, 2)
    power: int = 1
    limit: float = np.inf
    sign: float = 1.0  # of the derivatives
    visited: list[Unknowns] = field(default_factory=list)  # where it was linearised
    failed: list[float] = field(default_factory=list)  # parameters past the limit that were tried

    def take(self, members: Members) -> Rotation:
        return replace(self, data=self.data[members])

    def across(self, comm: Any) -> Across:
        return Across(comm)

    def residuals(self, comm: Any, z: Unknowns) -> Residuals:
        p = z.parameters[:, 0]
        past = np.abs(p) > self.limit
        self.failed.extend(p[past])
        turn = turned(np.where(past, np.nan, p**self.power))
        ends = np.einsum("mil,mjl->mji", turn, z.nodes[:, :-1])
        return Residuals(z.nodes - self.data, ends - z.nodes[:, 1:])

    def linearise(self, comm: Any, z: Unknowns) -> Chain:
        self.visited.append(Unknowns(z.nodes.copy(), z.parameters.copy()))
        members, nodes, n = z.nodes.shape
        p = z.parameters[:, 0]
        turn, quarter = turned(p**self.power), turned(p**self.power + 0.5 * np.pi)
        slopes = np.einsum("mil,mjl->mji", quarter, z.nodes[:, :-1])
        slopes *= self.sign * self.power * p[:, None, None] ** (self.power - 1)
        return Chain(
            rows_by_node=np.broadcast_to(np.eye(n), (members, nodes, n, n)),
            rows_by_parameters=np.zeros((members, nodes, n, 1)),
            links_by_node=np.repeat(turn[:, None], nodes - 1, axis=1),
            links_by_parameters=slopes[..., None],
            residuals=self.residuals(comm, z),
            linked=np.ones(nodes - 1, dtype=bool),
        )


def turned(angles: np.ndarray) -> np.ndarray:
    """R (M, 2, 2)."""
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)


def rotation(**more: Any) -> Rotation:
    """Data without noise of three members that begin at different radii."""
    phases = ANGLE * np.arange(N_NODES)
    circle = np.stack([np.cos(phases), np.sin(phases)], axis=-1)
    return Rotation(np.array([1.0, 2.0, 0.5])[:, None, None] * circle, **more)


def guess(problem: Rotation, parameter: float) -> Unknowns:
    """Nodes a little off the data, so that they have to move as well."""
    off = 0.05 * np.random.default_rng(0).normal(size=problem.data.shape)
    return Unknowns(problem.data + off, np.full((len(problem.data), 1), parameter))


def solved(problem: Rotation, parameter: float, level: str) -> Course:
    course = Course.begin(guess(problem, parameter))
    run_phase(problem, course, GaussNewton(len(problem.data), level=level))
    return course


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("angle", [0.5, -0.8, 2.0])
def test_the_known_angle_is_found_near_and_far(level: str, angle: float) -> None:
    problem = rotation()
    course = solved(problem, angle, level)
    assert course.outcomes == [Outcome.CONVERGED] * 3
    np.testing.assert_allclose(course.z.parameters, ANGLE, rtol=1e-10)
    np.testing.assert_allclose(course.z.nodes, problem.data, atol=1e-10)


def frozen(problem: Rotation, z: Unknowns) -> tuple[Any, Scales]:
    chain = problem.linearise(SERIAL, z)
    scales = natural_scales(chain, z)
    return generalised_inverse(chain.scaled(scales)), scales


def test_with_the_inverse_frozen_the_natural_level_falls_in_every_step() -> None:
    """T_n^k(z_k+1) <= (1 - alpha / 2)^2 T_n^k(z_k): what the restrictive test promises."""
    problem = rotation().take(np.array([1]))
    course = solved(problem, 2.4, "natural")
    assert course.outcomes == [Outcome.CONVERGED]
    ways = list(zip(pairwise(list(problem.visited)), course.history[0], strict=False))
    damped = [step.damping for _, step in ways if step.damping < 1.0]
    assert damped
    for (here, there), step in ways:
        if step.increment < FLOOR:
            continue
        plus, scales = frozen(problem, here)
        before, after = (
            plus.solve(scaled_residuals(problem.residuals(SERIAL, z), scales)).norms()[0]
            for z in (here, there)
        )
        assert before == pytest.approx(step.increment, rel=1e-9)
        assert after <= (1.0 - 0.5 * step.damping) * before * (1.0 + 1e-9)


def test_t1_falls_in_every_step_with_weights_above_the_multipliers() -> None:
    problem = rotation().take(np.array([1]))
    course = solved(problem, 2.4, "T1")
    assert course.outcomes == [Outcome.CONVERGED]
    weights = np.zeros((1, N_NODES - 1, 2))
    ways = list(zip(pairwise(list(problem.visited)), course.history[0], strict=False))
    assert any(step.damping < 1.0 for _, step in ways)
    for (here, there), step in ways:
        if step.increment < FLOOR:
            continue
        plus, scales = frozen(problem, here)
        before, after = (scaled_residuals(problem.residuals(SERIAL, z), scales) for z in (here, there))
        weights = np.maximum(weights, 2.0 * np.abs(plus.multipliers(before, plus.solve(before))))
        assert t1(after, weights)[0] < t1(before, weights)[0]


@pytest.mark.parametrize("level", LEVELS)
def test_a_problem_without_descent_stalls_where_it_is(level: str) -> None:
    problem = rotation(sign=-1.0)
    course = solved(problem, 0.5, level)
    assert course.outcomes == [Outcome.STALLED] * 3
    for history in course.history:
        assert history[-1].damping == 0.0
        assert all(step.damping >= SMALLEST_DAMPING for step in history[:-1])


@pytest.mark.parametrize("level", LEVELS)
def test_damping_keeps_away_from_where_nothing_can_be_computed(level: str) -> None:
    """The first full step passes the limit; every trial beyond is NaN, and none of them is taken."""
    problem = rotation(power=3, limit=1.2)
    course = solved(problem, 0.3, level)
    assert problem.failed
    assert course.outcomes == [Outcome.CONVERGED] * 3
    assert all(history[0].damping < 1.0 for history in course.history)
    assert all(np.abs(z.parameters).max() <= 1.2 for z in problem.visited)
    np.testing.assert_allclose(course.z.parameters, ANGLE ** (1 / 3), rtol=1e-10)


def line(curvature: float) -> tuple[AnyInverse, Any]:
    """J = 1 and F(z + alpha dz) / F(z) = 1 - alpha + curvature alpha^2 / 2, in one node and no parameter."""
    one = np.ones((1, 1, 1, 1))
    residuals = Residuals(np.ones((1, 1, 1)), np.zeros((1, 0, 1)))
    chain = Chain(one, np.zeros((1, 1, 1, 0)), one[:, :0], np.zeros((1, 0, 1, 0)), residuals, ())
    z = Unknowns(np.full((1, 1, 1), np.sqrt(2.0)), np.zeros((1, 0)))  # where the unit of the state is 1
    here = AnyInverse(chain, z, generalised_inverse)

    def trial(alpha: np.ndarray, which: Any) -> Residuals:
        rows = 1.0 - alpha + 0.5 * curvature * alpha**2
        return Residuals(rows[:, None, None], np.zeros((len(alpha), 0, 1)))

    return here, trial


@pytest.mark.parametrize(("curvature", "damping"), [(0.0, 1.0), (0.99, 1.0), (4.0, 0.25), (50.0, 0.02)])
def test_natural_damping_is_the_inverse_of_the_curvature(curvature: float, damping: float) -> None:
    """away = omega alpha^2 / 2 <= alpha / 2 holds up to alpha = 1 / omega; omega is estimated by a trial."""
    here, trial = line(curvature)
    level = NaturalLevel(1)
    found = level.damping(here, ONLY, trial, ONLY)[0]
    assert 0.2 * damping <= found <= damping * (1.0 + 1e-12)
    assert level.curvature[0] == pytest.approx(curvature, rel=1e-9, abs=1e-12)
    again = level.damping(here, ONLY, trial, ONLY)[0]  # halved if rounding finds it too large
    assert 0.499 * damping <= again <= damping * (1.0 + 1e-12)


def test_sum_level_takes_the_best_of_the_halvings() -> None:
    """1 - alpha + 4 alpha^2 is smallest at 1/8 of all halvings; without multipliers T1 is half its square."""
    here, trial = line(8.0)
    assert SumLevel(1).damping(here, ONLY, trial, ONLY).tolist() == [0.125]


@pytest.mark.parametrize("level", LEVELS)
def test_a_member_that_is_forgotten_is_like_a_new_one(level: str) -> None:
    """Another member in its place must not inherit what was learned."""
    here, trial = line(50.0)
    used, new = LEVELS[level](3), LEVELS[level](3)
    used.damping(here, ONLY, trial, np.array([1]))
    before = vars(new)
    assert any(not np.array_equal(a, b) for a, b in zip(vars(used).values(), before.values(), strict=True))
    used.forget(np.array([1]))
    assert all(np.array_equal(a, b) for a, b in zip(vars(used).values(), before.values(), strict=True))


def test_levels_know_members_by_their_numbers_in_the_course() -> None:
    here, trial = line(50.0)
    level = NaturalLevel(3)
    level.damping(here, ONLY, trial, np.array([2]))
    assert level.curvature.tolist()[:2] == [0.0, 0.0]
    assert level.curvature[2] == pytest.approx(50.0, rel=1e-9)
    weights = SumLevel(3)
    weights.damping(here, ONLY, trial, np.array([2]))
    assert [each is None for each in weights.weights] == [True, True, False]
