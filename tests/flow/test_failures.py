"""A lane that cannot go on is reported with time and cause and holds NaN; the others do not notice."""

import time

import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Outcome
from tests.flow.extrapolation_lanes import propagate


@model(states="x")
def square(t, u, p):
    """x' = x^2: x = x0 / (1 - x0 t) is infinite at t = 1/x0."""
    return u.x**2


@model(states="x", parameters="c")
def draining(t, u, p):
    """x' = -1 + c log(x) / 1000: log of a negative number soon after x = 0."""
    return -1 + p.c * m.log(u.x) / 1000


@model(states="x y", parameters="k")
def orbit(t, u, p):
    """A rotation divided by k."""
    return u.y / p.k, -u.x / p.k


@pytest.fixture(autouse=True)
def no_hang():
    began = time.process_time()
    yield
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("sensitivities", [False, True])
@pytest.mark.parametrize("method", ["extrapolation", "extrapolation-differences"])
def test_a_blow_up_is_found_at_its_time(method, sensitivities):
    lanes = propagate(square, [0.0, 0.5, 2.0], [[1.0], [0.4]], [], method=method, sensitivities=sensitivities)
    (failure,) = lanes.failures
    assert failure.lane == 0
    assert failure.outcome is Outcome.BLOW_UP
    assert failure.time == pytest.approx(1.0, abs=1e-6 if not (sensitivities and "diff" in method) else 1e-4)
    assert "largest component" in failure.cause
    assert lanes.states[0, 1, 0] == pytest.approx(2.0, rel=1e-10)
    assert np.isnan(lanes.states[0, 2]).all()
    assert lanes.states[1, 2, 0] == pytest.approx(0.4 / (1 - 0.8), rel=1e-10)


def test_the_time_of_a_blow_up_does_not_depend_on_how_far_one_asks():
    ends = [1.5, 10.0, 1e3]
    for end in ends:
        (failure,) = propagate(square, [0.0, end], [1.0], []).failures
        assert failure.time == pytest.approx(1.0, abs=1e-6)


def test_division_by_zero_at_the_start():
    lanes = propagate(orbit, [0.0, 1.0], [1.0, 2.0], [[0.0], [1.0]], sensitivities=True)
    (failure,) = lanes.failures
    assert (failure.lane, failure.time, failure.outcome) == (0, 0.0, Outcome.NOT_FINITE)
    assert failure.cause == "divide(2, 0)"
    assert "lane 0 stopped at t = 0: the right-hand side is not finite (divide(2, 0))" in str(failure)
    assert np.isnan(lanes.states[0, 1]).all()
    assert np.isnan(lanes.by_start[0, 1]).all()
    assert np.isnan(lanes.by_parameters[0, 1]).all()


