"""Compiled maps: the numbers of the plain iteration, quickly."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.records import Outcome


@pytest.mark.parametrize("name", ["henon_map", "fibonacci_trace"])
def test_states_and_tangents_are_those_of_the_plain_iteration(name: str) -> None:
    discrete = find(name)
    example = discrete.examples[0]
    rng = np.random.default_rng(1)
    starts = np.array(list(example.start.values())) * (
        1 + 1e-3 * rng.standard_normal((11, len(discrete.states)))
    )
    arguments = (discrete, [0, 1, 5, 20], starts, list(example.parameters.values()))
    fast = propagate(*arguments, sensitivities=True)
    slow = propagate(*arguments, sensitivities=True, method="extrapolation")
    for part in ("states", "by_start", "by_parameters"):
        expected = getattr(slow, part)
        np.testing.assert_allclose(
            getattr(fast, part), expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max()
        )
    np.testing.assert_array_equal(fast.steps, 20)


def test_the_invariant_of_the_trace_map_holds_and_a_lane_does_not_see_its_neighbours() -> None:
    trace = find("fibonacci_trace")
    starts = np.cos(2 * np.pi * np.array([[0.1, 0.237, 0.337], [0.2, 0.15, 0.35], [0.05, 0.31, 0.36]]))
    together = propagate(trace, np.arange(15), starts, [0.0, 0.0, 2.0]).states
    x, y, z = np.moveaxis(together, -1, 0)
    np.testing.assert_allclose(x**2 + y**2 + z**2 - 2 * x * y * z, 1.0, atol=1e-8)
    for lane in range(3):
        alone = propagate(trace, np.arange(15), starts[lane], [0.0, 0.0, 2.0]).states[0]
        np.testing.assert_array_equal(alone, together[lane])


def test_an_escaping_lane_is_reported_and_the_others_finish() -> None:
    lanes = propagate(find("henon_map"), [0, 3, 50], [[0.1, 0.1], [10.0, 10.0], [np.nan, 0.0]], [1.4, 0.3])
    assert [(failure.lane, failure.outcome) for failure in lanes.failures] == [
        (1, Outcome.NOT_FINITE),
        (2, Outcome.BAD_INPUT),
    ]
    assert np.isfinite(lanes.states[0]).all()
    assert np.isnan(lanes.states[1:, 2]).all()
    budget = propagate(find("henon_map"), [0, 50], [0.1, 0.1], [1.4, 0.3], max_steps=10)
    assert budget.failures[0].outcome is Outcome.STEP_BUDGET
