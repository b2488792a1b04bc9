"""Outputs are read off the trajectory: they do not change it, and each lane may have its own."""

import numpy as np
import pytest

from hpcfit.models.catalogue import find
from hpcfit.records import InputError
from tests.flow.extrapolation_lanes import propagate

TOLERANCE = 1e-12


def example_of(name):
    made = find(name)
    example = made.examples[0]
    return made, list(example.start.values()), list(example.parameters.values()), example.duration


@pytest.mark.parametrize("name", ["lorenz", "rossler", "henon_heiles", "glycolytic", "chua"])
def test_more_outputs_do_not_change_the_others(name):
    """At common times: the local tolerance times the growth of the tangents.

    A step is repeated shorter where its polynomial errs more than the step itself, so not a few ulp.
    """
    made, start, parameters, duration = example_of(name)
    few = np.linspace(0, duration / 2, 9)
    many = np.linspace(0, duration / 2, 161)
    sparse = propagate(made, few, start, parameters, sensitivities=True, tolerance=TOLERANCE)
    dense = propagate(made, many, start, parameters, sensitivities=True, tolerance=TOLERANCE)
    growth = np.maximum.accumulate(np.abs(sparse.by_start[0]).max(axis=(1, 2)))
    size = np.abs(dense.states[0]).max()
    difference = np.abs(dense.states[0, ::20] - sparse.states[0]).max(axis=1)
    assert (difference <= 30 * TOLERANCE * size * growth).all()


def test_outputs_in_one_step_leave_the_step_as_it_is():
    """Where no step is repeated, the last state has the same bits with and without outputs before it."""
    made, start, parameters, _ = example_of("henon_heiles")
    alone = propagate(made, [0.0, 10.0], start, parameters)
    busy = propagate(made, [0.0, 1e-9, 0.5, 0.5000001, 9.9999, 10.0], start, parameters)
    assert busy.steps.tolist() == alone.steps.tolist()
    assert np.array_equal(busy.states[0, -1], alone.states[0, -1])


def test_outputs_inside_steps_are_as_good_as_ends_of_steps():
    """Each output against a run that ends there: 100 tolerances times growth."""
    made, start, parameters, _ = example_of("lorenz")
    times = np.linspace(0.0, 1.0, 23)
    dense = propagate(made, times, start, parameters, sensitivities=True, tolerance=TOLERANCE)
    ends = np.column_stack([np.zeros(22), times[1:]])
    single = propagate(made, ends, start, parameters, sensitivities=True, tolerance=TOLERANCE)
    growth = np.maximum.accumulate(np.abs(dense.by_start[0, 1:]).max(axis=(1, 2)))
    size = np.abs(dense.states).max()
    assert (
        np.abs(dense.states[0, 1:] - single.states[:, 1]).max(axis=1) <= 30 * TOLERANCE * size * growth
    ).all()
    error = np.abs(dense.by_start[0, 1:] - single.by_start[:, 1]).max(axis=(1, 2))
    assert (error <= 100 * TOLERANCE * growth**2).all()


def test_each_lane_may_have_times_of_its_own():
    made, start, parameters, _ = example_of("rossler")
    times = np.array([[0.0, 1.0, 2.0, 7.0], [0.0, 0.1, 0.2, 0.3], [-3.0, 2.0, 2.5, 12.0]])
    together = propagate(made, times, start, parameters, sensitivities=True)
    assert np.array_equal(together.times, times)
    for lane in range(3):
        alone = propagate(made, times[lane], start, parameters, sensitivities=True)
        assert np.array_equal(together.states[lane], alone.states[0])
        assert np.array_equal(together.by_parameters[lane], alone.by_parameters[0])


def test_outputs_may_be_as_close_as_doubles_allow():
    made, start, parameters, _ = example_of("lorenz")
    t = 0.25
    times = [0.0, t, np.nextafter(t, 1), np.nextafter(np.nextafter(t, 1), 1), 0.5]
    lanes = propagate(made, times, start, parameters)
    assert lanes.failures == ()
    assert np.abs(np.diff(lanes.states[0, 1:4], axis=0)).max() <= 1e-11 * np.abs(lanes.states).max()


def test_a_single_time_gives_the_start():
    made, start, parameters, _ = example_of("lorenz")
    lanes = propagate(made, [0.0], start, parameters, sensitivities=True)
    assert lanes.states.tolist() == [[start]]
    assert lanes.failures == ()
    assert lanes.steps.tolist() == [0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"times": [0.0, 2.0, 1.0]}, r"lorenz: times must increase: t\[2\] = 1 after t\[1\] = 2"),
        ({"times": [0.0, 0.0]}, "times must increase"),
        ({"times": []}, "no times"),
        ({"times": np.zeros((1, 1, 2))}, r"times have shape \(1, 1, 2\)"),
        ({"starts": [1.0, 2.0]}, r"starts have shape \(1, 2\), but the model has 3 of them"),
        ({"parameters": [1.0]}, r"parameters have shape \(1, 1\), but the model has 3 of them"),
        (
            {"starts": np.ones((2, 3)), "parameters": np.ones((3, 3))},
            "2 lanes of starts, but 3 lanes elsewhere",
        ),
        ({"method": "extrapolatoin"}, r"did you mean 'extrapolation'\?"),
        ({"tolerance": 0.0}, "tolerance 0.0 is outside"),
        ({"tolerance": float("nan")}, "tolerance nan is outside"),
    ],
)
def test_a_broken_promise_raises_and_names_it(words, message):
    given = {"times": [0.0, 1.0], "starts": np.ones(3), "parameters": np.ones(3)} | words
    with pytest.raises(InputError, match=message):
        propagate(find("lorenz"), **given)
