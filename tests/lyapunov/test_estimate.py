"""From growth to exponents: analytic systems first, then synthetic growth, then Lorenz."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import model
from hpcfit.flow.frames import grow, start_bundle
from hpcfit.lyapunov.convergence import history, log_spaced, reached
from hpcfit.lyapunov.estimate import estimate
from hpcfit.lyapunov.starts import orthonormal_frame
from hpcfit.models.catalogue import find


@model(states="x y z", parameters="a b c")
def saddle(t, u, p):
    """x' = a x + y, y' = b y + z, z' = c z: exponents a, b, c in decreasing order."""
    return p.a * u.x + u.y, p.b * u.y + u.z, p.c * u.z


@model(states="x y", parameters="m", kind="map")
def cat(t, u, p):
    """Arnold's cat without the torus: exponents +- ln ((3 + sqrt 5) / 2)."""
    return 2.0 * u.x + u.y, p.m * u.x + u.y


@model(states="x y", parameters="w")
def circle(t, u, p):
    """A limit cycle of radius 1: exponents 0 and -2."""
    rest = 1.0 - u.x**2 - u.y**2
    return u.x * rest - p.w * u.y, u.y * rest + p.w * u.x


def growth(equations, start, parameters, blocks, block, interval) -> np.ndarray:
    n = len(equations.states)
    bundle = start_bundle(equations, start, parameters, orthonormal_frame(n))
    return grow(equations, bundle, blocks=blocks, block=block, interval=interval).logarithms


def test_linear_flow() -> None:
    grown = growth(saddle, [0.0, 0.0, 0.0], [0.3, -0.1, -1.0], 400, 1.0, 1.0)
    found = estimate(grown, 1.0)
    np.testing.assert_allclose(found.exponents, [0.3, -0.1, -1.0], atol=5.0 / 400)
    assert (np.abs(found.exponents - [0.3, -0.1, -1.0]) <= found.half_widths).all()
    assert found.zeros == 0
    assert not found.regular.any()


def test_cat_map() -> None:
    grown = growth(cat, [0.1, 0.2], [1.0], 300, 1.0, 1.0)
    found = estimate(grown, 1.0)
    exact = np.log((3.0 + np.sqrt(5.0)) / 2.0)
    np.testing.assert_allclose(found.exponents, [exact, -exact], atol=2.0 / 300)
    assert (np.abs(found.exponents - [exact, -exact]) <= found.half_widths).all()


def test_limit_cycle() -> None:
    grown = growth(circle, [1.0, 0.0], [1.7], 500, 1.0, 0.5)
    found = estimate(grown, 1.0)
    assert found.regular.all()
    assert found.zeros == 1
    assert np.isnan(found.errors[0])
    assert found.bounds[0] == pytest.approx(1.0 / 500)  # C = 1 at least
    assert found.exponents[1] == pytest.approx(-2.0, abs=0.01)
    assert abs(found.exponents[1] + 2.0) <= found.half_widths[1]
    assert found.warnings == ()


def test_lorenz() -> None:
    """Against 0.90564, 0, -14.57231 (Sprott 2003); the exponents add up to the divergence."""
    grown = growth(find("lorenz"), [[1.0, 1.0, 20.0], [-3.0, 2.0, 25.0]], [10.0, 28.0, 8 / 3], 2000, 1.0, 0.2)
    found = estimate(grown[:, 50:], 1.0)
    known = np.array([0.90564, 0.0, -14.57231])
    assert found.zeros == 1
    assert (np.abs(found.exponents - known) <= 1.5 * found.half_widths).all()
    assert (found.errors[[0, 2]] < 0.01).all()
    assert found.exponents.sum() == pytest.approx(-41.0 / 3.0, rel=1e-12)


def chaotic(seed: int, lanes: int, blocks: int) -> np.ndarray:
    """Pairs +-0.05 with chances, and two exponents that vanish; the unit of time is a block of 10."""
    rng = np.random.default_rng(seed)
    first = 10.0 * (0.05 + 0.05 * rng.standard_normal((lanes, blocks)))
    ends = np.diff(rng.standard_normal((lanes, blocks + 1)), axis=1)
    return np.stack([first, ends, -ends, -first], axis=2)


