"""Posing: where the nodes begin, what counts as data, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcfit.mpi.serial import SERIAL
from hpcfit.records import InputError, Series
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.pose import Posed, pose
from tests.shooting.driven import DRIVEN

TIMES = np.array([0.0, 1.0, 2.0, 4.0, 5.0])
X = np.array([1.0, 3.0, 2.0, -1.0, 0.5])
GUESS = {"a": 1.0, "b": 2.0, "c": 3.0}


def series(values: dict[str, np.ndarray], sigma: Any = 0.1) -> Series:
    return Experiment(TIMES, values, sigma).series


def posed(*experiments: Series, **more: Any) -> Posed:
    return pose(DRIVEN, list(experiments), **({"guess": GUESS} | more))


def test_nodes_begin_at_the_data_and_hidden_states_at_zero() -> None:
    start = posed(series({"x": X, "g": X})).start
    np.testing.assert_array_equal(start.nodes[0], np.stack([X, np.zeros(5)], axis=1))
    np.testing.assert_array_equal(start.parameters, [[1.0, 2.0, 3.0]])


def test_nodes_between_data_and_at_missing_values_are_interpolated() -> None:
    gap = np.where(TIMES == 2.0, np.nan, X)
    start = posed(series({"x": gap, "y": X}), nodes=[0.0, 0.5, 2.0, 5.0]).start
    np.testing.assert_allclose(start.nodes[0, :, 0], [1.0, 2.0, 3.0 - 4.0 / 3.0, 0.5], rtol=1e-15)
    np.testing.assert_array_equal(start.nodes[0, :, 1], [1.0, 2.0, 2.0, 0.5])


def test_a_start_is_a_number_or_an_expression_in_time_and_goes_before_data() -> None:
    start = posed(series({"x": X, "y": X}), start={"x": "2*t + pi", "y": -4.0}).start
    np.testing.assert_array_equal(start.nodes[0, :, 0], 2.0 * TIMES + np.pi)
    np.testing.assert_array_equal(start.nodes[0, :, 1], np.full(5, -4.0))


def test_precision_tells_which_nodes_come_from_data() -> None:
    both = series({"x": X, "y": X}, {"x": 0.1, "y": 0.5})
    np.testing.assert_allclose(posed(both).precision, [10.0, 2.0])
    assert not posed(both).hidden
    np.testing.assert_allclose(posed(both, start={"x": 0.0}).precision, [0.0, 2.0])
    np.testing.assert_allclose(posed(both, series({"x": X})).precision, [10.0, 0.0])
    assert posed(both, series({"x": X})).hidden
    np.testing.assert_allclose(posed(both, weights={"x": 0.0}).precision, [10.0, 2.0])


def test_data_and_weights_stand_where_the_grid_says() -> None:
    gap = np.where(TIMES == 1.0, np.nan, X)
    problem = posed(
        series({"g": gap, "x": X}, {"g": 0.5, "x": 0.25}),
        series({"x": 10.0 * X}),
        nodes=2,
        weights={"g": 3.0},
    ).problem
    assert problem.readings.names == ("g", "x")
    assert problem.data.shape == (1, 6, 2, 2)  # nodes at 0, 2, 5 of both; one value inside each interval
    np.testing.assert_array_equal(problem.data[0, 0], [[1.0, 1.0], [np.nan, 3.0]])
    np.testing.assert_array_equal(problem.data[0, 4], [[0.0, 20.0], [0.0, -10.0]])  # nobody reads g there
    np.testing.assert_array_equal(problem.data[0, 5], [[0.0, 5.0], [0.0, 0.0]])
    np.testing.assert_array_equal(problem.weights[0, 0], [[6.0, 4.0], [6.0, 4.0]])
    np.testing.assert_array_equal(problem.weights[0, 4], [[0.0, 10.0], [0.0, 10.0]])
    np.testing.assert_array_equal(problem.weights[0, 5], [[0.0, 10.0], [0.0, 0.0]])
    assert problem.observed().tolist() == [14]


def test_members_bring_their_own_values_and_begin_at_them() -> None:
    values = np.stack([np.stack([X, X], axis=1), np.stack([2.0 * X, 3.0 * X], axis=1)])
    one = posed(series({"x": X, "y": X}))
    many = one.with_values([values])
    assert one.problem.members == 1
    assert many.problem.members == 2
    np.testing.assert_array_equal(many.start.nodes, values)
    np.testing.assert_array_equal(many.problem.data[:, :, 0], values)
    np.testing.assert_array_equal(many.problem.take(np.array([1])).data, many.problem.data[1:])
    np.testing.assert_array_equal(many.start.parameters, [[1.0, 2.0, 3.0]] * 2)
    np.testing.assert_array_equal(one.problem.data[0, :, 0], values[0])  # as it was


def test_members_are_what_each_of_them_would_be_if_it_were_posed_alone() -> None:
    """Several experiments, holes, values inside intervals, a state that is given, one that is hidden."""
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 5, 2))
    first[1, 2, 0] = second[2, 1:4, 1] = np.nan

    def alone(k: int) -> Posed:
        one = series({"x": first[k, :, 0], "g": first[k, :, 1]})
        two = series({"y": second[k, :, 0], "x": second[k, :, 1]})
        return posed(one, two, nodes=[2, [0.0, 1.5, 3.0, 5.0]], start={"y": "1 + t"})

    many = alone(0).with_values([first, second])
    for k in range(3):
        one, other = alone(k), np.array([k])
        np.testing.assert_array_equal(many.problem.take(other).data, one.problem.data)
        np.testing.assert_array_equal(many.problem.take(other).weights, one.problem.weights)
        np.testing.assert_array_equal(many.problem.take(other).observed(), one.problem.observed())
        np.testing.assert_array_equal(many.start.nodes[k], one.start.nodes[0])
    assert len(many.experiments) == 2
    assert list(many.given) == [1]


def test_the_data_of_others_take_the_places_of_some_members() -> None:
    rng = np.random.default_rng(5)
    one = posed(series({"x": X, "y": X}))
    values, others = rng.normal(size=(4, 5, 2)), rng.normal(size=(2, 5, 2))
    many = one.with_values([values])
    many.problem.put(np.array([0, 3]), one.with_values([others]).problem)
    expected = values.copy()
    expected[[0, 3]] = others
    np.testing.assert_array_equal(many.problem.data, one.with_values([expected]).problem.data)


def test_standard_deviations_are_known_only_if_all_experiments_state_them() -> None:
    known, unknown = series({"x": X, "y": X}), series({"x": X, "y": X}, None)
    assert posed(known).sigma_known
    assert not posed(known, unknown).sigma_known
    np.testing.assert_array_equal(np.unique(posed(unknown).problem.weights), [1.0])


def test_each_experiment_may_have_its_own_nodes() -> None:
    two = posed(series({"x": X, "y": X}), series({"x": X, "y": X}), nodes=["data", [0.0, 2.5, 5.0]])
    np.testing.assert_array_equal(two.problem.grid.times, [*TIMES, 0.0, 2.5, 5.0])
    np.testing.assert_array_equal(two.problem.grid.experiment, [0] * 5 + [1] * 3)


def test_a_list_of_numpy_numbers_is_one_list_of_nodes() -> None:
    one = posed(series({"x": X, "y": X}), nodes=list(np.arange(0, 6)))
    np.testing.assert_array_equal(one.problem.grid.times, np.arange(6.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guess": {"a": 1.0, "b": 1.0}}, "the parameter c has neither a guess nor a fixed value"),
        ({"fixed": {"c": 1.0}}, "the parameter c has both a guess and a fixed value"),
        ({"guess": GUESS | {"d": 1.0}}, "driven has no parameter 'd'"),
        ({"guess": GUESS | {"c": np.nan}}, "guess.c = nan: is not finite"),
        ({"start": {"z": 0.0}}, "driven has no state 'z'"),
        ({"start": {"y": "log(t)"}}, "is not finite at t = 0"),
        ({"weights": {"h": 1.0}}, "'h' is not observed"),
        ({"weights": {"x": -1.0}}, "must not be negative"),
        ({"nodes": ["data", "data"]}, "2 choices for 1 experiments"),
    ],
)
def test_what_cannot_be_posed_names_the_place_and_the_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        posed(series({"x": X, "y": X}), **change)
    assert message in str(raised.value)
    assert raised.value.mistakes[0].remedy


def test_fewer_values_than_unknowns_are_refused() -> None:
    few = np.where(TIMES < 1.5, X, np.nan)
    with pytest.raises(InputError, match=r"4 values .*for 5 unknowns"):
        posed(series({"x": few, "y": few}))
    with pytest.raises(InputError, match=r"5 values .*for 7 unknowns"):  # two initial states
        posed(series({"x": few, "y": np.where(TIMES < 0.5, X, np.nan)}), series({"x": few}))


@pytest.mark.parametrize(
    ("times", "values", "sigma", "message"),
    [
        (TIMES[::-1], {"x": X}, 0.1, "times must increase: 4 comes after 5"),
        (TIMES, {"x": X[:-1]}, 0.1, "x has 4 values at 5 times"),
        (TIMES, {"x": np.full(5, np.nan)}, 0.1, "all values are missing"),
        (TIMES, {"x": np.where(X > 2, np.inf, X)}, 0.1, "a value is infinite"),
        (TIMES, {"x": X}, 0.0, "sigma of x is 0"),
        (TIMES, {"x": X, "y": X}, {"x": 0.1}, "no sigma for y"),
        (TIMES, {"x": X}, [0.1, 0.2], "sigma has shape"),
        (TIMES, {}, 0.1, "no values"),
        (np.where(TIMES == 2.0, np.nan, TIMES), {"x": X}, 0.1, "time 2 is not finite"),
    ],
)
def test_an_experiment_that_cannot_be_fitted_says_why(
    times: np.ndarray, values: dict[str, np.ndarray], sigma: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Experiment(times, values, sigma)


def test_a_name_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="driven has no state or observable 'q'"):
        posed(series({"q": X}))


def test_how_rough_a_path_may_be_follows_the_errors_of_the_data() -> None:
    """A hundred-thousandth of the smallest error beside the largest value, at most 1e-8; 0 = not known."""
    both = {"x": X, "y": X}
    assert posed(series(both, None)).rough == 0.0
    large = float(np.abs(X).max())
    assert posed(series(both, 0.1 * large)).rough == 1e-8
    assert posed(series(both, 1e-6 * large)).rough == pytest.approx(1e-11, rel=1e-12)
    assert posed(series(both), series(both, None)).rough == 0.0


def test_a_rough_problem_is_nearly_the_same_and_no_rougher_than_asked() -> None:
    problem, start = (every := posed(series({"x": X, "y": X}))).problem, every.start
    exact = problem.residuals(SERIAL, start)
    rough = problem.roughly(1e-6).residuals(SERIAL, start)
    scale = np.abs(exact.links).max()
    assert 0.0 < np.abs(rough.links - exact.links).max() < 1e-5 * scale
    np.testing.assert_array_equal(problem.roughly(0.0).residuals(SERIAL, start).links, exact.links)
    np.testing.assert_array_equal(
        problem.roughly(1e-6).roughly(1e-9).residuals(SERIAL, start).links, rough.links
    )
