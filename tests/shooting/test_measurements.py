"""Rows, gaps and slopes: machine code against the numpy bodies; members do not know of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hpcfit.linear.chain import Unknowns
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model
from hpcfit.shooting.compiled import Measured, measured
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.measurements import Intervals, Measurements
from hpcfit.shooting.pose import pose
from tests.shooting.driven import DRIVEN

LORENZ = find("lorenz")
CASES: dict[str, tuple[Model, Sequence[str], object, dict[str, float], bool]] = {
    "all states at the nodes": (LORENZ, "xyz", "data", {}, False),
    "some states, in another order": (LORENZ, "zx", "data", {}, False),
    "values are missing": (LORENZ, "xz", "data", {}, True),
    "states inside the intervals": (LORENZ, "xy", 3, {}, False),
    "observables": (DRIVEN, "gxh", "data", {}, False),
    "observables inside the intervals": (DRIVEN, "hg", 4, {}, True),
    "a fixed parameter": (DRIVEN, "hyg", 2, {"b": 0.4}, True),
    "no free parameter": (DRIVEN, "hyg", 2, {"a": 1.3, "b": 0.4, "c": 0.2}, False),
}

Case = tuple[Model, Measurements, Unknowns, np.ndarray, Intervals]


def case(name: str, members: int = 5) -> Case:
    """Two experiments with random data, states and slopes; weights differ, some are zero."""
    model, names, nodes, fixed, missing = CASES[name]
    rng = np.random.default_rng(1)
    guess = {each: 1.0 for each in model.parameters if each not in fixed}
    experiments = [
        Experiment(np.arange(count) * 0.1, {each: rng.normal(size=count) for each in names}, sigma=0.5)
        for count in (23, 9)
    ]
    series = [experiment.series for experiment in experiments]
    problem = pose(model, series, guess=guess, fixed=fixed, nodes=nodes).problem  # type: ignore[arg-type]
    data = rng.normal(size=(members, *problem.data.shape[1:]))
    weights = problem.weights * rng.uniform(0.5, 2.0, problem.weights.shape)
    weights[rng.random(weights.shape) < 0.1] = 0.0
    if missing:
        data[rng.random(data.shape) < 0.2] = np.nan
    what = replace(problem.measurements, data=data, weights=weights)
    count, outputs = data.shape[1:3]
    n, q = len(model.states), len(what.free)
    z = Unknowns(rng.normal(size=(members, count, n)), rng.normal(size=(members, q)))
    shape = (members, count - 1, outputs, n)
    flown = Intervals(rng.normal(size=shape), rng.normal(size=(*shape, n)), rng.normal(size=(*shape, q)))
    return model, what, z, rng.uniform(0.5, 1.5, (members, len(model.parameters))), flown


def of(which: np.ndarray, every: Case) -> Measured:
    """Some members alone."""
    model, what, z, parameters, flown = every
    part = replace(what, data=what.data[which])
    assert flown.by_start is not None
    assert flown.by_parameters is not None
    own = Intervals(flown.ends[which], flown.by_start[which], flown.by_parameters[which])
    return measured(model, part, z.take(which), parameters[which], own, slopes=True)


@pytest.mark.parametrize("name", CASES)
def test_machine_code_is_the_reference(name: str) -> None:
    model, what, z, parameters, flown = every = case(name)
    found, expected = of(np.arange(5), every), what.residuals(z, parameters, flown)
    by_node, by_parameters = what.slopes(z, parameters, flown)
    assert found.rows_by_node is not None
    np.testing.assert_allclose(found.residuals.rows, expected.rows, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(found.residuals.links, expected.links)
    np.testing.assert_allclose(found.rows_by_node, by_node, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.rows_by_parameters, by_parameters, rtol=1e-13, atol=1e-13)
    assert np.count_nonzero(expected.rows) > 0.5 * expected.rows.size / what.data.shape[2]
    assert found.finite.all()
    rows_alone = measured(model, what, z, parameters, flown, slopes=False).residuals.rows
    np.testing.assert_array_equal(rows_alone, found.residuals.rows)


@pytest.mark.parametrize("name", CASES)
def test_a_member_does_not_know_of_the_others(name: str) -> None:
    every = case(name)
    table = of(np.arange(5), every)
    for which in (np.array([3]), np.array([0, 1, 4])):
        part = of(which, every)
        np.testing.assert_array_equal(part.residuals.rows, table.residuals.rows[which])
        np.testing.assert_array_equal(part.residuals.links, table.residuals.links[which])
        assert part.rows_by_node is not None
        assert table.rows_by_node is not None
        np.testing.assert_array_equal(part.rows_by_node, table.rows_by_node[which])


@pytest.mark.parametrize("name", CASES)
def test_a_member_that_is_not_finite_is_told_and_leaves_the_others_alone(name: str) -> None:
    every = case(name)
    table = of(np.arange(5), every)
    every[2].nodes[2, 3, 0] = np.nan
    found, others = of(np.arange(5), every), np.array([0, 1, 3, 4])
    assert found.finite.tolist() == [True, True, False, True, True]
    np.testing.assert_array_equal(found.residuals.rows[others], table.residuals.rows[others])


def test_an_observable_need_not_exist_where_nobody_looks() -> None:
    every = case("observables")
    what, z = every[1], every[2]
    z.nodes[1, 4] = 1e200, 1e200  # the observables overflow
    assert of(np.arange(5), every).finite.tolist() == [True, False, True, True, True]
    what.weights[0, 4] = 0.0
    assert of(np.arange(5), every).finite.all()
