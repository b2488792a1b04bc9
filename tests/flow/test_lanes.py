"""A lane's bits depend on that lane alone: not on the batch, the order or the neighbours."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit import math as m
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from tests.flow.extrapolation_lanes import METHODS, propagate

FIELDS = ("states", "by_start", "by_parameters", "steps")


@model(states="x y", parameters="a b")
def every(t, u, p):
    """A tame flow with every function that numpy hands to a vector unit."""
    x, y = m.sin(u.x), m.cos(u.y)
    first = (
        m.exp(-x * x) - m.tanh(u.x) * p.a + m.log(2 + x) + m.asin(0.5 * x) - m.sinh(y) / 10 + m.tan(0.3 * x)
    )
    second = (
        m.sqrt(2 + y) - m.atan(u.y) + m.acos(0.5 * y) - m.cosh(x) * p.b + (2 + x) ** p.a - abs(u.y) ** 1.5
    )
    return first, second - u.y


def batch(name, lanes=17, seed=1):
    """Different starts, parameters and times of a model for each lane."""
    rng = np.random.default_rng(seed)
    if name == "every":
        made, start, parameters, end = every, np.array([0.3, 0.4]), np.array([0.7, 0.5]), 0.8
    else:
        made = find(name)
        example = made.examples[0]
        start, parameters = (
            np.array(list(example.start.values())),
            np.array(list(example.parameters.values())),
        )
        end = min(example.duration, 0.5)
    starts = start * (1 + 0.1 * rng.standard_normal((lanes, len(start))))
    values = parameters * (1 + 0.05 * rng.standard_normal((lanes, len(parameters))))
    if made.kind == "map":
        times = np.tile(np.arange(8.0), (lanes, 1))
    else:
        times = np.sort(rng.uniform(0.02, end, (lanes, 4)), axis=1)
        times[:, 0] = 0.0
    return made, times, starts, values


def run(made, times, starts, parameters, lanes, method="extrapolation"):
    lanes = np.asarray(lanes)
    return propagate(made, times[lanes], starts[lanes], parameters[lanes], sensitivities=True, method=method)


def same(one, other, where):
    return all(
        np.array_equal(getattr(one, field)[where], getattr(other, field), equal_nan=True) for field in FIELDS
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["every", "lorenz", "pendulum_driven", "henon_map"])
def test_alone_in_threes_and_reversed(name, method):
    """Batches of 17, 3 and 1 lanes, and the 17 in reverse order."""
    system = batch(name)
    whole = run(*system, range(17), method)
    for first in (0, 13):
        some = [first, first + 1, first + 2]
        assert same(whole, run(*system, some, method), some)
    for lane in (0, 9):
        assert same(whole, run(*system, [lane], method), [lane])
    backwards = list(range(16, -1, -1))
    assert same(whole, run(*system, backwards, method), backwards)


@cache
def everyone():
    return run(*batch("every"), range(17))


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 16), min_size=1, max_size=20))
def test_any_selection_in_any_order_with_repetitions(lanes):
    assert same(everyone(), run(*batch("every"), lanes), lanes)


@settings(derandomize=True, max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 8))
def test_any_neighbours(seed, place):
    """One lane among neighbours that are new each time, wild ones among them."""
    made, times, starts, parameters = batch("every", lanes=9, seed=seed)
    _, own_times, own_start, own_parameters = batch("every", lanes=1, seed=77)
    starts[(place + 1) % 9] = (np.nan, 1.0)
    starts[(place + 2) % 9] = (1e6, 30.0)
    times[place], starts[place], parameters[place] = own_times[0], own_start[0], own_parameters[0]
    among = run(made, times, starts, parameters, range(9))
    alone = run(made, own_times, own_start, own_parameters, [0])
    assert same(among, alone, [place])


def test_the_same_run_twice_has_the_same_bits():
    system = batch("every")
    first = run(*system, range(17))
    scattered = [np.empty(k) for k in range(1, 4000, 7)]  # another layout of the memory
    second = run(*system, range(17))
    assert len(scattered) > 0
    assert same(first, second, slice(None))


def test_one_time_grid_start_or_parameter_set_serves_all_lanes():
    made, times, starts, parameters = batch("lorenz", lanes=3)
    shared = propagate(made, times[0], starts, parameters[0])
    spelled = propagate(made, times[[0, 0, 0]], starts, parameters[[0, 0, 0]])
    assert np.array_equal(shared.states, spelled.states)


def test_inputs_are_left_as_they_are():
    made, times, starts, parameters = batch("lorenz", lanes=3)
    copies = [array.copy() for array in (times, starts, parameters)]
    propagate(made, times, starts, parameters, sensitivities=True)
    for array, copy in zip((times, starts, parameters), copies, strict=True):
        assert np.array_equal(array, copy)


def test_the_watch_is_told_a_part_that_grows_to_one():
    made, times, starts, parameters = batch("lorenz", lanes=3)
    told = []
    propagate(made, times, starts, parameters, watch=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert 0.0 < told[0] <= 1.0
