"""The few numbers that stand for a path, for all kinds of pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcfit.records import Array, Path, Series


@dataclass(frozen=True)
class Noise:
    """Measurement errors of one quantity: as stated and as drawn."""

    name: str
    sigma_mean: float
    rms_noise: float


@dataclass(frozen=True)
class Residual:
    """Distance of a recording from the trajectory; in_sigma is NaN without standard deviations."""

    name: str
    rms: float
    in_sigma: float


def reached(path: Path) -> int:
    """How many rows of the states come before the first that is not finite."""
    bad = np.flatnonzero(~np.isfinite(path.states).all(axis=1))
    return int(bad[0]) if len(bad) else len(path.states)


def status(path: Path) -> str:
    """How the path ended, with the cause."""
    return path.outcome.value + (f" ({path.cause})" if path.cause and not path.converged else "")


def span(path: Path) -> str:
    """The times, the steps and the seed in one line."""
    words = ["no times"]
    if len(path.times):
        words = [f"t = {path.times[0]:.6g} to {path.times[-1]:.6g}", f"{len(path.times):,} times"]
    rows = reached(path)
    if 0 < rows < len(path.times):
        words.append(f"finite up to t = {path.times[rows - 1]:.6g}")
    words.append(f"{path.steps:,} steps")
    return ", ".join(words + ([] if path.seed is None else [f"seed {path.seed}"]))


def extra_names(path: Path) -> tuple[str, ...]:
    """Quantities of the path that are not states."""
    return tuple(n for n in (path.exact.names if path.exact else ()) if n not in path.state_names)


def column(series: Series | None, name: str, times: Array) -> Array | None:
    """A quantity of a series at the given times, NaN where it has none of them."""
    if series is None or name not in series.names:
        return None
    values = series.values[:, series.names.index(name)]
    return values if np.array_equal(series.times, times) else _at(series.times, values, times)


def _at(own: Array, values: Array, times: Array) -> Array:
    found = np.full(len(times), np.nan)
    _, here, there = np.intersect1d(own, times, return_indices=True)
    found[there] = values[here]
    return found


def trajectory(path: Path, name: str, times: Array) -> Array:
    """A quantity of the path without noise at the given times, NaN where it is unknown."""
    states = Series(path.state_names, path.times, path.states)
    for series in (states, path.exact):
        values = column(series, name, times)
        if values is not None:
            return values
    return np.full(len(times), np.nan)


def end_row(path: Path) -> tuple[float, Array] | None:
    """The last finite state and its time."""
    rows = reached(path)
    return (float(path.times[rows - 1]), path.states[rows - 1]) if rows else None


def noises(path: Path) -> tuple[Noise, ...]:
    """Errors of the observed quantities."""
    if path.observed is None:
        return ()
    seen, found = path.observed, []
    for k, name in enumerate(seen.names):
        sigma = np.nan if seen.sigma is None else mean(seen.sigma[:, k])
        error = difference(seen.values[:, k], trajectory(path, name, seen.times))
        found.append(Noise(name, sigma, rms(error)))
    return tuple(found)


def residuals(path: Path) -> tuple[Residual, ...]:
    """Distances of the recorded quantities from the trajectory."""
    if path.data is None:
        return ()
    data, found = path.data, []
    for k, name in enumerate(data.names):
        distance = difference(data.values[:, k], trajectory(path, name, data.times))
        sigma = np.nan if data.sigma is None else np.where(data.sigma[:, k] > 0, data.sigma[:, k], np.nan)
        found.append(Residual(name, rms(distance), rms(distance / sigma)))
    return tuple(found)


def drift(path: Path) -> tuple[float, float] | None:
    """First value of the invariant and its largest distance from it."""
    if path.invariant is None or not len(path.invariant):
        return None
    return float(path.invariant[0]), largest(difference(path.invariant, path.invariant[0]))


def difference(first: Array, second: Array | np.float64) -> Array:
    """first - second, silent where it is not finite."""
    with np.errstate(all="ignore"):
        values: Array = np.asarray(first - second)
        return values


def largest(values: Array | None) -> float:
    """The largest finite modulus, NaN if there is none."""
    if values is None:
        return np.nan
    moduli = np.abs(values[np.isfinite(values)])
    return float(moduli.max()) if len(moduli) else np.nan


def mean(values: Array) -> float:
    """The mean of the finite values."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else np.nan


def rms(values: Array) -> float:
    """The root of the mean square of the finite values, without overflow."""
    scale = largest(values)
    if not scale > 0:
        return scale
    return float(scale * np.sqrt(mean((values / scale) ** 2)))
