"""A Taylor lane that cannot go on is reported with time and cause and holds NaN; the others do not notice."""

import time

import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Outcome


@pytest.fixture(autouse=True)
def no_hang():
    began = time.process_time()
    yield
    assert time.process_time() - began < 5.0


square = model(states="x", name="square")(lambda t, u, p: u.x**2)
pole = model(states="x", parameters="c", name="pole")(lambda t, u, p: p.c * u.x / (t - 1))
draining = model(states="x", parameters="c", name="draining")(lambda t, u, p: -1 + p.c * m.log(u.x) / 1000)
orbit = model(states="x y", parameters="k", name="orbit")(lambda t, u, p: (u.y / p.k, -u.x / p.k))


@pytest.mark.parametrize("sensitivities", [False, True])
def test_a_blow_up_is_found_at_its_time(sensitivities):
    """x' = x^2 from 1 is infinite at t = 1; found to 1e-12; outputs before it are right, later ones NaN."""
    times = np.linspace(0.0, 2.0, 41)
    lanes = propagate(square, times, [[1.0], [0.4]], [], sensitivities=sensitivities)
    (failure,) = lanes.failures
    assert (failure.lane, failure.outcome) == (0, Outcome.BLOW_UP)
    assert abs(failure.time - 1.0) <= 1e-12
    assert "largest component" in failure.cause
    before = times < failure.time
    exact = 1 / (1 - times[before])
    assert (np.abs(lanes.states[0, before, 0] - exact) <= 1e-14 * exact**2).all()  # growth is x^2
    assert np.isnan(lanes.states[0, ~before]).all()
    assert np.abs(lanes.states[1, -1, 0] - 2.0) <= 1e-14 * 25
    if sensitivities:
        assert np.isfinite(lanes.by_start[0, before]).all()
        assert np.isnan(lanes.by_start[0, ~before]).all()


@pytest.mark.parametrize(("begin", "end"), [(0.0, 1.5), (0.0, 1e3), (-1.0, 0.5), (-5.0, 0.0), (1e3, 1e3 + 2)])
def test_the_time_of_a_blow_up_does_not_depend_on_the_clock(begin, end):
    """One time unit after any begin, wherever the end is: also at zero."""
    (failure,) = propagate(square, [begin, end], [1.0], []).failures
    assert failure.outcome is Outcome.BLOW_UP
    assert abs(failure.time - (begin + 1.0)) <= 1e-10


def test_a_pole_in_time_is_not_jumped_over():
    """x' = c x / (t - 1) with c = -1: x = 1/(1 - t); with c = 0 nothing happens until 0/0 at t = 1."""
    lanes = propagate(pole, [0.0, 0.9, 3.0], [1.0], [-1.0], sensitivities=True)
    (failure,) = lanes.failures
    assert failure.outcome in (Outcome.BLOW_UP, Outcome.NOT_FINITE)
    assert abs(failure.time - 1.0) <= 1e-10
    assert abs(lanes.states[0, 1, 0] - 10.0) <= 1e-12
    assert np.isnan(lanes.states[0, 2]).all()


def test_a_slow_pole_in_time_is_not_jumped_over():
    """x' = 1/(t - 1): only a logarithm, but nobody passes t = 1."""
    made = model(states="x", name="slow")(lambda t, u, p: 1 / (t - 1))
    lanes = propagate(made, [0.0, 0.9, 3.0], [1.0], [])
    (failure,) = lanes.failures
    assert abs(failure.time - 1.0) <= 1e-10
    assert abs(lanes.states[0, 1, 0] - (1 + np.log(0.1))) <= 1e-14
    assert np.isnan(lanes.states[0, 2]).all()


def test_division_by_zero_at_the_start_names_the_division():
    lanes = propagate(orbit, [0.0, 1.0], [1.0, 2.0], [[0.0], [1.0]], sensitivities=True)
    (failure,) = lanes.failures
    assert (failure.lane, failure.time, failure.outcome) == (0, 0.0, Outcome.NOT_FINITE)
    assert failure.cause == "divide(2, 0)"
    for values in (lanes.states, lanes.by_start, lanes.by_parameters):
        assert np.isnan(values[0, 1]).all()
        assert np.isfinite(values[1]).all()


