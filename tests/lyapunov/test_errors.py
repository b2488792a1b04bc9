"""Errors of means: series with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit.lyapunov.errors import means

RUNS = 400


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def autoregressive(seed: int, lanes: int, blocks: int, memory: float) -> np.ndarray:
    """x_b = memory x_{b-1} + noise, from its stationary distribution; the variance of the noise is 1."""
    draws = noise(seed, lanes, blocks)
    values = np.empty_like(draws)
    values[:, 0] = draws[:, 0] / np.sqrt(1.0 - memory**2)
    for b in range(1, blocks):
        values[:, b] = memory * values[:, b - 1] + draws[:, b]
    return values


def coverage(series: list[np.ndarray], truth: float) -> float:
    found = [means(each[..., None]) for each in series]
    return float(np.mean([abs(each.values[0] - truth) <= each.half_widths[0] for each in found]))


@pytest.mark.parametrize(("lanes", "blocks"), [(1, 1000), (3, 300), (8, 100), (40, 30)])
@pytest.mark.parametrize("memory", [-0.6, 0.0, 0.8])
def test_intervals_of_autoregressive_series_hold_the_mean(lanes: int, blocks: int, memory: float) -> None:
    covered = coverage(
        [0.3 + autoregressive(seed, lanes, blocks, memory) for seed in range(1, RUNS + 1)], 0.3
    )
    assert 0.92 <= covered <= 0.985


@pytest.mark.parametrize(("lanes", "blocks"), [(1, 4000), (8, 500)])
def test_the_error_is_that_of_the_long_run_variance(lanes: int, blocks: int) -> None:
    """The variance of a mean of n values of memory m tends to 1 / (n (1 - m)^2)."""
    errors = [means(autoregressive(seed, lanes, blocks, 0.7)[..., None]).errors[0] for seed in range(1, 101)]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0 / 0.3 / np.sqrt(lanes * blocks), rel=0.07)


def test_ends_of_batches_do_not_count() -> None:
    """Increments of a stationary series (log |f|) plus noise: batch means would be 3 times too large."""
    widths, off = [], []
    for seed in range(1, 201):
        bounded = np.diff(noise(seed, 1, 1001), axis=1)
        found = means((bounded + 0.02 * noise(seed + 1000, 1, 1000))[..., None])
        widths.append(found.half_widths[0])
        off.append(found.values[0])
    ratio = np.mean(widths) / (1.96 * np.std(off))
    assert 1.0 < ratio < 2.0


def test_correlation_as_long_as_the_run_widens_the_interval() -> None:
    """Two levels, and changes between them that are rare against the run."""
    found = []
    for seed in range(1, 201):
        rng = np.random.default_rng(seed)
        switches = rng.random(3000) < 0.002
        level = (np.cumsum(switches) + rng.integers(2)) % 2
        found.append(means((level + 0.1 * rng.standard_normal(3000))[None, :, None]))
    assert np.mean([each.slow[0] for each in found]) > 0.6
    assert np.mean([abs(each.values[0] - 0.5) <= each.half_widths[0] for each in found]) > 0.88


def test_uncorrelated_series_are_not_called_slow() -> None:
    slow = [means(noise(seed, 1, 1000, 1)).slow[0] for seed in range(1, 201)]
    assert np.mean(slow) < 0.2


def test_the_spread_between_trajectories_counts() -> None:
    """Within each of them nothing happens; they differ."""
    levels = noise(5, 30)
    found = means(np.repeat(levels[:, None, None], 100, axis=1))
    assert found.errors[0] == pytest.approx(levels.std(ddof=1) / np.sqrt(30), rel=1e-12)
    assert found.half_widths[0] == pytest.approx(2.0452296 * found.errors[0], rel=1e-6)


def test_without_a_second_value_nothing_is_known() -> None:
    found = means(np.ones((1, 1, 2)))
    assert np.isnan(found.errors).all()
    assert np.isnan(found.half_widths).all()
    assert np.isfinite(means(noise(1, 1, 2, 1)).errors).all()
    assert np.isfinite(means(noise(1, 2, 1, 1)).errors).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lanes=st.integers(1, 5),
    blocks=st.integers(2, 200),
    scale=st.floats(1e-6, 1e6),
    shift=st.floats(-10.0, 10.0),
)
def test_errors_scale_and_do_not_see_the_level(
    seed: int, lanes: int, blocks: int, scale: float, shift: float
) -> None:
    series = noise(seed, lanes, blocks, 2)
    plain, moved = means(series), means(scale * (series + shift))
    np.testing.assert_allclose(moved.values, scale * (plain.values + shift), rtol=1e-9, atol=scale * 1e-9)
    np.testing.assert_allclose(moved.errors, scale * plain.errors, rtol=1e-6)
    np.testing.assert_array_equal(moved.slow, plain.slow)
