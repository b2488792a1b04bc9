"""Noise belongs to the seed, the member and the quantity, and has the size that was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.ensemble.noise import add_noise, standard_deviations
from hpcfit.records import Noise

N = 200_000
WAVE = np.stack([np.sin(np.linspace(0.0, 60.0, N)), 5.0 + np.cos(np.linspace(0.0, 60.0, N))], axis=1)


def errors(noise: Noise, seed: int = 1) -> np.ndarray:
    noisy, sigma = add_noise(WAVE, ("x", "y"), (0, 1), noise, seed)
    return (noisy - WAVE) / sigma


def test_absolute_sizes_by_number_and_by_name() -> None:
    np.testing.assert_array_equal(
        standard_deviations(WAVE, ("x", "y"), Noise(sd=0.3)), np.full(WAVE.shape, 0.3)
    )
    by_name = standard_deviations(WAVE, ("x", "y"), Noise(sd={"y": 2.0}))
    np.testing.assert_array_equal(by_name[0], [0.0, 2.0])


def test_a_fraction_is_of_the_mean_modulus_of_each_component() -> None:
    sigma = standard_deviations(WAVE, ("x", "y"), Noise(fraction=0.1))
    np.testing.assert_allclose(sigma[17], 0.1 * np.abs(WAVE).mean(axis=0), rtol=1e-14)


def test_proportional_noise_follows_the_signal() -> None:
    np.testing.assert_allclose(
        standard_deviations(WAVE, ("x", "y"), Noise(proportional=0.2)), 0.2 * np.abs(WAVE), rtol=1e-14
    )


def test_kept_noise_is_standard_normal() -> None:
    z = errors(Noise(sd=0.3))
    assert np.all(np.abs(z.mean(axis=0)) < 5 / np.sqrt(N))
    assert np.all(np.abs(z.std(axis=0) - 1.0) < 5 / np.sqrt(2 * N))
    assert np.abs(np.corrcoef(z.T)[0, 1]) < 5 / np.sqrt(N)


@pytest.mark.parametrize("strip", ["redraw", "discard"])
def test_nothing_remains_beyond_three_sigma_and_the_sd_becomes_0987(strip: str) -> None:
    z = errors(Noise(sd=0.3, beyond_3_sigma=strip))
    lost = np.isnan(z).mean()
    assert np.nanmax(np.abs(z)) <= 3.0
    assert abs(np.nanstd(z) - 0.98658) < 0.003  # sqrt(1 - 6 phi(3) / (2 Phi(3) - 1))
    assert lost == 0.0 if strip == "redraw" else abs(lost - 0.0027) < 0.0006


def test_a_quantity_has_the_same_noise_whatever_else_is_observed() -> None:
    both, _ = add_noise(WAVE, ("x", "y"), (0, 1), Noise(sd=1.0), seed=4, member=2)
    only, _ = add_noise(WAVE[:, 1:], ("y",), (1,), Noise(sd=1.0), seed=4, member=2)
    np.testing.assert_array_equal(both[:, 1:], only)


def test_seeds_and_members_differ() -> None:
    draws = [add_noise(WAVE[:5], ("x", "y"), (0, 1), Noise(sd=1.0), s, m)[0] for s in (1, 2) for m in (0, 1)]
    for i in range(4):
        for j in range(i):
            assert not np.array_equal(draws[i], draws[j])
