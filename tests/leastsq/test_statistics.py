"""Errors of the estimates: against single shooting, propagation, and the tables of Fisher and Student."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import Noise, fit, simulate
from hpcfit.leastsq.statistics import Spread, common_factor, fisher_factor, involved, single_factor, squared
from hpcfit.linear.chain import Unknowns
from hpcfit.records import FitResult, Series
from tests.shooting.driven import DRIVEN, TRUTH, Wide, read, wide_flow

TIMES = np.linspace(0.0, 4.0, 17)
START = (0.8, -0.3)
H = 2.0**-22


def observed() -> Series:
    path = simulate(
        DRIVEN,
        start=START,
        parameters=TRUTH,
        times=TIMES,
        observe=["g", "x"],
        noise=Noise(sd={"g": 0.02, "x": 0.01}),
        seed=6,
    )
    assert path.observed is not None
    return path.observed


@pytest.fixture(scope="module")
def result() -> FitResult:
    data = observed()
    found = fit(
        DRIVEN,
        data,
        guess={"a": 1.0, "b": 0.3, "c": 0.3},
        start={"y": 0.0},
        nodes=4,
        derived={"q": "x*a + t", "s": "b - c"},
    )
    assert found.converged
    return found


def single_shooting(unknowns: np.ndarray) -> Wide:
    """Weighted residuals (34,) by initial state and parameters alone."""
    data = observed()
    assert data.sigma is not None
    states = wide_flow(DRIVEN, TIMES, unknowns[:2], unknowns[2:])
    parameters = unknowns[2:].astype(np.longdouble)
    times = TIMES.astype(np.longdouble)
    rows = [
        (read(name, times, states, parameters) - data.values[:, k]) / data.sigma[:, k]
        for k, name in enumerate(data.names)
    ]
    return np.concatenate(rows)


def jacobian(unknowns: np.ndarray) -> np.ndarray:
    columns = [
        (single_shooting(unknowns + step) - single_shooting(unknowns - step)) / (2 * H)
        for step in H * np.eye(5)
    ]
    return np.stack(columns, axis=1).astype(float)


def test_the_solution_is_a_stationary_point_of_single_shooting(result: FitResult) -> None:
    values = result.unknowns.values
    rows = single_shooting(values)
    assert float((rows**2).sum()) == pytest.approx(result.objective, rel=1e-12)
    slopes = jacobian(values)
    cosines = np.abs(slopes.T @ rows.astype(float)) / (
        np.linalg.norm(slopes, axis=0) * np.sqrt(result.objective)
    )
    assert cosines.max() < 1e-9


def test_the_covariance_is_the_inverse_of_the_gauss_newton_matrix_of_single_shooting(
    result: FitResult,
) -> None:
    slopes = jacobian(result.unknowns.values)
    expected = np.linalg.inv(slopes.T @ slopes) * result.objective / (34 - 5)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((result.unknowns.covariance - expected) / scale).max() < 1e-9
    np.testing.assert_array_equal(result.unknowns.errors, np.sqrt(np.diag(result.unknowns.covariance)))
    np.testing.assert_array_equal(result.covariance, result.unknowns.covariance[2:, 2:])
    assert result.errors["a"] == result.unknowns.errors[2]


def test_errors_of_the_nodes_are_those_of_the_start_carried_along(result: FitResult) -> None:
    """Cov(x(t)) = Phi C Phi^t with Phi = dx(t) / d(x0, p)."""
    values = result.unknowns.values

    def ends(z: np.ndarray) -> Wide:
        return wide_flow(DRIVEN, [0.0, *result.node_times[1:]], z[:2], z[2:])

    slopes = np.stack([(ends(values + s) - ends(values - s)) / (2 * H) for s in H * np.eye(5)], axis=-1)
    expected = np.sqrt(np.einsum("jik,kl,jil->ji", slopes, result.unknowns.covariance, slopes).astype(float))
    np.testing.assert_allclose(result.node_errors, expected, rtol=1e-9)
    np.testing.assert_allclose(result.nodes, ends(values).astype(float), rtol=0.0, atol=1e-10)


def test_beta2_is_the_objective_by_degree_of_freedom(result: FitResult) -> None:
    assert result.degrees_of_freedom == 34 - 5
    assert result.beta2 == result.objective / 29
    assert 0.3 < result.beta2 < 2.0
    residuals = result.residuals[0]
    assert float((residuals**2).sum()) == pytest.approx(result.objective, rel=1e-12)
    np.testing.assert_array_equal(common_factor(np.array([3.0, 5.0]), np.array([6, 0])), [0.5, np.nan])


def test_derived_quantities_carry_the_propagated_error(result: FitResult) -> None:
    x, _, a, b, c = result.unknowns.values
    np.testing.assert_allclose(result.derived.values, [x * a, b - c], rtol=1e-14)
    slopes = np.array([[a, 0.0, x, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, -1.0]])
    np.testing.assert_allclose(
        result.derived.covariance, slopes @ result.unknowns.covariance @ slopes.T, rtol=1e-12
    )
    assert result.errors["s"] == result.derived.errors[1]


def test_fishers_factor_of_the_papers() -> None:
    assert fisher_factor(7, 393) == pytest.approx(3.77, abs=0.005)
    assert fisher_factor(7, 10**8) == pytest.approx(3.7506, abs=5e-5)  # sqrt of chi2(0.95; 7) = 14.0671
    assert np.isnan(fisher_factor(7, 0))


def test_students_factor(result: FitResult) -> None:
    assert single_factor(10) == pytest.approx(2.22814, abs=5e-6)
    assert single_factor(10**8) == pytest.approx(1.95996, abs=5e-6)
    assert np.isnan(single_factor(0))
    low, high = result.confidence()["a"]
    assert (high - low) / 2 == pytest.approx(single_factor(29) * result.errors["a"], rel=1e-12)
    assert result.t95 == single_factor(29)
    assert result.gamma == fisher_factor(5, 29)
    assert set(result.confidence()) == {"x", "y", "a", "b", "c", "q", "s"}


def test_unknown_standard_deviations_are_a_common_factor(result: FitResult) -> None:
    """Without sigma, all alike: errors follow from the scatter, whatever its unit."""
    data = observed()
    guess = {"a": 1.0, "b": 0.3, "c": 0.3}
    bare = Series(("x",), data.times, data.values[:, 1:])
    scaled = Series(("x",), data.times, data.values[:, 1:], np.full((17, 1), 7.0))
    one, other = (fit(DRIVEN, each, guess=guess, start={"y": 0.0}) for each in (bare, scaled))
    assert not one.sigma_known
    np.testing.assert_allclose(one.unknowns.values, other.unknowns.values, rtol=1e-9)
    np.testing.assert_allclose(one.unknowns.errors, other.unknowns.errors, rtol=1e-9)
    assert one.beta2 == pytest.approx(49.0 * other.beta2, rel=1e-9)


def test_involved_unknowns_are_those_with_a_share() -> None:
    names = ("x", "a", "b")
    assert involved(names, np.array([0.01, 1.0, -0.0])) == ("a",)
    assert involved(names, np.array([0.0, 1.0, 0.5])) == ("a", "b")
    assert involved(names, np.zeros(3)) == ()
    assert involved(names, np.full(3, np.nan)) == ()


def test_a_spread_forgets_some_members_and_takes_what_is_known_of_others() -> None:
    z = Unknowns(np.zeros((4, 5, 2)), np.zeros((4, 3)))
    spread = Spread.empty(z, 2, all_nodes=False, conditions=2)
    shapes = [(4, 2, 2, 7), (4, 0, 2), (4, 3, 7), (4,), (4, 4), (4, 3), (4, 2), (4, 2), (4, 2), (4,)]
    assert [values.shape for values in vars(spread).values()] == shapes
    assert Spread.empty(z, 2, all_nodes=True).node_errors.shape == (4, 5, 2)
    assert all(np.isnan(values).all() for values in vars(spread).values())
    known = Spread(*(np.arange(np.prod(s), dtype=float).reshape(s) for s in shapes))
    spread.put(np.array([1, 3]), known.take(np.array([0, 2])))
    spread.forget(np.array([3]))
    for mine, theirs in zip(vars(spread).values(), vars(known).values(), strict=True):
        np.testing.assert_array_equal(mine[1], theirs[0])
        assert np.isnan(mine[[0, 2, 3]]).all()


@pytest.mark.parametrize("experiments", [2, 40])
def test_a_factor_squared_is_the_covariance_whatever_its_columns_are(experiments: int) -> None:
    rng, size = np.random.default_rng(1), 3 * experiments + 2
    factor = np.zeros((size, size))
    for e in range(experiments):
        factor[3 * e : 3 * e + 3, 3 * e : 3 * e + 3] = rng.normal(size=(3, 3))
    factor[:, -2:] = rng.normal(size=(size, 2))
    np.testing.assert_allclose(squared(factor), factor @ factor.T, rtol=1e-12, atol=1e-12)
    whole = rng.normal(size=(size, size))
    np.testing.assert_allclose(squared(whole), whole @ whole.T, rtol=1e-12, atol=1e-10)
