"""Outputs inside a step are as good as steps that end there."""

import numpy as np
import pytest

from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find

SYSTEMS = ("henon_heiles", "pendulum", "quadratic", "pendulum_driven")  # quadratic: tangents by quadrature
FIELDS = ("states", "by_start", "by_parameters")


def example_of(name):
    made = find(name)
    example = made.examples[0]
    return made, np.array(list(example.start.values())), np.array(list(example.parameters.values()))


@pytest.mark.parametrize("name", SYSTEMS)
def test_500_outputs_inside_equal_paths_that_end_there(name):
    """To 1e-14 (states) and 1e-13 (tangents) times growth, relative to the maximum along the path."""
    made, start, parameters = example_of(name)
    if name == "pendulum_driven":
        parameters[0] = 6.88e-4  # with kinks
    end = {"quadratic": 1.0, "pendulum_driven": 1.5}.get(name, 10.0)
    times = np.linspace(0.0, end, 501)
    dense = propagate(made, times, start, parameters, sensitivities=True)
    some = np.arange(3, 501, 7)
    pairs = np.column_stack([np.zeros(len(some)), times[some]])
    single = propagate(made, pairs, start, parameters, sensitivities=True)
    assert dense.failures == single.failures == ()
    assert dense.steps[0] < 400  # many outputs share a step
    growth = max(1.0, float(np.abs(dense.by_start).max()))
    for field, bound in zip(FIELDS, (1e-14, 1e-13, 1e-13), strict=True):
        inside, ending = getattr(dense, field)[0, some], getattr(single, field)[:, 1]
        scale = np.abs(getattr(dense, field)).max(axis=(0, 1))
        assert (np.abs(inside - ending) <= bound * growth * np.maximum(scale, 1e-3)).all(), field


def test_outputs_do_not_change_the_steps():
    """A lane with 2 and with 500 outputs: the same steps, the same end, to the last bit."""
    made, start, parameters = example_of("henon_heiles")
    few = propagate(made, [0.0, 10.0], start, parameters, sensitivities=True)
    many = propagate(made, np.linspace(0.0, 10.0, 500), start, parameters, sensitivities=True)
    assert few.steps[0] == many.steps[0]
    for field in FIELDS:
        assert np.array_equal(getattr(few, field)[:, -1], getattr(many, field)[:, -1])


def test_each_lane_has_its_own_times():
    """Eleven lanes, seeds 1..11, with start times other than zero in a driven system."""
    made, start, parameters = example_of("driven_pendulum")
    times = np.array([np.sort(np.random.default_rng(seed).uniform(-2, 5, 30)) for seed in range(1, 12)])
    together = propagate(made, times, start, parameters, sensitivities=True)
    assert together.failures == ()
    for lane in range(11):
        alone = propagate(made, times[lane], start, parameters, sensitivities=True)
        for field in FIELDS:
            assert np.array_equal(getattr(alone, field)[0], getattr(together, field)[lane])


def test_outputs_at_neighbouring_numbers():
    """Times that differ in the last bit are different outputs of the same state."""
    made, start, parameters = example_of("pendulum")
    t = 1.0
    times = [0.0, t, np.nextafter(t, 2), np.nextafter(np.nextafter(t, 2), 2), 2.0]
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    assert np.ptp(lanes.states[0, 1:4], axis=0).max() <= 1e-15


@pytest.mark.parametrize("sensitivities", [True, False])
def test_the_start_time_alone(sensitivities):
    """T = 1: the start, unit tangents, no steps."""
    made, start, parameters = example_of("henon_heiles")
    lanes = propagate(made, [3.0], [start, 2 * start], parameters, sensitivities=sensitivities)
    assert lanes.failures == ()
    assert lanes.states.shape == (2, 1, 4)
    assert np.array_equal(lanes.states[:, 0], [start, 2 * start])
    assert (lanes.steps == 0).all()
    if sensitivities:
        assert np.array_equal(lanes.by_start[:, 0], [np.eye(4)] * 2)
        assert (lanes.by_parameters == 0.0).all()


def test_long_times_far_from_zero_lose_nothing():
    """An autonomous system from t = 1e6: the clock is kept with what its last bit cannot hold."""
    made, start, parameters = example_of("henon_heiles")
    near = propagate(made, [0.0, 8.0], start, parameters)
    far = propagate(made, [1e6, 1e6 + 8.0], start, parameters)
    assert np.abs(near.states - far.states).max() <= 1e-14