def test_the_log_of_a_negative_number_at_the_start_and_later():
    """Lane 0 starts there, lane 1 gets there at t = 0.49916, lane 2 never."""
    lanes = propagate(draining, [0.0, 0.4, 2.0], [[-0.5], [0.5], [3.0]], [1.0], sensitivities=True)
    first, second = lanes.failures
    assert (first.lane, first.time, first.outcome) == (0, 0.0, Outcome.NOT_FINITE)
    assert first.cause == "log(-0.5)"
    assert second.lane == 1
    assert abs(second.time - 0.49915535) <= 1e-7
    assert np.isfinite(lanes.states[1, 1]).all()
    assert np.isnan(lanes.states[1, 2]).all()
    assert np.isfinite(lanes.states[2]).all()


def test_a_square_root_is_not_continued_on_its_other_branch():
    """x' = -sqrt(x) from 1 is empty at t = 2; (1 - t/2)^2 solves another equation after that."""
    made = model(states="x", name="tank")(lambda t, u, p: -m.sqrt(u.x))
    lanes = propagate(made, [0.0, 1.0, 5.0], [1.0], [])
    assert abs(lanes.states[0, 1, 0] - 0.25) <= 1e-15
    assert np.isnan(lanes.states[0, 2, 0]) or abs(lanes.states[0, 2, 0]) <= 1e-12


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("times", [[0.0], [0.0, 1.0]])
def test_input_that_is_not_finite_is_named(bad, times):
    starts = [[1.0, 2.0], [bad, 1.0], [1.0, 1.0]]
    lanes = propagate(orbit, times, starts, [[1.0], [1.0], [bad]])
    assert [(f.lane, f.time, f.outcome) for f in lanes.failures] == [
        (1, 0.0, Outcome.BAD_INPUT),
        (2, 0.0, Outcome.BAD_INPUT),
    ]
    assert [f.cause for f in lanes.failures] == [f"start of x is {bad}", f"parameter k is {bad}"]
    assert np.isfinite(lanes.states[0]).all()
    assert np.isnan(lanes.states[1:, 1:]).all()


def test_a_time_that_is_not_finite_is_a_failure_of_its_lane():
    times = [[0.0, 1.0, 2.0], [0.0, 1.0, np.inf], [0.0, np.nan, 2.0], [np.nan, 1.0, 2.0], [0.0, 1.0, np.nan]]
    lanes = propagate(orbit, times, [1.0, 2.0], [1.0])
    assert [(f.lane, f.cause) for f in lanes.failures] == [(k, "a time is not finite") for k in (1, 2, 3, 4)]
    assert np.isfinite(lanes.states[0]).all()
    assert np.isnan(lanes.states[1:, 1:]).all()


def test_the_step_budget():
    """20 steps are not enough for lane 0; lane 1 rests at the origin and needs few."""
    starts = [[1.0, 2.0, 20.0], [0.0, 0.0, 0.0]]
    lanes = propagate(find("lorenz"), [0.0, 0.1, 50.0], starts, [10.0, 28.0, 8 / 3], max_steps=20)
    (failure,) = lanes.failures
    assert (failure.lane, failure.outcome) == (0, Outcome.STEP_BUDGET)
    assert failure.cause.startswith("20 steps, ")
    assert lanes.steps[0] == 20
    assert 0.1 < failure.time < 50.0
    assert np.isfinite(lanes.states[0, 1]).all()
    assert np.isnan(lanes.states[0, 2]).all()
    assert np.isfinite(lanes.states[1]).all()


def test_tangents_that_overflow_stop_their_lane_not_the_process():
    """x' = 400 x from 0: the state rests, the tangent e^(400 t) has no number after t = 1.77."""
    made = model(states="x", parameters="k", name="steep")(lambda t, u, p: p.k * u.x)
    lanes = propagate(made, [0.0, 1.0, 3.0], [0.0], [[400.0], [1.0]], sensitivities=True)
    (failure,) = lanes.failures
    assert (failure.lane, failure.outcome) == (0, Outcome.NOT_FINITE)
    assert 1.0 < failure.time <= np.log(np.finfo(float).max) / 400
    assert np.isnan(lanes.states[0, 2]).all()
    assert np.isfinite(lanes.by_start[1]).all()


def test_the_watch_is_told_a_part_that_grows_to_one():
    told = []
    rng = np.random.default_rng(1)
    starts = rng.uniform(1.0, 10.0, (6, 3))
    propagate(find("lorenz"), [0.0, 1.0], starts, [10.0, 28.0, 8 / 3], watch=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_all_lanes_failing_is_no_error():
    assert len(propagate(square, [0.0, 1.0], [[np.nan], [np.inf]], []).failures) == 2
