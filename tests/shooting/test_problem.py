"""Residuals and Jacobians of the boundary-value problem, against differences of the 128-bit flow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcfit.linear.chain import Chain, Unknowns
from hpcfit.models.catalogue import find
from hpcfit.models.strings import model_from_strings
from hpcfit.mpi.serial import SERIAL
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.pose import Posed, pose
from hpcfit.shooting.problem import Problem
from tests.shooting.driven import DRIVEN, Wide, read, wide_flow

H = 2.0**-22
FIRST = np.array([0.0, 0.3, 0.4, 0.55, 0.9, 1.5, 1.6, 2.0])
SECOND = np.array([1.0, 1.2, 1.3, 2.5])


def unknowns(posed: Posed, seed: int = 0) -> Unknowns:
    """A point that is no solution: everything in its Jacobian differs from zero."""
    rng = np.random.default_rng(seed)
    start = posed.start
    return Unknowns(rng.normal(size=start.nodes.shape), rng.uniform(0.5, 1.5, start.parameters.shape))


def two_experiments(fixed: dict[str, float]) -> Posed:
    """Different lengths and observables; no, one and several data in an interval; nodes without data."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(8, 3))
    values[2, 1] = values[5, 0] = np.nan
    one = Experiment(FIRST, dict(zip(("g", "x", "h"), values.T, strict=True)), rng.uniform(0.1, 0.3, (8, 3)))
    two = Experiment(SECOND, {"y": rng.normal(size=4), "g": rng.normal(size=4)}, {"y": 0.2, "g": 0.4})
    nodes = [[0.0, 0.35, 1.0, 1.5, 2.0], [0.9, 1.0, 2.5]]
    guess = {name: 1.0 for name in "abc" if name not in fixed}
    return pose(DRIVEN, [one.series, two.series], guess=guess, fixed=fixed, nodes=nodes)


def read_there(problem: Problem) -> np.ndarray:
    """Where there is a value (N, outputs, o): it is not missing, and somebody looks there."""
    there: np.ndarray = np.isfinite(problem.data[0]) & (problem.weights[0] > 0.0)
    return there


def by_hand(posed: Posed, nodes: np.ndarray, parameters: np.ndarray) -> tuple[Wide, Wide]:
    """Rows of all data that are there, in the order of experiment, time and name; and all defects."""
    problem, grid = posed.problem, posed.problem.grid
    rows, links = [], []
    for e, data_times in enumerate((FIRST, SECOND)):
        for j in np.flatnonzero(grid.experiment == e):
            here = np.flatnonzero(grid.node_of[e] == j)
            times = data_times[here]
            last = j + 1 == len(grid.times) or grid.experiment[j + 1] != e
            inner = times[times > grid.times[j]]
            passed = [grid.times[j], *inner, *([] if last else [grid.times[j + 1]])]
            states = wide_flow(DRIVEN, passed, nodes[j], parameters)
            if not last:
                links.append(states[-1] - nodes[j + 1])
            at = states[: len(inner) + 1] if len(inner) < len(times) else states[1 : len(inner) + 1]
            for t, u, s in zip(times, at, grid.output_of[e][here], strict=True):
                for k, name in enumerate(problem.readings.names):
                    if read_there(problem)[j, s, k]:
                        value = read(name, np.longdouble(t), u, parameters.astype(np.longdouble))
                        rows.append((value - problem.data[0, j, s, k]) * problem.weights[0, j, s, k])
    return np.array(rows), np.array(links)


