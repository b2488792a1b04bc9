"""Opaque models: Python functions with branches, called with numbers."""

import math

import numpy as np
import pytest

from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import InputError, Outcome
from tests.flow.extrapolation_lanes import propagate


def opaque(body, states="x", parameters="", **more):
    return model(states=states, parameters=parameters, opaque=True, name="made", **more)(body)


def heater(t, u, p):
    """Warms at the rate p.power below 20 degrees, else cools: written with an if."""
    if u.x < 20.0:
        return (p.rate,)
    return (p.rate - p.loss * (u.x - 20.0),)


def test_a_branch_against_the_exact_piecewise_solution():
    """x = x0 + rate t until 20, then 20 + rate/loss (1 - exp(-loss (t - t*))): the kink is found by steps."""
    rate, loss, start = 4.0, 2.0, 12.0
    times = np.array([0.0, 1.0, 2.5, 4.0])
    crossing = (20.0 - start) / rate
    exact = np.where(
        times < crossing,
        start + rate * times,
        20 + rate / loss * (1 - np.exp(-loss * np.maximum(times - crossing, 0))),
    )
    made = opaque(heater, parameters="rate loss")
    lanes = propagate(made, times, [start], [rate, loss], sensitivities=True)
    assert lanes.failures == ()
    assert lanes.states[0, :, 0] == pytest.approx(exact, rel=1e-10)
    # d/dx0 moves the crossing only: x = g(t - t*), dx/dx0 = g'(t - t*) / rate
    later = np.exp(-loss * (times[2:] - crossing))
    assert lanes.by_start[0, :, 0, 0] == pytest.approx([1.0, 1.0, *later], rel=1e-6)


def lorenz_equations(t, u, p):
    return p.sigma * (u.y - u.x), u.x * (p.r - u.z) - u.y, u.x * u.y - p.b * u.z


def test_opaque_equals_traced():
    """The same scheme on the same numbers: bit for bit with differences, 1e-6 against exact tangents."""
    words = {"states": "x y z", "parameters": "sigma r b"}
    shut, open_ = opaque(lorenz_equations, **words), model(**words)(lorenz_equations)
    start, parameters = [[1.0, 2.0, 20.0], [-3.0, 1.0, 15.0]], [10.0, 28.0, 8 / 3]
    times = [0.0, 0.21, 0.5, 1.0]
    ours = propagate(shut, times, start, parameters, sensitivities=True)
    same = propagate(open_, times, start, parameters, sensitivities=True, method="extrapolation-differences")
    exact = propagate(open_, times, start, parameters, sensitivities=True)
    assert np.array_equal(ours.states, same.states)
    assert np.array_equal(ours.by_start, same.by_start)
    assert np.array_equal(ours.by_parameters, same.by_parameters)
    assert np.abs(ours.by_start - exact.by_start).max() <= 1e-6 * np.abs(exact.by_start).max()
    assert np.abs(ours.by_parameters - exact.by_parameters).max() <= 1e-6 * np.abs(exact.by_parameters).max()


def test_an_opaque_function_may_use_vectors_numpy_and_math():
    size = 5
    circle = find("lorenz96", size)
    states = list(circle.states)
    made = opaque(lambda t, u, p: (np.roll(u, -1) - np.roll(u, 2)) * np.roll(u, 1) - u + p.f, states, "f")
    start = list(circle.examples[0].start.values())
    ours, theirs = (propagate(one, [0.0, 0.5], start, [8.0]) for one in (made, circle))
    assert ours.states == pytest.approx(theirs.states, rel=1e-10)
    sines = opaque(lambda t, u, p: np.sin(u), "x y")
    one_by_one = opaque(lambda t, u, p: [math.sin(u.x), math.sin(u[1])], "x y")
    assert propagate(sines, [0, 1.0], [1.0, 2.0], []).states == pytest.approx(
        propagate(one_by_one, [0, 1.0], [1.0, 2.0], []).states, rel=1e-12
    )


