"""Events: roots of a function along the path, to the last bits, each once, in the asked direction."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import InputError, model
from hpcfit.flow.propagate import propagate
from hpcfit.flow.taylor import Event
from hpcfit.models.catalogue import find
from hpcfit.models.graph import Symbol


@model(states="x v", parameters="w")
def oscillator(t, u, p):
    return u.v, -(p.w**2) * u.x


X = oscillator.quantity("x")


@pytest.mark.parametrize(
    ("direction", "first", "every"), [(1, 2 * np.pi, 2 * np.pi), (-1, np.pi, 2 * np.pi), (0, np.pi, np.pi)]
)
def test_zeros_of_a_sine_to_the_last_bit_over_thousands_of_periods(
    direction: int, first: float, every: float
) -> None:
    lanes = propagate(oscillator, [0.0, 2e4], [0.0, 1.0], [1.0], events=[Event(X, direction)])
    assert lanes.crossings is not None
    expected = np.arange(first, 2e4, every)
    found = lanes.crossings.times
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-15 * len(expected) ** 0.5)
    assert np.abs(lanes.crossings.states[:, 0]).max() < 1e-15


def test_a_start_on_the_surface_is_not_counted_and_outputs_do_not_matter() -> None:
    few = propagate(oscillator, [0.0, 10.0], [0.0, 1.0], [1.0], events=[Event(X)])
    many = propagate(oscillator, np.linspace(0.0, 10.0, 333), [0.0, 1.0], [1.0], events=[Event(X)])
    assert few.crossings is not None
    assert many.crossings is not None
    np.testing.assert_array_equal(few.crossings.times, many.crossings.times)
    np.testing.assert_allclose(few.crossings.times, np.pi * np.arange(1, 4), rtol=1e-15)


def test_close_pairs_and_touching_roots() -> None:
    """x - c meets the crest of the sine twice for c just below 1, once or never at 1, never above."""
    graph = oscillator.graph
    assert graph is not None
    for c, count in ((1 - 1e-10, 2), (1 + 1e-10, 0)):
        event = Event(graph.apply("subtract", X, c))
        lanes = propagate(oscillator, [0.0, 3.0], [0.0, 1.0], [1.0], events=[event])
        assert lanes.crossings is not None
        assert len(lanes.crossings.times) == count
        expected = [np.arcsin(c), np.pi - np.arcsin(c)] if count else []
        np.testing.assert_allclose(lanes.crossings.times, expected, atol=1e-10)


def test_events_of_a_lane_do_not_depend_on_other_lanes_or_other_events() -> None:
    lorenz = find("lorenz")
    graph = lorenz.graph
    assert graph is not None
    plane = Event(graph.apply("subtract", lorenz.quantity("z"), 40.0), -1)
    side = Event(lorenz.quantity("x"), 0)
    rng = np.random.default_rng(1)
    starts = np.array([5.0, 10.0, 30.0]) + rng.standard_normal((13, 3))
    times, values = [0.0, 20.0], [10.0, 46.0, 8 / 3]
    together = propagate(lorenz, times, starts, values, events=[plane, side]).crossings
    assert together is not None
    assert set(together.events) == {0, 1}
    for lane in range(13):
        alone = propagate(lorenz, times, starts[lane], values, events=[plane]).crossings
        assert alone is not None
        mine = (together.lanes == lane) & (together.events == 0)
        np.testing.assert_array_equal(alone.times, together.times[mine])
        np.testing.assert_array_equal(alone.states, together.states[mine])
        assert np.all(np.diff(together.times[together.lanes == lane]) >= 0)


def test_a_poincaré_section_of_hénon_heiles_lies_on_its_energy_surface() -> None:
    hénon_heiles = find("henon_heiles")
    section = Event(hénon_heiles.quantity("x1"), 1)
    found = propagate(
        hénon_heiles, [0.0, 1e4], [0.0, 0.0, 0.3, -0.41], [1.0, 1.0, -1.0], events=[section]
    ).crossings
    assert found is not None
    x1, x2, x3, x4 = found.states.T
    energy = (x3**2 + x4**2) / 2 + (x1**2 + x2**2 + 2 * x1**2 * x2 - 2 / 3 * x2**3) / 2
    assert len(found.times) > 1000
    np.testing.assert_allclose(energy, 0.12905, atol=1e-14)
    assert np.all(x3 > 0.0)


def test_events_that_depend_on_time_and_parameters() -> None:
    graph = oscillator.graph
    assert graph is not None
    stroboscope = Event(graph.apply("sin", graph.leaf("parameter", 0) * graph.leaf("time")), 1)
    found = propagate(oscillator, [0.0, 10.0], [0.3, 0.2], [2.0], events=[stroboscope]).crossings
    assert found is not None
    np.testing.assert_allclose(found.times, np.pi * np.arange(1, 4), rtol=1e-14)


def test_events_need_the_compiled_series() -> None:
    assert isinstance(X, Symbol)
    with pytest.raises(InputError, match='use method = "taylor"'):
        propagate(oscillator, [0.0, 1.0], [0.0, 1.0], [1.0], events=[Event(X)], method="extrapolation")
