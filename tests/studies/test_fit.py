"""fit: the answer does not depend on units, names, nodes or the way to it, and a failure is a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from hpcfit import Experiment, InputError, Noise, fit, model, simulate
from hpcfit.commands.loading import load
from hpcfit.commands.work import run_fit
from hpcfit.flow.propagate import propagate
from hpcfit.leastsq.strategy import Options
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import FitResult, Outcome, Series
from hpcfit.shooting.pose import pose
from hpcfit.studies.fit import solve_posed
from tests.shooting.driven import DRIVEN, TRUTH, read

HENON_HEILES = find("henon_heiles")
S18 = {
    "start": [0.0, 0.0, math.sqrt(0.1275), -0.35],
    "parameters": [1.0, 1.0, -1.0],
    "times": 0.2 * np.arange(100),
}
GUESS = {"a": 10.0, "b": 10.0, "c": 2.0}
LORENZ = find("lorenz")
BAAKE = {"start": [5.76540, 10.50547, 30.58941], "parameters": [10.0, 46.0, 8 / 3]}
LORENZ_TRUTH = {"sigma": 10.0, "r": 46.0, "b": 8 / 3}


def seen(flow: Model, case: Mapping[str, Any], **more: Any) -> Series:
    path = simulate(flow, **(dict(case) | more))
    series = path.observed or path.exact
    assert series is not None
    return series


@pytest.fixture(scope="module")
def data() -> Series:
    return seen(HENON_HEILES, S18, noise=Noise(sd=0.03, beyond_3_sigma="redraw"), seed=18)


@pytest.fixture(scope="module")
def result(data: Series) -> FitResult:
    found = fit(HENON_HEILES, data, guess=GUESS)
    assert found.converged
    return found


def distance(one: FitResult, other: FitResult) -> float:
    """The largest difference of estimates, in standard errors."""
    assert one.unknowns.names == other.unknowns.names
    return float((np.abs(one.unknowns.values - other.unknowns.values) / one.unknowns.errors).max())


# What is recovered


def test_exact_data_give_the_parameters_and_initial_states_back() -> None:
    exact = seen(HENON_HEILES, S18, method="taylor128")
    found = fit(HENON_HEILES, exact, guess=GUESS)
    assert found.converged
    np.testing.assert_allclose(
        found.unknowns.values, [*S18["start"], *S18["parameters"]], rtol=0.0, atol=1e-13
    )


def test_noisy_data_give_estimates_within_their_errors(result: FitResult) -> None:
    truth = np.array([*S18["start"], *S18["parameters"]])
    assert (np.abs(result.unknowns.values - truth) < result.gamma * result.unknowns.errors).all()
    assert 0.8 < result.beta2 < 1.2
    assert result.degrees_of_freedom == 400 - 7
    assert result.unknowns.names == ("x1", "x2", "x3", "x4", "a", "b", "c")
    assert list(result.parameters) == list(GUESS)
    assert list(result.initial_states) == ["x1", "x2", "x3", "x4"]


def test_the_fitted_path_is_continuous_and_begins_at_the_estimates(result: FitResult) -> None:
    ends, begins = result.final.states[:-1, -1], result.final.states[1:, 0]
    np.testing.assert_allclose(ends, begins, rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(result.final.states[0, 0], result.unknowns.values[:4])
    jumps = np.abs(result.initial.states[:-1, -1] - result.initial.states[1:, 0]).max()
    assert jumps > 0.1  # the guess is rough


def test_the_invariant_is_derived_without_asking(result: FitResult) -> None:
    x1, x2, x3, x4, a, b, c = result.unknowns.values
    energy = (x3**2 + x4**2) / 2 + (a * x1**2 + b * x2**2) / 2 + x1**2 * x2 + c * x2**3 / 3
    assert result.derived.names == ("invariant",)
    assert result.derived.values[0] == pytest.approx(energy, rel=1e-13)


@pytest.mark.parametrize(
    "start", [None, {"y": 0.0, "z": 25.0}, {"z": "25 + 5*sin(3*t)"}], ids=["zeros", "numbers", "expression"]
)
def test_hidden_components_of_lorenz_are_found(start: Mapping[str, float | str] | None) -> None:
    exact = seen(LORENZ, BAAKE, times=0.1 * np.arange(15), observe=["x"], method="taylor128")
    found = fit(LORENZ, exact, guess={"sigma": 5.0, "r": 20.0, "b": 1.0}, start=start)
    assert found.converged
    expected = [*BAAKE["start"], *BAAKE["parameters"]]
    np.testing.assert_allclose(found.unknowns.values, expected, rtol=1e-12)
    first = dict(zip(LORENZ.states, found.initial.states[3, 0], strict=True))
    given = start or {}
    assert first["y"] == given.get("y", 0.0)
    wave = 25.0 + 5.0 * math.sin(3.0 * exact.times[3])
    assert first["z"] == (wave if given.get("z") == "25 + 5*sin(3*t)" else given.get("z", 0.0))


def test_a_map_from_noisy_data_with_nodes_at_all_or_at_some_times() -> None:
    henon = find("henon_map")
    noisy = seen(
        henon,
        {"start": [0.1, 0.1], "parameters": [1.4, 0.3]},
        times=np.arange(30),
        noise=Noise(sd=0.01),
        seed=1,
    )
    every, some = (fit(henon, noisy, guess={"a": 1.2, "b": 0.2}, nodes=nodes) for nodes in ("data", 4))
    assert every.converged
    assert some.converged
    truth = np.array([0.1, 0.1, 1.4, 0.3])
    assert (np.abs(every.unknowns.values - truth) < 3.0 * every.unknowns.errors).all()
    assert every.errors["a"] < 0.003
    assert distance(every, some) < 3e-8


@model(states="x y z", parameters="sigma r b", opaque=True)
def opaque_lorenz(t, u, p):
    return p.sigma * (u.y - u.x), u.x * (p.r - u.z) - u.y, u.x * u.y - p.b * u.z


def test_an_opaque_model_gives_the_answer_of_the_traced_one() -> None:
    noisy = seen(LORENZ, BAAKE, times=0.1 * np.arange(4), noise=Noise(sd=0.1), seed=3)
    guess = {"sigma": 9.5, "r": 45.0, "b": 2.8}
    traced, opaque = (fit(each, noisy, guess=guess, tolerance=1e-6) for each in (LORENZ, opaque_lorenz))
    assert opaque.converged
    assert distance(traced, opaque) < 1e-7
    np.testing.assert_allclose(opaque.unknowns.errors, traced.unknowns.errors, rtol=1e-7)


def test_without_free_parameters_the_initial_state_is_fitted(data: Series) -> None:
    found = fit(HENON_HEILES, data, guess={}, fixed={"a": 1.0, "b": 1.0, "c": -1.0})
    assert found.converged
    assert found.unknowns.names == ("x1", "x2", "x3", "x4")
    assert (np.abs(found.unknowns.values - S18["start"]) < 4.0 * found.unknowns.errors).all()


# What the answer does not depend on


@pytest.mark.parametrize("level", ["natural", "T1"])
@pytest.mark.parametrize("phases", ["auto", "presolve", "weak", "exact"])
def test_all_ways_end_at_the_same_solution(data: Series, result: FitResult, phases: str, level: str) -> None:
    other = fit(HENON_HEILES, data, guess=GUESS, phases=phases, level=level)
    assert other.converged
    assert distance(result, other) < 2e-9
    np.testing.assert_allclose(other.unknowns.errors, result.unknowns.errors, rtol=1e-10)
    last = {"auto": "presolve", "presolve": "presolve", "weak": "weak", "exact": "exact"}[phases]
    assert other.history[0].phase == last


@pytest.mark.parametrize("nodes", [5, 7, [0.0, 2.05, 4.0, 6.3, 8.0, 10.05, 13.0, 16.0, 20.0]])
def test_nodes_do_not_change_the_estimates(data: Series, result: FitResult, nodes: Any) -> None:
    other = fit(HENON_HEILES, data, guess={"a": 1.2, "b": 1.2, "c": -0.7}, nodes=nodes)
    assert other.converged
    assert len(other.node_times) < 22
    assert distance(result, other) < 2e-9
    np.testing.assert_allclose(other.unknowns.errors, result.unknowns.errors, rtol=1e-10)
    assert other.objective == pytest.approx(result.objective, rel=1e-12)


SCALED = model_from_strings(
    "henon_heiles_in_other_units",
    states=["x1", "x2", "x3", "x4"],
    parameters=["a", "b", "c"],
    equations={
        "x1": "x3",
        "x2": "x4",
        "x3": "-a*x1 - 2*x1*x2/1000",
        "x4": "-b*x2 - x1**2/1000 - c*x2**2/1000",
    },
)
PERMUTED = model_from_strings(
    "henon_heiles_with_other_names",
    states=["v2", "q1", "v1", "q2"],
    parameters=["third", "first", "second"],
    equations={
        "q1": "v1",
        "q2": "v2",
        "v1": "-first*q1 - 2*q1*q2",
        "v2": "-second*q2 - q1**2 - third*q2**2",
    },
)
NEW_NAMES = {"x1": "q1", "x2": "q2", "x3": "v1", "x4": "v2", "a": "first", "b": "second", "c": "third"}


def test_states_in_other_units_give_the_same_answer(data: Series, result: FitResult) -> None:
    assert data.sigma is not None
    scaled = Series(data.names, data.times, 1000.0 * data.values, 1000.0 * data.sigma)
    other = fit(SCALED, scaled, guess=GUESS)
    assert other.converged
    units = np.array([1000.0] * 4 + [1.0] * 3)
    np.testing.assert_allclose(other.unknowns.values / units, result.unknowns.values, rtol=1e-11)
    np.testing.assert_allclose(other.unknowns.errors / units, result.unknowns.errors, rtol=1e-11)
    assert other.iterations == result.iterations


def test_other_names_and_another_order_give_the_same_answer(data: Series, result: FitResult) -> None:
    order = [3, 0, 1, 2]
    assert data.sigma is not None
    renamed = Series(
        tuple(NEW_NAMES[data.names[k]] for k in order),
        data.times,
        data.values[:, order],
        data.sigma[:, order],
    )
    other = fit(PERMUTED, renamed, guess={NEW_NAMES[name]: value for name, value in GUESS.items()})
    assert other.converged
    again = other.unknowns.part([NEW_NAMES[name] for name in result.unknowns.names])
    np.testing.assert_allclose(again.values, result.unknowns.values, rtol=1e-11)
    np.testing.assert_allclose(again.covariance, result.unknowns.covariance, rtol=1e-10)


# Data that are not there


def test_missing_values_and_values_of_weight_zero_are_as_if_removed(data: Series) -> None:
    """Nodes and their start are given, so that only the data differ."""
    rng = np.random.default_rng(8)
    gone = rng.random(len(data.times)) < 0.3
    kept = {"nodes": 5, "start": dict.fromkeys(HENON_HEILES.states, 0.2), "phases": "weak"}
    guess = {"a": 1.3, "b": 1.3, "c": -0.8}
    gone[::5] = gone[-1] = False  # nodes are at every fifth time
    assert data.sigma is not None
    holes = Series(data.names, data.times, np.where(gone[:, None], np.nan, data.values), data.sigma)
    fewer = Series(data.names, data.times[~gone], data.values[~gone], data.sigma[~gone])
    nodes = data.times[sorted({*range(0, 100, 5), 99})].tolist()
    one = fit(HENON_HEILES, holes, guess=guess, **kept)
    other = fit(HENON_HEILES, fewer, guess=guess, **(kept | {"nodes": nodes}))
    assert one.converged
    assert one.degrees_of_freedom == other.degrees_of_freedom == 4 * int((~gone).sum()) - 7
    assert one.objective == pytest.approx(other.objective, rel=1e-12)
    np.testing.assert_allclose(one.unknowns.values, other.unknowns.values, rtol=1e-9)
    np.testing.assert_allclose(one.unknowns.errors, other.unknowns.errors, rtol=1e-9)
    assert (np.isnan(one.residuals[0]).all(axis=1) == gone).all()


def test_a_weight_of_zero_is_as_if_the_column_were_removed(data: Series) -> None:
    kept = {"start": dict.fromkeys(HENON_HEILES.states, 0.2), "phases": "weak"}
    guess = {"a": 1.3, "b": 1.3, "c": -0.8}
    assert data.sigma is not None
    less = Series(data.names[:3], data.times, data.values[:, :3], data.sigma[:, :3])
    one = fit(HENON_HEILES, data, guess=guess, weights={"x4": 0.0}, **kept)
    other = fit(HENON_HEILES, less, guess=guess, **kept)
    assert one.converged
    assert one.degrees_of_freedom == other.degrees_of_freedom == 300 - 7
    assert one.objective == pytest.approx(other.objective, rel=1e-12)
    np.testing.assert_allclose(one.unknowns.values, other.unknowns.values, rtol=1e-9)
    np.testing.assert_allclose(one.unknowns.errors, other.unknowns.errors, rtol=1e-9)
    assert np.isfinite(one.residuals[0]).all()  # shown all the same


def test_a_weight_of_zero_keeps_the_nodes_at_the_data(data: Series) -> None:
    found = fit(HENON_HEILES, data, guess=GUESS, weights={"x4": 0.0})
    assert found.converged
    np.testing.assert_array_equal(found.initial.states[:, 0], data.values[:-1])
    assert found.history[0].phase == "presolve"  # nothing is hidden


# Several experiments


def two_experiments() -> tuple[list[Experiment], np.ndarray]:
    """x and g in the first, h and y in the second, which is shorter and begins elsewhere; and the truth."""
    truth = np.array([0.8, -0.3, -0.5, 0.9, *TRUTH])
    experiments = []
    for start, times, names in (
        (truth[:2], np.linspace(0.0, 4.0, 17), ["x", "g"]),
        (truth[2:4], np.linspace(1.0, 3.0, 12), ["h", "y"]),
    ):
        series = seen(
            DRIVEN,
            {"start": start, "parameters": TRUTH},
            times=times,
            observe=names,
            noise=Noise(sd=0.02),
            seed=len(names) + len(times),
        )
        experiments.append(Experiment(times, dict(zip(names, series.values.T, strict=True)), 0.02))
    return experiments, truth


def test_two_experiments_against_single_shooting_by_scipy() -> None:
    experiments, truth = two_experiments()
    found = fit(DRIVEN, experiments, guess={"a": 1.0, "b": 0.3, "c": 0.3}, nodes=[4, "data"])
    assert found.converged
    assert found.unknowns.names == ("x", "y", "x@2", "y@2", "a", "b", "c")
    assert (np.abs(found.unknowns.values - truth) < 4.0 * found.unknowns.errors).all()

    def rows(z: np.ndarray) -> np.ndarray:
        parts = []
        for k, experiment in enumerate(experiments):
            series = experiment.series
            states = propagate(DRIVEN, series.times, z[2 * k : 2 * k + 2], z[4:]).states[0]
            for column, name in enumerate(series.names):
                parts.append((read(name, series.times, states, z[4:]) - series.values[:, column]) / 0.02)
        return np.concatenate(parts)

    beside = found.unknowns.values + 0.1 * found.unknowns.errors
    theirs = least_squares(rows, beside, jac="3-point", x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15)
    assert np.abs((theirs.x - found.unknowns.values) / found.unknowns.errors).max() < 1e-6
    assert 2.0 * theirs.cost == pytest.approx(found.objective, rel=1e-12)
    assert found.degrees_of_freedom == 2 * 17 + 2 * 12 - 7
    slopes = theirs.jac
    errors = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * found.beta2)
    np.testing.assert_allclose(found.unknowns.errors, errors, rtol=1e-8)


def test_the_same_experiment_twice_halves_the_variance_of_what_is_shared() -> None:
    experiments, _ = two_experiments()
    guess = {"a": 1.0, "b": 0.3, "c": 0.3}
    once, twice = (fit(DRIVEN, experiments[:1] * k, guess=guess, start={"y": 0.0}) for k in (1, 2))
    np.testing.assert_allclose(twice.unknowns.part("abc").values, once.unknowns.part("abc").values, rtol=1e-8)
    factors = np.sqrt(np.array([once.beta2, twice.beta2]))
    np.testing.assert_allclose(
        np.sqrt(2.0) * twice.unknowns.part("abc").errors / factors[1],
        once.unknowns.part("abc").errors / factors[0],
        rtol=1e-8,
    )


# Failures are values


PRODUCT = model_from_strings(
    "product",
    states=["x"],
    parameters=["a", "b", "c"],
    equations={"x": "a*b*x - c*x**2"},
)


@pytest.fixture(scope="module")
def growth() -> Series:
    return seen(
        PRODUCT,
        {"start": [0.1], "parameters": [2.0, 0.5, 1.0]},
        times=np.linspace(0.0, 6.0, 31),
        noise=Noise(sd=0.01),
        seed=1,
    )


def test_parameters_that_enter_as_a_product_are_named_and_the_relaxed_solution_is_given(
    growth: Series,
) -> None:
    guess = {"a": 1.0, "b": 0.7, "c": 0.8}
    found = fit(PRODUCT, growth, guess=guess)
    assert found.outcome is Outcome.RANK_DEFICIENT
    assert not found.converged
    assert found.cause == "not determined: a, b"
    assert np.isfinite(found.unknowns.values).all()
    held = fit(PRODUCT, growth, guess={"a": 1.0, "c": 0.8}, fixed={"b": 0.5})
    assert held.outcome is Outcome.CONVERGED
    assert held.cause == ""
    assert held.fixed == {"b": 0.5}
    assert found.objective == pytest.approx(held.objective, rel=1e-9)
    product = found.parameters["a"] * found.parameters["b"]
    assert product == pytest.approx(0.5 * held.parameters["a"], rel=1e-7)
    assert found.parameters["c"] == pytest.approx(held.parameters["c"], rel=1e-7)


def test_a_state_that_the_second_experiment_does_not_see_is_named() -> None:
    pair = model_from_strings(
        "pair", states=["x", "y"], parameters=["k"], equations={"x": "-k*x", "y": "-k*y"}
    )
    times = np.linspace(0.0, 2.0, 21)
    x = np.exp(-0.7 * times) + 0.01 * np.cos(50.0 * times)
    both, one = Experiment(times, {"x": x, "y": 2.0 * x}, 0.01), Experiment(times, {"x": x}, 0.01)
    found = fit(pair, [both, one], guess={"k": 1.0})
    assert (found.outcome, found.cause) == (Outcome.RANK_DEFICIENT, "not determined: y@2")
    assert fit(pair, [both, both], guess={"k": 1.0}).converged


def test_a_spent_budget_is_a_value(data: Series) -> None:
    found = fit(HENON_HEILES, data, guess=GUESS, phases="exact", max_iterations=1)
    assert (found.outcome, found.iterations) == (Outcome.UNFINISHED, 1)
    assert np.isfinite(found.unknowns.values).all()


BOUNDED = model_from_strings("bounded", states=["x"], parameters=["k"], equations={"x": "atan(k) - x"})


def test_no_descent_is_a_value() -> None:
    """From k = 1e4, where atan is flat, the step that would help is below the smallest."""
    exact = seen(BOUNDED, {"start": [1.0], "parameters": [0.2]}, times=np.linspace(0.0, 3.0, 16))
    far = fit(BOUNDED, exact, guess={"k": 1e5}, phases="exact")
    assert far.outcome is Outcome.STALLED
    assert far.parameters == {"k": 1e5}
    assert fit(BOUNDED, exact, guess={"k": 2.0}, phases="exact").parameters["k"] == pytest.approx(
        0.2, rel=1e-9
    )


EXPLOSION = model_from_strings("explosion", states=["x"], parameters=["a"], equations={"x": "a*x**2"})


def test_a_guess_that_cannot_be_integrated_is_refused_with_its_place_and_inside_it_is_a_value() -> None:
    times = np.linspace(0.0, 0.8, 9)
    experiment = Experiment(times, {"x": 1.0 / (1.0 - times)}, 0.1)
    with pytest.raises(InputError, match=r"cannot be integrated from the node at t = 0\.2 to t = 0\.294"):
        fit(EXPLOSION, experiment, guess={"a": 8.5})
    posed = pose(EXPLOSION, [experiment.series], guess={"a": 8.5})
    solved = solve_posed(SERIAL, posed, Options())
    assert solved.course.outcomes == [Outcome.NOT_INTEGRABLE]
    assert np.isnan(solved.course.spread.parameters).all()
    assert fit(EXPLOSION, experiment, guess={"a": 1.1}).converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": "T2"}, "fit.level"),
        ({"phases": "week"}, "did you mean 'weak'"),
        ({"solver": "dens"}, "did you mean 'dense'"),
        ({"derived": {"a": "b"}}, "has the name of an unknown"),
    ],
)
def test_unknown_choices_are_refused(data: Series, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(HENON_HEILES, data, guess=GUESS, **change)


# No truth leaks

JOB = """
kind = "fit"
seed = 18
[model]
name = "henon_heiles"
{source}
[guess]
a = 10.0
b = 10.0
c = 2.0
"""
TRUE_SOURCE = """
[truth]
start = {x1 = 0.0, x2 = 0.0, x3 = "sqrt(0.1275)", x4 = -0.35}
parameters = {a = 1.0, b = 1.0, c = -1.0}
times = {start = 0.0, spacing = 0.2, count = 100}
noise = {sd = 0.03, beyond_3_sigma = "redraw"}
"""
FILE_SOURCE = """
[data]
file = "data.csv"
time = "t"
sigma = 0.03
"""


def test_the_truth_does_not_leak_into_the_fit(tmp_path: Path, data: Series, result: FitResult) -> None:
    table = np.column_stack([data.times, data.values])
    header = ",".join(["t", *data.names])
    np.savetxt(tmp_path / "data.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
    found = []
    for name, source in (("true", TRUE_SOURCE), ("file", FILE_SOURCE)):
        path = tmp_path / f"{name}.toml"
        path.write_text(JOB.replace("{source}", source))
        found.append(run_fit(SERIAL, load(path), 0))
    with_truth, without = found
    assert with_truth.truth["a"] == 1.0
    assert without.truth == {}
    np.testing.assert_array_equal(without.unknowns.values, with_truth.unknowns.values)
    np.testing.assert_array_equal(without.unknowns.covariance, with_truth.unknowns.covariance)
    assert without.history == with_truth.history
    np.testing.assert_array_equal(without.unknowns.values, result.unknowns.values)