def tables(posed: Posed, chain: Chain) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows and defects of a chain in the order of `by_hand`, with their full Jacobians."""
    problem, grid = posed.problem, posed.problem.grid
    _, n_nodes, _, n, q = chain.shape
    width = n_nodes * n + q
    there = read_there(problem).reshape(n_nodes, -1)
    for each in (chain.residuals.rows, chain.rows_by_node, chain.rows_by_parameters):
        assert not each[0][~there].any()  # what nobody reads has no say
    rows, by_rows = [], []
    for j, r in np.argwhere(there):
        row = np.zeros(width)
        row[j * n : (j + 1) * n] = chain.rows_by_node[0, j, r]
        row[n_nodes * n :] = chain.rows_by_parameters[0, j, r]
        rows.append(chain.residuals.rows[0, j, r])
        by_rows.append(row)
    linked = np.flatnonzero(grid.linked)
    by_links = np.zeros((len(linked), n, width))
    for k, j in enumerate(linked):
        by_links[k, :, j * n : (j + 1) * n] = chain.links_by_node[0, j]
        by_links[k, :, (j + 1) * n : (j + 2) * n] = -np.eye(n)
        by_links[k, :, n_nodes * n :] = chain.links_by_parameters[0, j]
    return np.array(rows), np.array(by_rows), chain.residuals.links[0, linked], by_links


@pytest.mark.parametrize("fixed", [{}, {"b": 0.7}])
def test_rows_and_defects_and_their_jacobians_against_128_bit_differences(fixed: dict[str, float]) -> None:
    posed = two_experiments(fixed)
    z = unknowns(posed)
    free = list(posed.problem.free)

    def moved(step: np.ndarray) -> tuple[Wide, Wide]:
        split = z.nodes.size
        parameters = posed.problem.fixed.copy()
        parameters[free] = z.parameters[0] + step[split:]
        return by_hand(posed, z.nodes[0] + step[:split].reshape(z.nodes.shape[1:]), parameters)

    chain = posed.problem.linearise(SERIAL, z)
    rows, by_rows, links, by_links = tables(posed, chain)
    width = by_rows.shape[1]
    there = moved(np.zeros(width))
    assert np.abs(rows - there[0]).max() < 1e-14 * np.abs(rows).max()
    assert np.abs(links - there[1]).max() < 1e-14 * np.abs(links).max()
    sides = [[moved(sign * H * column) for column in np.eye(width)] for sign in (1.0, -1.0)]
    for k, (slopes, largest) in enumerate(((by_rows, np.abs(by_rows).max()), (by_links, 1.0))):
        differences = [(up[k] - low[k]) / (2 * H) for up, low in zip(*sides, strict=True)]
        assert np.abs(np.stack(differences, axis=-1) - slopes).max() < 1e-11 * largest


def test_a_map_with_data_between_its_nodes_against_differences_by_hand() -> None:
    """Hénon's map, iterated here in long doubles; the last interval is shorter than the others."""
    times = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0])
    data = np.random.default_rng(5).normal(size=(7, 2))
    experiment = Experiment(times, {"y": data[:, 0], "x": data[:, 1]}, 0.5)
    henon = find("henon_map")
    posed = pose(henon, [experiment.series], guess={"a": 1.0, "b": 1.0}, nodes=[0.0, 3.0, 6.0, 7.0])
    z = unknowns(posed)

    def moved(step: np.ndarray) -> tuple[Wide, Wide]:
        nodes = (z.nodes[0] + step[:8].reshape(4, 2)).astype(np.longdouble)
        a, b = z.parameters[0] + step[8:]
        rows, links = [], []
        for j, (begin, end) in enumerate(((0, 3), (3, 6), (6, 7), (7, 8))):
            x, y = nodes[j]
            for t in range(begin, end):
                for i in np.flatnonzero(times == t):
                    rows += [(y - data[i, 0]) / 0.5, (x - data[i, 1]) / 0.5]
                x, y = 1 - a * x**2 + y, b * x
            if j < 3:
                links.append([x - nodes[j + 1, 0], y - nodes[j + 1, 1]])
        return np.array(rows), np.array(links)

    rows, by_rows, links, by_links = tables(posed, posed.problem.linearise(SERIAL, z))
    there = moved(np.zeros(10))
    assert np.abs(rows - there[0]).max() < 1e-14 * np.abs(rows).max()
    assert np.abs(links - there[1]).max() < 1e-14 * np.abs(links).max()
    sides = [[moved(sign * H * column) for column in np.eye(10)] for sign in (1.0, -1.0)]
    for k, slopes in enumerate((by_rows, by_links)):
        differences = [(up[k] - low[k]) / (2 * H) for up, low in zip(*sides, strict=True)]
        assert np.abs(np.stack(differences, axis=-1) - slopes).max() < 1e-10 * np.abs(slopes).max()


