"""Measurement errors that belong to a member and a quantity, never to a rank or a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hpcfit.records import Array, InputError, Noise

BEYOND_3_SIGMA = ("keep", "redraw", "discard")


def generator(seed: int, member: int, quantity: int) -> np.random.Generator:
    """The stream of random numbers of one quantity in one member of an ensemble."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(member, quantity)))


def standard_deviations(exact: Array, names: Sequence[str], noise: Noise) -> Array:
    """Standard deviation of every value (n_times, n_names)."""
    if noise.sd is not None:
        return np.broadcast_to(_by_name(noise.sd, names), exact.shape).copy()
    if noise.fraction is not None:
        return np.broadcast_to(
            _by_name(noise.fraction, names) * np.nanmean(np.abs(exact), axis=0), exact.shape
        ).copy()
    if noise.proportional is not None:
        return _by_name(noise.proportional, names) * np.abs(exact)
    raise InputError("noise has no size; give one of sd, fraction, proportional")


def add_noise(
    exact: Array, names: Sequence[str], quantities: Sequence[int], noise: Noise, seed: int, member: int = 0
) -> tuple[Array, Array]:
    """Noisy values and their standard deviations; `quantities` numbers the names within the model.

    A value beyond three standard deviations is kept, drawn again, or discarded (NaN), as the noise says.
    """
    sigma = standard_deviations(exact, names, noise)
    errors = np.empty_like(exact)
    for j, quantity in enumerate(quantities):
        errors[:, j] = _draw(generator(seed, member, quantity), len(exact), noise.beyond_3_sigma)
    return exact + sigma * errors, sigma


def _draw(rng: np.random.Generator, count: int, beyond_3_sigma: str) -> Array:
    values = rng.standard_normal(count)
    far = np.abs(values) > 3.0
    if beyond_3_sigma == "discard":
        values[far] = np.nan
    while beyond_3_sigma == "redraw" and far.any():
        values[far] = rng.standard_normal(int(far.sum()))
        far = np.abs(values) > 3.0
    return values


def _by_name(size: float | Mapping[str, float], names: Sequence[str]) -> Array:
    if isinstance(size, Mapping):
        return np.array([float(size.get(name, 0.0)) for name in names])
    return np.full(len(names), float(size))
