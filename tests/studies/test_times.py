"""Times of observation as unknowns: the same as all of them side by side with the others, and true errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import binom

from hpcfit import Noise, fit, simulate
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import InputError, Outcome, Path
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.pose import pose
from hpcfit.studies.ensemble import fit_ensemble
from tests.conftest import ROOT, Mpirun

HENON_HEILES = find("henon_heiles")
START, PARAMETERS = [0.0, 0.0, math.sqrt(0.1275), -0.35], [1.0, 1.0, -1.0]
GUESS = {"a": 1.5, "b": 1.5, "c": -0.5}
NOISE = Noise(sd=0.003, sd_t=0.02)


def path(count: int = 100, noise: Noise | None = None, **more: Any) -> Path:
    times = 0.2 * np.arange(count)
    return simulate(
        HENON_HEILES, start=START, parameters=PARAMETERS, times=times, noise=noise, seed=4, **more
    )


def driven() -> Any:
    """An oscillator that depends on the time, with a gauge that does so, too."""
    return model_from_strings(
        "driven",
        states=("x", "v"),
        parameters=("k", "f"),
        equations={"x": "v", "v": "-k*x - 0.1*v + f*cos(1.3*t)"},
        observables={"gauge": "x*x + 0.2*sin(t) + v"},
    )


def side_by_side(one: Any, given: Any, begin: np.ndarray) -> Any:
    """The same estimate by all unknowns: initial state, parameters and every time."""
    n, count = len(one.states), given.count

    def rows(z: np.ndarray) -> np.ndarray:
        free, u = z[: len(z) - count], z[len(z) - count :]
        times = given.times + given.sigma_t * u
        order = np.argsort(times)
        early = given.times[0] - 1.0
        states = np.empty((count, n))
        back = propagate(reversed_(one), [0.0, 1.0], free[:n], [*free[n:], given.times[0]]).states[0, 1]
        grid = np.concatenate([[early], times[order]])
        states[order] = propagate(one, grid, back, free[n:]).states[0, 1:]
        x, v = states.T
        read = x * x + 0.2 * np.sin(times) + v
        return np.concatenate([(read - given.values[:, 0]) / given.sigma[:, 0], u])

    return least_squares(rows, begin, method="lm", xtol=1e-14, ftol=1e-14, gtol=1e-14)


def reversed_(one: Any) -> Any:
    """The driven oscillator backward in time, from the time `begin`."""
    return model_from_strings(
        "backward",
        states=("x", "v"),
        parameters=("k", "f", "begin"),
        equations={"x": "-v", "v": "k*x + 0.1*v - f*cos(1.3*(begin - t))"},
    )


@pytest.mark.parametrize("nodes", ["data", 4])
def test_the_same_as_all_unknowns_side_by_side(nodes):
    one = driven()
    truth = simulate(
        one,
        start=[0.5, 0.1],
        parameters=[1.7, 0.6],
        times=0.3 * np.arange(30),
        observe=("gauge",),
        noise=Noise(sd=0.02, sd_t=0.08),
        seed=2,
    )
    found = fit(
        one, truth.observed, guess={"k": 1.6, "f": 0.7}, start={"x": "0.5*cos(t)", "v": 0.1}, nodes=nodes
    )
    assert found.converged
    begin = np.concatenate([found.unknowns.values + 1e-4, found.time_shifts[0] / 0.08])
    every = side_by_side(one, truth.observed, begin)
    np.testing.assert_allclose(found.objective, 2.0 * every.cost, rtol=1e-8)
    np.testing.assert_allclose(found.unknowns.values, every.x[:4], rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(found.time_shifts[0] / 0.08, every.x[4:], atol=1e-5)
    inverse = np.linalg.inv(every.jac.T @ every.jac)[:4, :4] * found.beta2
    np.testing.assert_allclose(found.unknowns.covariance, inverse, rtol=1e-4, atol=1e-8)
    assert found.degrees_of_freedom == 30 - 4


def test_slopes_lead_where_the_sum_of_squares_falls():
    """A^t F is the derivative of half the sum, whose times are the best ones everywhere."""
    seen = path(12, NOISE).observed
    seen.values[3, 1] = seen.values[5] = np.nan
    posed = pose(HENON_HEILES, [seen], guess=GUESS, nodes=3)
    z, problem = posed.start, posed.problem
    z.nodes[:] += 0.01 * np.random.default_rng(1).normal(size=z.nodes.shape)
    chain = problem.linearise(SERIAL, z)
    by_node = np.einsum("mjkn,mjk->mjn", chain.rows_by_node, chain.residuals.rows)[0]
    by_parameters = np.einsum("mjkq,mjk->mq", chain.rows_by_parameters, chain.residuals.rows)[0]
    size = 1e-6
    for place, slope in [((0, 1, 2), by_node[1, 2]), ((0, 2, 0), by_node[2, 0]), ((0, 4, 3), by_node[4, 3])]:
        sums = []
        for sign in (1.0, -1.0):
            nodes = z.nodes.copy()
            nodes[place] += sign * size
            sums.append(0.5 * problem.residuals(SERIAL, type(z)(nodes, z.parameters)).objective()[0])
        np.testing.assert_allclose((sums[0] - sums[1]) / (2 * size), slope, rtol=1e-6, atol=1e-4)
    for k in range(3):
        sums = []
        for sign in (1.0, -1.0):
            parameters = z.parameters.copy()
            parameters[0, k] += sign * size
            sums.append(0.5 * problem.residuals(SERIAL, type(z)(z.nodes, parameters)).objective()[0])
        np.testing.assert_allclose((sums[0] - sums[1]) / (2 * size), by_parameters[k], rtol=1e-6, atol=1e-4)


def test_the_times_are_found():
    """Shifts are near those that were made, nearer than what was stated."""
    truth = path(100, NOISE)
    found = fit(HENON_HEILES, truth.observed, guess=GUESS)
    exact = fit(HENON_HEILES, truth.observed, guess=GUESS, times="exact")
    assert found.converged
    assert found.beta2 < 1.3
    assert exact.beta2 > 2.0
    assert exact.time_shifts == ()
    assert len(found.time_shifts[0]) == 100
    assert 0.015 < np.sqrt(np.mean(found.time_shifts[0] ** 2)) < 0.025


def test_exact_times_are_fitted_to_the_same_bits():
    """Standard deviations of 0 say nothing."""
    noisy = path(60, Noise(sd=0.003)).observed
    values = dict(zip(noisy.names, noisy.values.T, strict=True))
    plain = fit(HENON_HEILES, Experiment(noisy.times, values, 0.003), guess=GUESS)
    timed = fit(HENON_HEILES, Experiment(noisy.times, values, 0.003, 0.0), guess=GUESS)
    np.testing.assert_array_equal(plain.unknowns.values, timed.unknowns.values)
    tiny = fit(HENON_HEILES, Experiment(noisy.times, values, 0.003, 1e-9), guess=GUESS)
    np.testing.assert_allclose(tiny.unknowns.values, plain.unknowns.values, atol=1e-8)
    np.testing.assert_allclose(tiny.unknowns.covariance, plain.unknowns.covariance, rtol=1e-6)


def test_unbiased_with_errors_of_times_and_not_without():
    """200 members: estimates spread as their errors say; chi-square tells when times are taken as exact."""
    members = 200
    found = {}
    for times in ("measured", "exact"):
        result = fit_ensemble(
            HENON_HEILES,
            path(),
            NOISE,
            seed=9,
            members=range(1, members + 1),
            guess=GUESS,
            times=times,
        )
        assert all(outcome is Outcome.CONVERGED for outcome in result.outcomes)
        off = (result.estimates - [*START, *PARAMETERS]) / result.errors
        found[times] = off, np.mean(result.objective / result.degrees_of_freedom)
    off, beta2 = found["measured"]
    assert abs(beta2 - 1.0) < 0.03
    low, high = binom.ppf([0.0005, 0.9995], members, 0.95)
    inside = (np.abs(off) < 1.966).sum(axis=0)
    assert ((inside >= low) & (inside <= high)).all()
    assert (np.abs(off.mean(axis=0)) < 3.5 / math.sqrt(members)).all()
    off, beta2 = found["exact"]
    assert beta2 > 3.0
    assert ((np.abs(off) < 1.966).sum(axis=0)[[0, 1, 5, 6]] < low).all()


def test_members_do_not_depend_on_their_neighbours():
    wide = fit_ensemble(HENON_HEILES, path(40), NOISE, seed=9, members=range(1, 8), guess=GUESS)
    one = fit_ensemble(HENON_HEILES, path(40), NOISE, seed=9, members=[5], guess=GUESS)
    np.testing.assert_array_equal(wide.estimates[4], one.estimates[0])
    alone = fit(HENON_HEILES, simulate_member(5), guess=GUESS)
    np.testing.assert_array_equal(one.estimates[0], alone.unknowns.values)


def simulate_member(member: int) -> Any:
    times = 0.2 * np.arange(40)
    return simulate(
        HENON_HEILES,
        start=START,
        parameters=PARAMETERS,
        times=times,
        noise=NOISE,
        seed=9,
        member=member,
    ).observed


def test_models_that_cannot_go_backward_are_refused():
    @model(states="x", parameters="r", kind="map")
    def logistic(t, u, p):
        return p.r * u.x * (1 - u.x)

    data = Experiment(np.arange(5.0), {"x": np.linspace(0.1, 0.5, 5)}, 0.1, 0.2)
    with pytest.raises(InputError, match=r"data\.sigma_t: a map has no times between"):
        fit(logistic, data, guess={"r": 3.0})
    bounce = model_from_strings("kinked", states=("x",), parameters=("r",), equations={"x": "-r*abs(x)"})
    with pytest.raises(InputError, match="jumps, switches or kinks is not followed backward"):
        fit(bounce, data, guess={"r": 0.1})
    with pytest.raises(InputError, match="sigma_t is -1"):
        Experiment([0.0, 1.0], {"x": [1.0, 2.0]}, 0.1, [0.1, -1.0])
    with pytest.raises(InputError, match="give one number, or 2"):
        Experiment([0.0, 1.0], {"x": [1.0, 2.0]}, 0.1, [0.1, 0.1, 0.1])


ON_RANKS = """
from mpi4py import MPI
from hpcfit import fit
from tests.studies.test_times import GUESS, HENON_HEILES, NOISE, path
for count in (60, 700):
    found = fit(HENON_HEILES, path(count, NOISE).observed, guess=GUESS, comm=MPI.COMM_WORLD)
    assert found.converged
    assert len(found.time_shifts[0]) == count == len(found.residuals[0])
    if MPI.COMM_WORLD.rank == 0:
        print(found.unknowns.values.tolist(), found.time_shifts[0].tolist())
"""


def test_the_same_on_any_number_of_ranks(mpirun: Mpirun):
    """Also where nodes are spread over ranks."""
    answers = [mpirun(ranks, "-c", ON_RANKS, cwd=ROOT) for ranks in (1, 2, 3)]
    assert [answer.returncode for answer in answers] == [0, 0, 0], answers[-1].stderr
    assert answers[0].stdout == answers[1].stdout == answers[2].stdout