def test_residuals_alone_are_those_of_the_linearisation() -> None:
    posed = two_experiments({})
    z = unknowns(posed)
    alone, chain = posed.problem.residuals(SERIAL, z), posed.problem.linearise(SERIAL, z)
    np.testing.assert_allclose(alone.rows, chain.residuals.rows, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(alone.links, chain.residuals.links, rtol=1e-13, atol=1e-13)


EXPLOSION = model_from_strings(
    "explosion",
    states=["x"],
    parameters=["a"],
    equations={"x": "a*x**2"},
    observables={"logarithm": "log(x)"},
)
EARLY = np.linspace(0.0, 0.8, 9)


def explosion(*scales: float, nodes: Any = "data") -> Posed:
    """x = 1 / (1 - t): it ends 0.2 after the last measurement."""
    experiments = [Experiment(EARLY, {"x": scale / (1.0 - EARLY)}, 0.1).series for scale in scales]
    return pose(EXPLOSION, experiments, guess={"a": 1.0}, nodes=nodes)


@pytest.mark.parametrize("nodes", ["data", 3])
def test_nothing_is_integrated_beyond_the_end_of_an_experiment(nodes: Any) -> None:
    posed = explosion(1.0, 0.9, nodes=nodes)
    chain = posed.problem.linearise(SERIAL, posed.start)
    assert chain.finite().all()
    assert posed.problem.failures(posed.start) == ""
    end = int(np.argmin(chain.linked))
    assert not chain.links_by_node[0, end].any()
    assert not chain.residuals.links[0, end].any()
    assert np.abs(chain.residuals.links).max() > 0.01  # of the second experiment, which has another a


def test_a_path_that_cannot_be_integrated_says_where_and_spares_the_other_members() -> None:
    values = np.stack([1.0 / (1.0 - EARLY), np.where(np.arange(9) == 3, 30.0, 1.0)])[..., None]
    one = pose(EXPLOSION, [Experiment(EARLY, {"x": values[0, :, 0]}).series], guess={"a": 1.0})
    posed = one.with_values([values])
    chain = posed.problem.linearise(SERIAL, posed.start)
    assert chain.finite().tolist() == [True, False]
    one = posed.problem.take(np.array([0]))
    alone = one.linearise(SERIAL, posed.start.take(np.array([0])))
    np.testing.assert_array_equal(chain.links_by_node[:1], alone.links_by_node)
    bad, start = posed.problem.take(np.array([1])), posed.start.take(np.array([1]))
    assert bad.failures(start).startswith("from the node at t = 0.3 to t = 0.33333")


@pytest.mark.parametrize("nodes", ["data", 4])
def test_an_observable_need_not_exist_where_nobody_looks(nodes: Any) -> None:
    """log(x) of a negative state, without data there or with weight 0, leaves the problem finite."""
    x = np.linspace(-0.95, 1.05, 9)
    logarithm = np.log(np.where(x > 0.1, x, np.nan))
    seen = Experiment(EARLY, {"x": x, "logarithm": logarithm}, 0.1).series
    posed = pose(EXPLOSION, [seen], guess={"a": 0.1}, nodes=nodes)
    chain = posed.problem.linearise(SERIAL, posed.start)
    assert chain.finite().all()
    ignored = Experiment(EARLY, {"x": x, "logarithm": np.ones(9)}, 0.1).series
    posed = pose(EXPLOSION, [ignored], guess={"a": 0.1}, nodes=nodes, weights={"logarithm": 0.0})
    assert posed.problem.linearise(SERIAL, posed.start).finite().all()
    assert posed.problem.observed().tolist() == [9]


def test_an_observable_that_is_not_finite_where_it_was_measured_ends_that_member() -> None:
    seen = Experiment(EARLY, {"logarithm": np.ones(9)}, 0.1).series
    posed = pose(EXPLOSION, [seen], guess={"a": 0.1}, nodes=4)  # the nodes begin at zero
    assert not posed.problem.linearise(SERIAL, posed.start).finite().any()
    assert not posed.problem.residuals(SERIAL, posed.start).finite().any()
    assert posed.problem.failures(posed.start) == "at t = 0: logarithm is not finite"


def test_without_free_parameters_only_states_are_unknown() -> None:
    experiment = Experiment(EARLY, {"x": 1.0 / (1.0 - EARLY)}, 0.1).series
    posed = pose(EXPLOSION, [experiment], guess={}, fixed={"a": 1.0})
    chain = posed.problem.linearise(SERIAL, posed.start)
    assert chain.shape == (1, 9, 1, 1, 0)
    assert np.abs(chain.residuals.links).max() < 1e-14  # 2, 1.25, ... are the exact solution


def test_a_trial_with_absurd_parameters_ends_soon_and_is_not_finite() -> None:
    """A relaxation of 1e-10 over times of 0.1 is a billion steps: nobody waits for that."""
    lorenz = find("lorenz")
    times = 0.1 * np.arange(5)
    seen = Experiment(times, {"x": times, "y": times, "z": times}).series
    posed = pose(lorenz, [seen], guess={"sigma": 1e10, "r": 28.0, "b": 2.0})
    assert not posed.problem.residuals(SERIAL, posed.start).finite().any()
    assert "the step budget is spent" in posed.problem.failures(posed.start)


@pytest.mark.parametrize("nodes", ["data", 4])
def test_members_of_a_batch_have_the_bits_of_members_alone(nodes: Any) -> None:
    rng = np.random.default_rng(6)
    one = pose(
        DRIVEN,
        [Experiment(FIRST, {"x": FIRST, "y": FIRST}, 0.1).series],
        guess={"a": 1.0, "b": 1.0, "c": 1.0},
        nodes=nodes,
    )
    posed = one.with_values([rng.normal(size=(11, 8, 2))])
    z = Unknowns(posed.start.nodes, rng.uniform(0.5, 1.5, (11, 3)))
    whole, alone = posed.problem.linearise(SERIAL, z), posed.problem.residuals(SERIAL, z)
    assert whole.finite().all()
    for some in (np.array([4]), np.array([0, 3, 10])):
        part = posed.problem.take(some).linearise(SERIAL, z.take(some))
        for name in ("rows_by_node", "rows_by_parameters", "links_by_node", "links_by_parameters"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[some])
        np.testing.assert_array_equal(part.residuals.rows, whole.residuals.rows[some])
        np.testing.assert_array_equal(part.residuals.links, whole.residuals.links[some])
        again = posed.problem.take(some).residuals(SERIAL, z.take(some))
        np.testing.assert_array_equal(again.rows, alone.rows[some])
        np.testing.assert_array_equal(again.links, alone.links[some])


@pytest.mark.parametrize("names", [("x", "y"), ("x",)])
def test_who_could_be_linearised_is_known_before_all_slopes_are_looked_at(names: tuple[str, ...]) -> None:
    """The flag of the kernel says what the numbers say: a start, a parameter or a path that is not finite."""
    one = pose(
        DRIVEN,
        [Experiment(FIRST, dict.fromkeys(names, FIRST), 0.1).series],
        guess={"a": 1.0, "b": 1.0, "c": 1.0},
    )
    posed = one.with_values([np.random.default_rng(7).normal(size=(6, 8, len(names)))])
    z = Unknowns(posed.start.nodes.copy(), np.ones((6, 3)))
    z.nodes[1, 3, 0] = np.nan
    z.nodes[2, -1, 1] = np.inf  # from where nothing is integrated
    z.parameters[3, 2] = np.nan
    z.parameters[4, 2] = -1e9  # explodes
    with np.errstate(all="ignore"):
        chain = posed.problem.linearise(SERIAL, z)
        looked = replace(chain, alive=None).finite()
    assert chain.alive is not None
    assert chain.alive.tolist() == looked.tolist() == [True, False, False, False, False, True]