def test_a_pole_in_time_is_not_jumped_over():
    """x' = 1/(1 - t): nobody passes t = 1."""
    pole = model(states="x")(lambda t, u, p: 1 / (1 - t))
    lanes = propagate(pole, [0.0, 0.9, 3.0], [1.0], [])
    (failure,) = lanes.failures
    assert failure.time == pytest.approx(1.0, abs=1e-6)
    assert lanes.states[0, 1, 0] == pytest.approx(1 - np.log(0.1), rel=1e-10)
    assert np.isnan(lanes.states[0, 2, 0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_input_that_is_not_finite_is_named(bad):
    starts = [[1.0, 2.0], [bad, 1.0], [1.0, 1.0]]
    parameters = [[1.0], [1.0], [bad]]
    lanes = propagate(orbit, [0.0, 1.0], starts, parameters)
    assert [(f.lane, f.time, f.outcome) for f in lanes.failures] == [
        (1, 0.0, Outcome.BAD_INPUT),
        (2, 0.0, Outcome.BAD_INPUT),
    ]
    assert [f.cause for f in lanes.failures] == [f"start of x is {bad}", f"parameter k is {bad}"]
    assert np.isfinite(lanes.states[0]).all()
    assert np.isnan(lanes.states[1:, 1]).all()


def test_a_time_that_is_not_finite_is_a_failure_of_its_lane():
    lanes = propagate(orbit, [[0.0, 1.0, 2.0], [0.0, 1.0, np.inf], [0.0, np.nan, 2.0]], [1.0, 2.0], [1.0])
    assert [(f.lane, f.cause) for f in lanes.failures] == [
        (1, "a time is not finite"),
        (2, "a time is not finite"),
    ]
    assert np.isfinite(lanes.states[0]).all()


def test_the_log_of_a_negative_number_at_the_start():
    (failure,) = propagate(draining, [0.0, 1.0], [-0.5], [1.0]).failures
    assert (failure.time, failure.outcome, failure.cause) == (0.0, Outcome.NOT_FINITE, "log(-0.5)")


def test_the_log_of_a_negative_number_reached_later():
    lanes = propagate(draining, [0.0, 0.4, 2.0], [[0.5], [3.0]], [1.0], sensitivities=True)
    (failure,) = lanes.failures
    assert failure.lane == 0
    assert failure.outcome is Outcome.NOT_FINITE
    assert failure.cause.startswith("log(-")
    assert failure.time == pytest.approx(0.5, abs=2e-3)
    assert np.isfinite(lanes.states[0, 1, 0])
    assert np.isnan(lanes.states[0, 2, 0])
    assert np.isfinite(lanes.states[1]).all()


def test_the_step_budget():
    lorenz = find("lorenz")
    starts = [[1.0, 2.0, 20.0], [0.0, 0.0, 0.0]]  # the second rests at the origin and needs one step
    lanes = propagate(lorenz, [0.0, 0.1, 50.0], starts, [10.0, 28.0, 8 / 3], max_steps=20)
    (failure,) = lanes.failures
    assert (failure.lane, failure.outcome) == (0, Outcome.STEP_BUDGET)
    assert failure.cause.startswith("20 steps, ")
    assert 0.1 < failure.time < 50.0
    assert np.isfinite(lanes.states[0, 1]).all()
    assert np.isnan(lanes.states[0, 2]).all()
    assert np.isfinite(lanes.states[1]).all()


def test_outputs_before_the_failure_are_kept_and_all_later_ones_are_nan():
    times = np.linspace(0.0, 2.0, 41)
    lanes = propagate(square, times, [1.0], [], sensitivities=True)
    (failure,) = lanes.failures
    before = times < failure.time
    assert lanes.states[0, before, 0] == pytest.approx(1 / (1 - times[before]), rel=1e-8)
    for values in (lanes.states[0], lanes.by_start[0]):
        assert np.isfinite(values[before]).all()
        assert np.isnan(values[~before]).all()


def test_healthy_lanes_have_the_bits_of_a_run_without_the_failing_ones():
    """Blow-up, bad input, log of a negative number, division by zero, budget: all beside healthy lanes."""

    @model(states="x y", parameters="a b")
    def mixed(t, u, p):
        return p.a * u.x**2 - u.y, m.log(u.x + 3) / p.b - u.y + m.sin(t)

    rng = np.random.default_rng(5)
    starts, parameters = rng.uniform(0.1, 0.5, (9, 2)), rng.uniform(-1.0, -0.5, (9, 2))
    bad = [0, 2, 3, 6, 8]
    starts[0], parameters[0] = (5.0, 0.0), (1.0, 1.0)  # blows up
    starts[2] = (np.nan, 0.0)
    starts[3] = (-4.0, 0.0)  # log(-1)
    parameters[6] = (0.5, 0.0)  # divided by zero
    parameters[8] = (-np.inf, 1.0)
    good = [lane for lane in range(9) if lane not in bad]
    times = np.linspace(0.0, 4.0, 7)
    together = propagate(mixed, times, starts, parameters, sensitivities=True)
    healthy = propagate(mixed, times, starts[good], parameters[good], sensitivities=True)
    assert [failure.lane for failure in together.failures] == bad
    assert healthy.failures == ()
    for name in ("states", "by_start", "by_parameters", "steps"):
        assert np.array_equal(getattr(together, name)[good], getattr(healthy, name))


def test_all_lanes_failing_is_no_error():
    lanes = propagate(square, [0.0, 1.0], [[np.nan], [np.inf]], [])
    assert len(lanes.failures) == 2