def torus(lanes: int, blocks: int) -> np.ndarray:
    slow = np.diff(np.log(1.0 + 3.0 * np.arange(blocks + 1)))
    return np.repeat(np.stack([slow, slow, -slow, -slow], axis=1)[None], lanes, axis=0)


def test_regular_and_failed_trajectories_are_not_averaged_in() -> None:
    good, broken = chaotic(1, 3, 1000), chaotic(2, 1, 1000)
    broken[:, 400:] = np.nan
    found = estimate(np.concatenate([torus(2, 1000), good, broken]), 10.0)
    assert found.regular.tolist() == [True, True, False, False, False, False]
    assert found.used.tolist() == [False, False, True, True, True, False]
    alone = estimate(good, 10.0)
    np.testing.assert_array_equal(found.exponents, alone.exponents)
    np.testing.assert_array_equal(found.errors, alone.errors)
    assert found.zeros == 2
    assert found.warnings == ("2 of 6 trajectories are regular and not in the means",)


def test_regular_trajectories_alone_have_bounds() -> None:
    found = estimate(torus(3, 1000), 10.0)
    assert found.regular.all()
    assert found.used.all()
    assert found.zeros == 4
    assert np.isnan(found.errors).all()
    np.testing.assert_allclose(found.bounds, np.log(3001.0) / 10_000.0, rtol=1e-12)
    assert (np.abs(found.exponents) <= found.bounds * (1 + 1e-12)).all()


def test_without_any_finished_trajectory_nothing_is_known() -> None:
    grown = chaotic(1, 2, 50)
    grown[:, 20:] = np.nan
    found = estimate(grown, 10.0)
    assert np.isnan(found.exponents).all()
    assert not found.used.any()
    assert not reached(found, 1.0, 50)


def test_an_orbit_that_sticks_is_told() -> None:
    """Four tenths of the run in a region where nothing grows, in few visits."""
    grown = chaotic(3, 1, 3200)
    for begin in (300, 1500, 2500):
        grown[:, begin : begin + 400] = 0.002 * np.random.default_rng(begin).standard_normal((1, 400, 4))
    said = " ".join(estimate(grown, 10.0).warnings)
    assert "the orbit sticks" in said
    assert "correlated" in said
    assert estimate(chaotic(3, 1, 3200), 10.0).warnings == ()


def test_trajectories_in_different_regions_are_told() -> None:
    grown = chaotic(4, 6, 500)
    grown[:3, :, 0] *= 2.0
    assert any("different regions" in text for text in estimate(grown, 10.0).warnings)
    assert not any("different regions" in text for text in estimate(chaotic(4, 6, 500), 10.0).warnings)


def test_few_blocks_are_told() -> None:
    assert "only 12 blocks" in estimate(chaotic(1, 1, 12), 10.0).warnings[0]


def test_history_ends_with_the_estimate_and_narrows() -> None:
    grown = chaotic(5, 2, 4000)
    found = estimate(grown, 10.0)
    way = history(grown, 10.0, found, points=20)
    assert way.times[-1] == 40_000.0
    np.testing.assert_array_equal(way.exponents[-1], found.exponents)
    np.testing.assert_array_equal(way.half_widths[-1], found.half_widths)
    assert (np.diff(way.times) > 0.0).all()
    assert way.half_widths[5, 0] > 3.0 * way.half_widths[-1, 0]


def test_log_spaced_counts() -> None:
    assert log_spaced(0, 10).tolist() == []
    assert log_spaced(1, 10).tolist() == [1]
    assert log_spaced(3, 10).tolist() == [3]
    counts = log_spaced(10_000, 30)
    assert counts[0] == 4
    assert counts[-1] == 10_000
    assert len(counts) == 30


def test_an_asked_error_is_reached_when_all_errors_are_small() -> None:
    grown = chaotic(6, 4, 2000)
    found = estimate(grown, 10.0)
    worst = np.nanmax(found.errors)
    assert reached(found, 1.01 * worst, 2000)
    assert not reached(found, 0.99 * worst, 2000)
    assert not reached(found, 1.0, 50)  # chance makes small errors of few blocks
    assert reached(estimate(torus(1, 1000), 10.0), 1e-3, 1000)
    assert not reached(estimate(torus(1, 1000), 10.0), 1e-4, 1000)
