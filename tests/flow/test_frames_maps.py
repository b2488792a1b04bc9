"""Frames of maps: against the readable body, known determinants, and to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.flow.frames import carry, grow, start_bundle
from hpcfit.flow.frames_reference import grow_by_intervals
from hpcfit.models.catalogue import find
from hpcfit.models.define import model


@model(states=[f"x{i}" for i in range(6)], parameters="a", kind="map")
def ring(t, u, p):
    return tuple(1 - p.a * u[i] ** 2 + 0.2 * u[(i + 1) % 6] + 0.1 * u[i - 1] for i in range(6))


@pytest.mark.parametrize(
    ("made", "start", "parameters"),
    [
        (find("henon_map"), [0.1, 0.1], [1.4, 0.3]),
        (find("fibonacci_trace"), [0.8, 0.1, -0.5], [0.0, 0.0, 2.0]),
        (ring, [0.1, 0.2, 0.3, 0.4, 0.15, 0.25], [1.3]),
    ],
)
def test_blocks_are_those_of_the_readable_body(made, start, parameters) -> None:
    bundle = start_bundle(made, [start] * 3, [parameters])
    options = {"blocks": 3, "block": 12, "interval": 5}
    fast, slow = grow(made, bundle, **options), grow_by_intervals(made, bundle, **options)
    np.testing.assert_allclose(fast.logarithms, slow.logarithms, atol=1e-10)
    np.testing.assert_allclose(fast.divergence, slow.divergence, atol=1e-10)
    np.testing.assert_array_equal(fast.bundle.states, slow.bundle.states)
    np.testing.assert_array_equal(fast.steps, 36)


def test_the_henon_map_contracts_by_its_parameter_and_has_the_known_exponents() -> None:
    """0.41922 and -1.62319 (Sprott 2003), eight trajectories of 10^5 iterations."""
    made = find("henon_map")
    starts = np.array([0.1, 0.1]) + 1e-2 * np.arange(8)[:, None]
    growth = grow(made, start_bundle(made, starts, [1.4, 0.3]), blocks=10, block=10_000, interval=5)
    np.testing.assert_allclose(growth.divergence, 10_000 * np.log(0.3), rtol=1e-13)
    np.testing.assert_allclose(growth.logarithms.sum(axis=2), growth.divergence, rtol=1e-12)
    exponents = growth.logarithms.mean(axis=(0, 1)) / 10_000
    spread = growth.logarithms.std(axis=(0, 1))[0] / 10_000 / np.sqrt(80)
    assert abs(exponents[0] - 0.41922) < 4 * spread + 1e-5
    assert spread < 1e-3


def test_a_trajectory_has_the_same_bits_in_company_and_in_any_division() -> None:
    made = find("henon_map")
    starts = np.array([0.1, 0.1]) + 1e-2 * np.arange(11)[:, None]
    options = {"block": 40, "interval": 7}
    together = grow(made, start_bundle(made, starts, [1.4, 0.3]), blocks=3, **options)
    alone = grow(made, start_bundle(made, starts[9], [1.4, 0.3]), blocks=1, **options)
    rest = grow(made, alone.bundle, blocks=2, **options)
    np.testing.assert_array_equal(alone.logarithms[0, 0], together.logarithms[9, 0])
    np.testing.assert_array_equal(rest.logarithms[0], together.logarithms[9, 1:])
    np.testing.assert_array_equal(rest.bundle.frames[0], together.bundle.frames[9])


def test_a_map_that_escapes_is_reported_and_a_flat_one_has_no_volume() -> None:
    @model(states="x", parameters="r", kind="map")
    def logistic(t, u, p):
        return (p.r * u.x * (1 - u.x),)

    bundle = start_bundle(logistic, [[0.3], [1.2]], [[3.9], [3.9]])
    growth = grow(logistic, bundle, blocks=2, block=10, interval=1)
    (failure,) = growth.failures
    assert failure.lane == 1
    assert np.isfinite(growth.logarithms[0]).all()
    np.testing.assert_allclose(growth.logarithms[0, :, 0], growth.divergence[0], rtol=1e-12)

    @model(states="x y", parameters="", kind="map")
    def flat(t, u, p):
        return u.x, u.x

    (lost,) = grow(
        flat, start_bundle(flat, [[0.5, 0.5]], np.zeros((1, 0))), blocks=1, block=4, interval=1
    ).failures
    assert "zero" in lost.cause
    first = grow(
        flat,
        start_bundle(flat, [[0.5, 0.5]], np.zeros((1, 0)), [[1.0], [0.0]]),
        blocks=1,
        block=4,
        interval=1,
    )
    assert first.divergence[0, 0] == -np.inf
    np.testing.assert_allclose(first.logarithms[0, 0, 0], 0.5 * np.log(2), rtol=1e-14)


def test_columns_carried_apart_and_128_bits() -> None:
    made = find("henon_map")
    bundle = start_bundle(made, [0.1, 0.1], [1.4, 0.3])
    carried = carry(made, bundle, np.zeros(1), block=10, interval=4)
    slow = carry(made, bundle, np.zeros(1), block=10, interval=4, method="extrapolation")
    np.testing.assert_allclose(carried.bundle.frames, slow.bundle.frames, rtol=1e-12)
    assert carried.reached[0] == slow.reached[0] == 4.0
    assert carry(made, carried.bundle, np.array([8.0]), block=10, interval=4).reached[0] == 10.0
    options = {"blocks": 2, "block": 20, "interval": 3}
    exact = grow(made, bundle, method="taylor128", **options)
    np.testing.assert_allclose(grow(made, bundle, **options).logarithms, exact.logarithms, atol=1e-8)
    np.testing.assert_allclose(exact.logarithms.sum(axis=2), 20 * np.log(0.3), rtol=1e-14)
