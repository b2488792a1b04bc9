"""Exponents that vanish: bounded growth and growth like ln t, against sums of chances and drift."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.lyapunov.zeros import LEAST_BOUND, bound, vanishing

BLOCKS = 4000


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def increments(accumulated: np.ndarray) -> np.ndarray:
    return np.diff(accumulated, axis=-1).reshape(-1, accumulated.shape[-1] - 1, 1)


def stationary(seed: int, lanes: int = 1, blocks: int = BLOCKS) -> np.ndarray:
    """Bounded growth: log |f| along an orbit, with memory."""
    draws = noise(seed, lanes, blocks + 1)
    for b in range(1, blocks + 1):
        draws[:, b] = 0.7 * draws[:, b - 1] + draws[:, b]
    return draws


@pytest.mark.parametrize("lanes", [1, 5])
@pytest.mark.parametrize("blocks", [300, BLOCKS])
def test_bounded_growth_vanishes(lanes: int, blocks: int) -> None:
    assert all(vanishing(increments(stationary(seed, lanes, blocks)))[0] for seed in range(1, 51))


@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_growth_like_that_of_time_vanishes(scale: float, sign: float) -> None:
    slow = sign * np.log(1.0 + 0.5 * np.arange(BLOCKS + 1))
    assert all(vanishing(increments(slow + scale * stationary(seed)))[0] for seed in range(1, 51))


def test_nothing_at_all_vanishes() -> None:
    assert vanishing(np.zeros((2, 5, 3))).all()
    assert vanishing(1e-14 * noise(1, 2, 1000, 3)).all()


@pytest.mark.parametrize("lanes", [1, 4])
def test_sums_of_chances_do_not_vanish(lanes: int) -> None:
    found = [vanishing(noise(seed, lanes, BLOCKS, 1))[0] for seed in range(1, 201)]
    assert np.mean(found) < 0.01


@pytest.mark.parametrize("drift", [-0.02, 0.01, 1.0])
def test_exponents_do_not_vanish(drift: float) -> None:
    drifting = drift * np.arange(BLOCKS + 1)
    assert not any(vanishing(increments(drifting + stationary(seed)))[0] for seed in range(1, 51))


def test_exact_exponents_of_linear_systems_do_not_vanish() -> None:
    assert vanishing(np.full((1, 500, 3), [0.1, 0.0, -0.1])).tolist() == [False, True, False]


def test_the_bound_is_the_most_that_was_reached() -> None:
    accumulated = np.array([[0.0, 1.0, -7.5, 2.0], [0.0, 0.1, 0.2, 0.1]])
    assert bound(increments(accumulated)) == [7.5]
    assert bound(increments(accumulated[1:])) == [LEAST_BOUND]
