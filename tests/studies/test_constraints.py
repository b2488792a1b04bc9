"""Constrained fits: against scipy by single shooting, what they tell, and how those end that cannot be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hpcfit import Experiment, InputError, Noise, fit, model, simulate
from hpcfit.models.catalogue import find
from hpcfit.models.strings import model_from_strings
from hpcfit.records import FitResult, Outcome, Series
from hpcfit.studies.ensemble import fit_ensemble

HENON_HEILES = find("henon_heiles")
GUESS = {"a": 2.0, "b": 2.0, "c": 1.0}
DECAY = model_from_strings("decay", states=["x"], parameters=["k"], equations={"x": "-k*x"})
OSCILLATOR = model_from_strings(
    "oscillator", states=["x", "y"], parameters=["w", "c"], equations={"x": "y", "y": "-w*x - c*y"}
)


def noisy(flow: Any, start: Any, parameters: Any, times: Any, sd: float = 0.03, **more: Any) -> Series:
    found = simulate(
        flow, start=start, parameters=parameters, times=times, noise=Noise(sd=sd), **{"seed": 3, **more}
    ).observed
    assert found is not None
    return found


@pytest.fixture(scope="module")
def data() -> Series:
    return noisy(HENON_HEILES, [0.0, 0.0, 0.3, -0.41], [1.0, 1.0, -1.0], 0.2 * np.arange(60))


class SingleShooting:
    """The same problem in initial states and parameters alone, for scipy; conditions are numpy's."""

    def __init__(self, flow: Any, series: Series) -> None:
        self.flow, self.series, self.n = flow, series, len(flow.states)

    def path(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (T, n) and their derivatives by the unknowns (T, n, f)."""
        path = simulate(
            self.flow,
            start=unknowns[: self.n],
            parameters=unknowns[self.n :],
            times=self.series.times,
            sensitivities=True,
        )
        assert path.by_start is not None
        assert path.by_parameters is not None
        return path.states, np.concatenate([path.by_start, path.by_parameters], axis=2)

    def half(self, unknowns: np.ndarray) -> tuple[float, np.ndarray]:
        """Half the sum of squares and its gradient."""
        states, slopes = self.path(unknowns)
        assert self.series.sigma is not None
        rows = (states - self.series.values) / self.series.sigma
        return 0.5 * float((rows**2).sum()), np.einsum("ti,tif->f", rows / self.series.sigma, slopes)


def against_scipy(
    flow: Any, series: Series, result: FitResult, conditions: Sequence[tuple[bool, Any]]
) -> None:
    """Optimum to 1e-8, multipliers to 1e-6; conditions: exact, and (value, gradient) by states, slopes, z."""
    oracle, begin = SingleShooting(flow, series), result.unknowns.values
    scale = np.maximum(np.abs(begin), 0.05)
    f = len(begin)

    def part(k: int, which: int) -> Any:
        def at(x: np.ndarray) -> Any:
            z = x * scale
            found = conditions[k][1](*oracle.path(z), z, np.eye(f))[which]
            return found * scale if which else found

        return at

    moved = begin * (1.0 + 0.01 * np.random.default_rng(1).normal(size=f))
    other = minimize(
        lambda x: oracle.half(x * scale)[0],
        moved / scale,
        jac=lambda x: oracle.half(x * scale)[1] * scale,
        constraints=[
            {"type": "eq" if exact else "ineq", "fun": part(k, 0), "jac": part(k, 1)}
            for k, (exact, _) in enumerate(conditions)
        ],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 300},
    )
    z = other.x * scale
    half, gradient = oracle.half(z)
    assert 0.5 * result.objective == pytest.approx(half, rel=1e-8)
    np.testing.assert_allclose(result.unknowns.values, z, atol=1e-6, rtol=1e-6)
    active = [k for k, each in enumerate(result.constraints) if each.active]
    normals = np.array([part(k, 1)(other.x) for k in active])
    pulls = np.linalg.lstsq(normals.T, gradient * scale, rcond=None)[0]
    own = oracle.half(begin)[1] * scale
    normals_here = np.array([part(k, 1)(begin / scale) for k in active])
    here = np.linalg.lstsq(normals_here.T, own, rcond=None)[0]
    told = np.array([result.constraints[k].multiplier for k in active])
    np.testing.assert_allclose(told, here, rtol=1e-6, atol=1e-6 * np.abs(told).max())
    np.testing.assert_allclose(told, pulls, rtol=1e-4, atol=1e-4 * np.abs(told).max())  # scipy's own accuracy
    for k, each in enumerate(result.constraints):
        if not each.active:
            assert part(k, 0)(other.x) > 0.0


def energy(s: np.ndarray, z: np.ndarray) -> float:
    x1, x2, x3, x4 = s
    return float((x3**2 + x4**2) / 2 + (z[4] * x1**2 + z[5] * x2**2) / 2 + x1**2 * x2 + z[6] * x2**3 / 3)


@pytest.mark.parametrize("level", ["natural", "T1"])
def test_bounds_and_relations_of_henon_heiles(data: Series, level: str) -> None:
    constraints = ["x1@start = 0", "a <= 1", "a + b >= 2.02", "x1@5 >= -1", "x2@11.8*a <= -0.068"]
    result = fit(HENON_HEILES, data, guess=GUESS, constraints=constraints, level=level)
    assert result.converged, result.cause
    assert [each.active for each in result.constraints] == [True, True, True, False, True]
    assert result.at_bounds == {"x1": "x1@start = 0", "a": "a <= 1"}
    conditions = [
        (True, lambda s, d, z, e: (z[0], e[0])),
        (False, lambda s, d, z, e: (1.0 - z[4], -e[4])),
        (False, lambda s, d, z, e: (z[4] + z[5] - 2.02, e[4] + e[5])),
        (False, lambda s, d, z, e: (s[25, 0] + 1.0, d[25, 0])),
        (False, lambda s, d, z, e: (-0.068 - s[59, 1] * z[4], -d[59, 1] * z[4] - s[59, 1] * e[4])),
    ]
    against_scipy(HENON_HEILES, data, result, conditions)
    assert result.degrees_of_freedom == 240 - 7 + 4
    errors = result.errors
    assert errors["x1"] == errors["a"] == errors["b"] == 0.0
    assert min(errors[name] for name in ("x2", "x3", "x4", "c")) > 0.0


def test_a_nonlinear_condition_on_the_energy(data: Series) -> None:
    result = fit(HENON_HEILES, data, guess=GUESS, constraints="energy@start = 0.13")
    assert result.converged
    assert energy(result.nodes[0], result.unknowns.values) == pytest.approx(0.13, rel=1e-12)
    values = result.unknowns.values

    def condition(s: np.ndarray, d: np.ndarray, z: np.ndarray, e: np.ndarray) -> tuple[float, np.ndarray]:
        step = 1e-6
        slope = [(energy(*_split(z + step * u)) - energy(*_split(z - step * u))) / (2 * step) for u in e]
        return energy(*_split(z)) - 0.13, np.array(slope)

    assert abs(condition(values[:0], values, values, np.eye(7))[0]) < 1e-13
    against_scipy(HENON_HEILES, data, result, [(True, condition)])


def _split(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return z[:4], z


def test_periodicity_makes_the_covariance_that_of_its_null_space() -> None:
    vdp = model_from_strings(
        "turn",
        states=["x", "y"],
        parameters=["mu", "T"],
        equations={"x": "T*y", "y": "T*(mu*(1 - x**2)*y - x)"},
    )
    start, parameters, times = [2.00861986, 0.0], [1.0, 6.66328686], np.linspace(0.0, 1.0, 41)
    series = noisy(vdp, start, parameters, times, sd=0.1)
    lines = ["x@end = x@start", "y@end = y@start"]
    result = fit(vdp, series, guess={"mu": 0.5, "T": 6.0}, constraints=lines)
    assert result.converged
    np.testing.assert_allclose(result.nodes[-1], result.nodes[0], atol=1e-12)
    against_scipy(
        vdp,
        series,
        result,
        [(True, lambda s, d, z, e, i=i: (s[-1, i] - s[0, i], d[-1, i] - d[0, i])) for i in range(2)],
    )
    _, slopes = SingleShooting(vdp, series).path(result.unknowns.values)
    normals = slopes[-1] - slopes[0]
    along = np.linalg.svd(normals)[2][2:].T
    rows = slopes.reshape(-1, 4) / 0.1 @ along
    covariance = result.beta2 * along @ np.linalg.inv(rows.T @ rows) @ along.T
    np.testing.assert_allclose(result.unknowns.covariance, covariance, rtol=1e-7, atol=1e-12)


def test_conditions_between_experiments_and_on_local_parameters() -> None:
    times = 0.1 * np.arange(30)
    series = [
        noisy(DECAY, [x], [k], times, experiment=e) for e, (x, k) in enumerate([(1.0, 0.5), (2.0, 0.6)])
    ]
    lines = ["x@2:start = 2*x@1:start", "k@1 = k@2"]
    result = fit(DECAY, series, guess={"k": 1.0}, local="k", constraints=lines)
    shared = fit(DECAY, series, guess={"k": 1.0}, constraints="x@2:start = 2*x@1:start")
    assert result.parameters["k@1"] == pytest.approx(result.parameters["k@2"], rel=1e-14)
    assert result.parameters["k@1"] == pytest.approx(shared.parameters["k"], rel=1e-9)
    assert result.objective == pytest.approx(shared.objective, rel=1e-10)
    assert result.errors["k@1"] == pytest.approx(shared.errors["k"], rel=1e-8)
    assert result.degrees_of_freedom == shared.degrees_of_freedom == 60 - 3 + 1
    every = fit(DECAY, series, guess={"k": 1.0}, constraints="x@end <= 0.4")
    assert [each.text for each in every.constraints] == ["x@1:end <= 0.4", "x@2:end <= 0.4"]


def test_a_condition_between_data_and_nodes_gets_a_node() -> None:
    times = 0.5 * np.arange(20)
    series = noisy(OSCILLATOR, [1.0, 0.0], [1.0, 0.1], times)
    guess = {"w": 1.2, "c": 0.2}
    plain = fit(OSCILLATOR, series, guess=guess, nodes=5)
    path = simulate(
        OSCILLATOR, start=plain.initial_states, parameters=plain.parameters, times=np.array([0.0, 3.21])
    )
    bound = float(path.states[1, 0]) + 0.01
    result = fit(OSCILLATOR, series, guess=guess, nodes=5, constraints=f"x@3.21 >= {bound!r}")
    assert 3.21 in result.node_times
    assert len(result.node_times) == len(plain.node_times) + 1
    assert result.constraints[0].active
    there = simulate(
        OSCILLATOR, start=result.initial_states, parameters=result.parameters, times=np.array([0.0, 3.21])
    )
    assert there.states[1, 0] == pytest.approx(bound, abs=1e-11)
    rise = result.objective - plain.objective  # the square of its distance in standard deviations
    assert rise == pytest.approx(result.constraints[0].pull ** 2 * result.beta2, rel=1e-2)


def test_hidden_states_and_many_windows_with_bounds() -> None:
    lorenz = find("lorenz")
    series = noisy(lorenz, [5.7654, 10.50547, 30.58941], [10.0, 46.0, 8 / 3], 0.1 * np.arange(80), sd=0.5)
    guess = {"sigma": 8.0, "r": 40.0, "b": 2.0}
    plain = fit(lorenz, series, guess=guess)
    shift = plain.parameters["b"] + 0.5 * plain.errors["b"]
    result = fit(lorenz, series, guess=guess, constraints=[f"b >= {shift!r}", "sigma >= 0", "z@4 >= 0"])
    assert result.converged
    assert result.parameters["b"] == shift
    assert result.constraints[0].pull == pytest.approx(0.5, rel=0.1)
    assert result.objective > plain.objective
    hidden = Series(("x",), series.times[:40], series.values[:40, :1], np.full((40, 1), 0.5))
    found = fit(lorenz, hidden, guess=guess, constraints=["b >= 0", "sigma <= 20"])
    free = fit(lorenz, hidden, guess=guess)
    np.testing.assert_allclose(found.unknowns.values, free.unknowns.values, rtol=1e-6)


def test_bounds_hold_on_the_way() -> None:
    @model(states="x", parameters="k")
    def rooted(t: Any, u: Any, p: Any) -> Any:
        return -np.sqrt(p.k + 0.01) * u.x

    times = 0.1 * np.arange(30)
    series = noisy(DECAY, [1.0], [0.0], times, seed=1)  # asks for the branch point, where nothing exists
    result = fit(rooted, series, guess={"k": 1.0}, constraints="k >= 0")
    assert result.converged
    assert result.parameters["k"] == 0.0
    assert result.errors["k"] == 0.0


def test_implied_conditions_do_no_harm(data: Series) -> None:
    lines = ["x1@start = 0", "2*x1@start = 0", "a = 1", "a + b = 2", "b = 1", "b <= 1", "a**2 <= 1"]
    result = fit(HENON_HEILES, data, guess=GUESS, constraints=lines)
    plain = fit(HENON_HEILES, data, guess=GUESS, constraints=["x1@start = 0", "a = 1", "b = 1"])
    assert result.converged
    np.testing.assert_allclose(result.unknowns.values, plain.unknowns.values, atol=1e-9)
    assert result.degrees_of_freedom == plain.degrees_of_freedom
    assert all(each.active for each in result.constraints if each.exact)


def test_conservation_that_the_model_implies_is_no_condition(data: Series) -> None:
    lines = ["energy@end = energy@start", "energy@start = 0.13"]
    result = fit(HENON_HEILES, data, guess=GUESS, constraints=lines)
    plain = fit(HENON_HEILES, data, guess=GUESS, constraints=lines[1])
    assert result.converged
    np.testing.assert_allclose(result.unknowns.values, plain.unknowns.values, atol=1e-6)
    assert result.degrees_of_freedom == plain.degrees_of_freedom


def test_conditions_determine_what_the_data_do_not() -> None:
    twice = model_from_strings("twice", states=["x"], parameters=["k", "c"], equations={"x": "-(k + c)*x"})
    series = noisy(twice, [1.0], [0.3, 0.2], 0.1 * np.arange(30))
    guess = {"k": 0.2, "c": 0.2}
    free = fit(twice, series, guess=guess)
    assert free.outcome is Outcome.RANK_DEFICIENT
    result = fit(twice, series, guess=guess, constraints="k = 1.5*c")
    assert result.converged
    assert result.parameters["k"] == pytest.approx(1.5 * result.parameters["c"], rel=1e-12)
    assert result.errors["k"] == pytest.approx(1.5 * result.errors["c"], rel=1e-9)
    still = fit(twice, series, guess=guess, constraints=["k >= 0", "x@start = 1"])
    assert still.outcome is Outcome.RANK_DEFICIENT
    assert still.cause == "not determined: k, c"


def test_conditions_that_no_path_meets_are_named() -> None:
    series = noisy(DECAY, [1.0], [0.5], 0.1 * np.arange(30))
    lines = ["x@start = 1", "x@end >= 2", "k >= 0", "x@1 >= -5"]
    result = fit(DECAY, series, guess={"k": 1.0}, constraints=lines)
    assert result.outcome is Outcome.CONTRADICTORY
    assert result.cause == "x@start = 1; x@end >= 2; k >= 0"
    assert not result.at_bounds
    never = fit(DECAY, series, guess={"k": 1.0}, constraints="k**2 + 1 = 0")
    assert not never.converged
    assert "k**2 + 1 = 0" in never.cause


def test_multipliers_are_in_the_history(data: Series) -> None:
    result = fit(HENON_HEILES, data, guess=GUESS, constraints=["a <= 1", "c <= 5"])
    last = result.history[-1].multipliers
    assert last[0] == pytest.approx(result.constraints[0].multiplier, rel=1e-6)
    assert math.isnan(last[1])
    assert result.history[0].phase == "presolve"
    assert result.history[0].multipliers == ()


def test_members_of_an_ensemble_are_the_fits_alone() -> None:
    times = 0.1 * np.arange(30)
    exact = simulate(DECAY, start=[1.0], parameters=[0.5], times=times).exact
    assert exact is not None
    asked: dict[str, Any] = {"guess": {"k": 1.0}, "constraints": ["k >= 0.5", "x@start <= 1"]}
    table = fit_ensemble(DECAY, exact, Noise(sd=0.05), seed=5, members=range(1, 41), **asked)
    assert table.converged
    at_bound = table.errors[:, 1] == 0.0
    assert 10 < at_bound.sum() < 30  # the truth is at the bound: half of the members want to go below
    assert (table.estimates[at_bound, 1] == 0.5).all()
    for member in (1, 17):
        seen = simulate(
            DECAY, start=[1.0], parameters=[0.5], times=times, noise=Noise(sd=0.05), seed=5, member=member
        ).observed
        assert seen is not None
        alone = fit(DECAY, seen, **asked)
        np.testing.assert_array_equal(alone.unknowns.values, table.estimates[member - 1])
        np.testing.assert_array_equal(alone.unknowns.errors, table.errors[member - 1])
        assert alone.degrees_of_freedom == table.degrees_of_freedom[member - 1]


@pytest.mark.parametrize(
    ("constraints", "problem"),
    [
        (["k >= 2", "k <= 1"], '"k >= 2" and "k <= 1" contradict each other'),
        (["x@start = 1", "x@end <= 3", "x@start >= 2"], '"x@start = 1" and "x@start >= 2" contradict'),
        (["x@start >= k + 1", "k >= 1", "x@start + k <= 2"], "contradict each other"),
        (["x@5 = 0"], "t = 5: the path goes from 0 to 2.9"),
        (["x = 0"], "x changes in time"),
    ],
)
def test_what_is_wrong_beforehand_is_refused(constraints: list[str], problem: str) -> None:
    times = 0.1 * np.arange(30)
    experiment = Experiment(times, {"x": np.exp(-times)}, sigma=0.1)
    with pytest.raises(InputError) as caught:
        fit(DECAY, experiment, guess={"k": 1.0}, constraints=constraints)
    assert problem in str(caught.value)
    assert "fit.constraints" in str(caught.value)


def test_a_condition_without_a_value_at_the_guess_is_a_mistake() -> None:
    times = 0.1 * np.arange(30)
    experiment = Experiment(times, {"x": np.exp(-times)}, sigma=0.1)
    assert fit(DECAY, experiment, guess={"k": 1.0}, constraints="log(k) <= 0").at_bounds in (
        {},
        {"k": "log(k) <= 0"},
    )
    with pytest.raises(InputError, match=r"constraint log\(k\) <= 0, which has no finite value"):
        fit(DECAY, experiment, guess={"k": -1.0}, constraints="log(k) <= 0", phases="exact")


def test_conditions_on_what_is_fixed_and_solvers_that_cannot(data: Series) -> None:
    with pytest.raises(InputError, match="all that it names is fixed"):
        fit(HENON_HEILES, data, guess={"b": 1.0, "c": 1.0}, fixed={"a": 1.0}, constraints="a >= 0")
    with pytest.raises(InputError, match=r"fit.solver = \"petsc\": not with fit.constraints"):
        fit(HENON_HEILES, data, guess=GUESS, constraints="a >= 0", solver="petsc")
