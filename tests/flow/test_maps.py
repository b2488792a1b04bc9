"""Maps: iterated states, tangents by the chain rule, and escape."""

import mpmath as mp
import numpy as np
import pytest

from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import InputError, Outcome
from tests.flow.extrapolation_lanes import propagate


def henon(x, y, a, b):
    return 1 - a * x**2 + y, b * x


def test_the_henon_map_against_products_of_jacobians():
    x, y, a, b = 0.1, 0.1, 1.4, 0.3
    lanes = propagate(find("henon_map"), np.arange(16), [x, y], [a, b], sensitivities=True)
    by_start, by_parameters = np.eye(2), np.zeros((2, 2))
    for n in range(16):
        assert lanes.states[0, n] == pytest.approx([x, y], rel=1e-13)
        assert np.abs(lanes.by_start[0, n] - by_start).max() <= 1e-13 * np.abs(by_start).max()
        assert np.abs(lanes.by_parameters[0, n] - by_parameters).max() <= 1e-13 * max(
            1, np.abs(by_parameters).max()
        )
        jacobian = np.array([[-2 * a * x, 1.0], [b, 0.0]])
        by_parameters = jacobian @ by_parameters + np.array([[-(x**2), 0.0], [0.0, x]])
        by_start = jacobian @ by_start
        x, y = henon(x, y, a, b)


def test_the_fibonacci_trace_map_against_mpmath():
    """12 iterations as one function of start and parameters, differentiated at 40 digits."""
    made = find("fibonacci_trace")
    start, parameters = list(made.examples[0].start.values()), [0.1, 0.05, 1.9]

    def iterated(component):
        def function(x0, x1, x2, a, b, c):
            for _ in range(12):
                x0, x1, x2 = x1, x2, a + b * (x2 + x1) + c * x2 * x1 - x0
            return (x0, x1, x2)[component]

        return function

    lanes = propagate(made, [0, 12], start, parameters, sensitivities=True)
    ours = np.column_stack([lanes.by_start[0, 1], lanes.by_parameters[0, 1]])
    with mp.workdps(40):
        for i in range(3):
            for j in range(6):
                orders = tuple(int(k == j) for k in range(6))
                expected = float(mp.diff(iterated(i), (*start, *parameters), orders))
                assert ours[i, j] == pytest.approx(expected, rel=1e-11)


def test_differences_of_an_opaque_map_agree_with_the_chain_rule():
    words = {"states": "x y", "parameters": "a b", "kind": "map"}
    shut = model(opaque=True, **words)(lambda t, u, p: henon(u.x, u.y, p.a, p.b))
    ours = propagate(shut, np.arange(11), [0.1, 0.1], [1.4, 0.3], sensitivities=True)
    theirs = propagate(find("henon_map"), np.arange(11), [0.1, 0.1], [1.4, 0.3], sensitivities=True)
    assert np.abs(ours.by_start - theirs.by_start).max() <= 1e-7 * np.abs(theirs.by_start).max()
    assert (
        np.abs(ours.by_parameters - theirs.by_parameters).max() <= 1e-7 * np.abs(theirs.by_parameters).max()
    )


def test_outputs_may_skip_iterations_and_start_anywhere():
    every = propagate(find("henon_map"), np.arange(11), [0.1, 0.1], [1.4, 0.3])
    some = propagate(find("henon_map"), [-3, -1, 4, 7], [0.1, 0.1], [1.4, 0.3])
    assert np.array_equal(some.states[0], every.states[0, [0, 2, 7, 10]])
    assert some.steps.tolist() == [10]


def test_a_map_may_depend_on_its_time():
    lanes = propagate(model(states="x", kind="map")(lambda t, u, p: u.x + t), [2, 3, 5], [0.0], [])
    assert lanes.states[0, :, 0].tolist() == [0.0, 2.0, 9.0]


def test_an_escape_is_a_failure_of_its_lane():
    lanes = propagate(find("henon_map"), np.arange(31), [[10.0, 10.0], [0.1, 0.1]], [1.4, 0.3])
    (failure,) = lanes.failures
    assert (failure.lane, failure.outcome) == (0, Outcome.NOT_FINITE)
    assert failure.cause.startswith("multiply(")
    reached = int(failure.time)
    assert 5 < reached < 15
    assert np.isfinite(lanes.states[0, : reached + 1]).all()
    assert np.isnan(lanes.states[0, reached + 1 :]).all()
    alone = propagate(find("henon_map"), np.arange(31), [0.1, 0.1], [1.4, 0.3])
    assert np.array_equal(lanes.states[1], alone.states[0])


def test_tangents_that_overflow_are_a_failure_and_not_silently_nan():
    """The orbit stays bounded, but after some 1,650 iterations its tangents pass 1e308."""
    times = [0, 1000, 3000]
    lanes = propagate(find("henon_map"), times, [0.1, 0.1], [1.4, 0.3], sensitivities=True)
    (failure,) = lanes.failures
    assert failure.outcome is Outcome.NOT_FINITE
    assert 1500 < failure.time < 1800
    assert np.isfinite(lanes.by_start[0, 1]).all()
    assert propagate(find("henon_map"), times, [0.1, 0.1], [1.4, 0.3]).failures == ()


def test_the_step_budget_of_a_map():
    (failure,) = propagate(find("henon_map"), [0, 100], [0.1, 0.1], [1.4, 0.3], max_steps=10).failures
    assert (failure.outcome, failure.time) == (Outcome.STEP_BUDGET, 10.0)


@pytest.mark.parametrize(
    "times", [[0.0, 0.5], [0.0, 1.0, 2.0000001], [0.5, 1.5], [0.0, np.nan], [0.0, np.inf]]
)
def test_times_of_a_map_are_whole_numbers(times):
    with pytest.raises(InputError, match="henon_map: a map has whole numbers as times; use spacing = 1"):
        propagate(find("henon_map"), times, [0.1, 0.1], [1.4, 0.3])
