"""Measurement errors that belong to a member and a quantity, never to a rank or a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from hpcfit.ensemble.streams import generators
from hpcfit.records import Array, InputError, Noise

OF_TIMES = 2**32 - 1  # the number of the times among the quantities of a model
BEYOND_3_SIGMA = ("keep", "redraw", "discard")


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
    exact: Array,
    names: Sequence[str],
    quantities: Sequence[int],
    noise: Noise,
    seed: int,
    member: int = 0,
    experiment: int = 0,
    seen: Array | None = None,
) -> tuple[Array, Array]:
    """Noisy values and their standard deviations; `quantities` numbers the names within the model.

    A value beyond three standard deviations is kept, drawn again, or discarded (NaN), as the noise says.
    seen (1, n_times, n_names): the exact values at other times, where times have errors.
    """
    values, sigma = noisy_members(exact, names, quantities, noise, seed, (member,), experiment, seen)
    return values[0], sigma


def noisy_members(
    exact: Array,
    names: Sequence[str],
    quantities: Sequence[int],
    noise: Noise,
    seed: int,
    members: Sequence[int],
    experiment: int = 0,
    seen: Array | None = None,
) -> tuple[Array, Array]:
    """Values of many members (M, n_times, n_names), and the standard deviations (n_times, n_names).

    seen (M, n_times, n_names): the exact values at the members' own times, where times have errors.
    The first experiment has the streams of a job that has only one.
    """
    sigma = standard_deviations(exact, names, noise)
    pairs = list(product(members, quantities))
    keys = [[member for member, _ in pairs], [quantity for _, quantity in pairs]]
    rngs = generators(seed, *keys, *([[experiment] * len(pairs)] if experiment else []))
    errors = _draw(rngs, len(exact), noise.beyond_3_sigma).reshape(len(members), len(quantities), len(exact))
    values = np.ascontiguousarray(errors.transpose(0, 2, 1))
    values *= sigma  # in place: new arrays of this size cost more than the arithmetic
    return np.add(exact if seen is None else seen, values, out=values), sigma


def time_errors(count: int, noise: Noise, seed: int, members: Sequence[int], experiment: int = 0) -> Array:
    """How far the members' times of observation are from the nominal ones (M, n_times)."""
    keys = [list(members), [OF_TIMES] * len(members)]
    rngs = generators(seed, *keys, *([[experiment] * len(members)] if experiment else []))
    return noise.sd_t * _draw(rngs, count, "keep")


def _draw(rngs: Sequence[np.random.Generator], count: int, beyond_3_sigma: str) -> Array:
    """Standard normal numbers of every stream (n_streams, count)."""
    values = np.empty((len(rngs), count))
    for rng, row in zip(rngs, values, strict=True):
        rng.standard_normal(out=row)
    if beyond_3_sigma == "discard":
        values[np.abs(values) > 3.0] = np.nan
    if beyond_3_sigma == "redraw":
        for i in np.flatnonzero((np.abs(values) > 3.0).any(axis=1)):
            _redraw(rngs[i], values[i])
    return values


def _redraw(rng: np.random.Generator, values: Array) -> None:
    """Replace the values (count,) beyond three standard deviations by the next ones of their stream."""
    far = np.flatnonzero(np.abs(values) > 3.0)
    while len(far):
        values[far] = rng.standard_normal(len(far))
        far = far[np.abs(values[far]) > 3.0]


def _by_name(size: float | Mapping[str, float], names: Sequence[str]) -> Array:
    if isinstance(size, Mapping):
        return np.array([float(size.get(name, 0.0)) for name in names])
    return np.full(len(names), float(size))