def test_one_state_may_be_returned_without_brackets():
    lanes = propagate(opaque(lambda t, u, p: -u.x), [0.0, 1.0], [1.0], [])
    assert lanes.states[0, 1, 0] == pytest.approx(math.exp(-1), rel=1e-11)


@pytest.mark.parametrize(
    "returned", [(1.0,), (1.0, 2.0, 3.0), 1.0, [[1.0, 2.0]], (1.0, [2.0, 3.0]), None, "ab", ("a", "b")]
)
def test_the_wrong_shape_raises_and_names_the_model(returned):
    made = opaque(lambda t, u, p: returned, "x y")
    with pytest.raises(
        InputError, match=r"made: 2 states \(x y\) but the function returned .*one number per state"
    ):
        propagate(made, [0.0, 1.0], [1.0, 1.0], [])


def test_a_mistyped_name_raises_with_the_nearest():
    with pytest.raises(InputError, match=r"made: no parameter 'rat'; did you mean 'rate'\?"):
        propagate(opaque(lambda t, u, p: -p.rat * u.x, parameters="rate"), [0.0, 1.0], [1.0], [1.0])


def sink(t, u, p):
    """x' = -1, and a function that fails below p.wall, each kind in its own way."""
    if u.x < p.wall:
        match int(p.kind):
            case 0:
                return 1.0 / (u.x - u.x)
            case 1:
                return math.sqrt(u.x - 10.0)
            case 2:
                return float("nan")
            case 3:
                return math.exp(1e4)
            case 4:
                return (u.x - 10.0) ** 0.5
    return -1.0


CAUSES = [
    "ZeroDivisionError: float division by zero",
    "ValueError: math domain error",
    "the function returned a value that is not finite",
    "OverflowError: math range error",
    "the function returned a complex number",
]


def test_errors_of_the_function_are_failures_of_its_lane_with_their_own_cause():
    """All kinds at once, one lane each, and one that never reaches the wall."""
    made = opaque(sink, parameters="wall kind")
    parameters = [[0.5, kind] for kind in range(5)] + [[-9.0, 0]]
    lanes = propagate(made, [0.0, 0.25, 1.0], [1.0], parameters, sensitivities=True)
    assert [failure.lane for failure in lanes.failures] == [0, 1, 2, 3, 4]
    assert [failure.cause for failure in lanes.failures] == CAUSES
    for failure in lanes.failures:
        assert failure.outcome is Outcome.NOT_FINITE
        assert failure.time == pytest.approx(0.5, abs=1e-4)  # displaced neighbours reach the wall first
        assert lanes.states[failure.lane, 1, 0] == pytest.approx(0.75, rel=1e-12)
        assert np.isnan(lanes.states[failure.lane, 2, 0])
    assert lanes.states[5, :, 0] == pytest.approx([1.0, 0.75, 0.0], abs=1e-12)


def test_a_failure_at_the_start():
    made = opaque(sink, parameters="wall kind")
    lanes = propagate(made, [0.0, 1.0], [1.0], [[2.0, 0], [2.0, 1]])
    assert [(f.time, f.outcome, f.cause) for f in lanes.failures] == [
        (0.0, Outcome.NOT_FINITE, CAUSES[0]),
        (0.0, Outcome.NOT_FINITE, CAUSES[1]),
    ]


def test_an_opaque_map():
    def tent(t, u, p):
        return 2 * u.x if u.x < 0.5 else p.a * (1 - u.x)

    lanes = propagate(
        opaque(tent, parameters="a", kind="map"), [0, 1, 2, 3], [0.3], [2.0], sensitivities=True
    )
    assert lanes.states[0, :, 0] == pytest.approx([0.3, 0.6, 0.8, 0.4])
    assert lanes.by_start[0, :, 0, 0] == pytest.approx([1.0, 2.0, -4.0, 8.0], rel=1e-8)
    assert lanes.by_parameters[0, :, 0, 0] == pytest.approx([0.0, 0.0, 0.4, 0.2 - 2 * 0.4], rel=1e-7)
