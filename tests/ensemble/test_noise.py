"""Noise belongs to the seed, the member and the quantity, and has the size that was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit.ensemble.noise import BEYOND_3_SIGMA, add_noise, noisy_members, standard_deviations
from hpcfit.records import Noise

N = 200_000
WAVE = np.stack([np.sin(np.linspace(0.0, 60.0, N)), 5.0 + np.cos(np.linspace(0.0, 60.0, N))], axis=1)


def errors(noise: Noise, seed: int = 1) -> np.ndarray:
    noisy, sigma = add_noise(WAVE, ("x", "y"), (0, 1), noise, seed)
    return (noisy - WAVE) / sigma


def one_stream(seed: int, member: int, quantity: int, count: int, beyond_3_sigma: str) -> np.ndarray:
    """The errors of one quantity of one member, from numpy's own construction of a stream (count,)."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(member, quantity)))
    values = rng.standard_normal(count)
    far = np.abs(values) > 3.0
    if beyond_3_sigma == "discard":
        values[far] = np.nan
    while beyond_3_sigma == "redraw" and far.any():
        values[far] = rng.standard_normal(int(far.sum()))
        far = np.abs(values) > 3.0
    return values


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


@given(
    st.integers(0, 2**130),
    st.lists(st.integers(0, 2**40), min_size=1, max_size=4),
    st.lists(st.integers(0, 50), min_size=1, max_size=3),
    st.integers(1, 400),
    st.sampled_from(BEYOND_3_SIGMA),
)
@settings(max_examples=60, deadline=None)
def test_many_members_have_bit_for_bit_the_streams_that_numpy_builds_one_by_one(
    seed: int, members: list[int], quantities: list[int], count: int, beyond_3_sigma: str
) -> None:
    exact = WAVE[:count, :1] + np.arange(len(quantities))
    names = [f"q{j}" for j in range(len(quantities))]
    noise = Noise(proportional=0.3, beyond_3_sigma=beyond_3_sigma)
    values, sigma = noisy_members(exact, names, quantities, noise, seed, members)
    assert values.shape == (len(members), *exact.shape)
    np.testing.assert_array_equal(sigma, standard_deviations(exact, names, noise))
    for k, member in enumerate(members):
        columns = [one_stream(seed, member, quantity, count, beyond_3_sigma) for quantity in quantities]
        np.testing.assert_array_equal(values[k], exact + sigma * np.stack(columns, axis=1))


@pytest.mark.parametrize("beyond_3_sigma", BEYOND_3_SIGMA)
def test_one_member_is_the_same_alone_and_among_others(beyond_3_sigma: str) -> None:
    noise = Noise(sd=0.3, beyond_3_sigma=beyond_3_sigma)
    members = [7, 0, 2**32, 7]
    many, _ = noisy_members(WAVE[:500], ("x", "y"), (3, 1), noise, 11, members)
    for values, member in zip(many, members, strict=True):
        alone, _ = add_noise(WAVE[:500], ("x", "y"), (3, 1), noise, 11, member)
        np.testing.assert_array_equal(values, alone)


def test_values_that_are_far_again_are_drawn_again_from_the_same_stream() -> None:
    first = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(0, 0)))
    n_far = int((np.abs(first.standard_normal(N)) > 3.0).sum())
    assert (np.abs(first.standard_normal(n_far)) > 3.0).any()  # so that this seed needs a second round
    noise = Noise(sd=1.0, beyond_3_sigma="redraw")
    drawn, _ = add_noise(np.zeros((N, 1)), ("x",), (0,), noise, 1)
    np.testing.assert_array_equal(drawn[:, 0], one_stream(1, 0, 0, N, "redraw"))


def test_no_members_have_no_values() -> None:
    values, sigma = noisy_members(WAVE[:5], ("x", "y"), (0, 1), Noise(sd=1.0), 1, ())
    assert values.shape == (0, 5, 2)
    assert sigma.shape == (5, 2)
