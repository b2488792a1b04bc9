"""Experiments: what was observed, when, and how well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.records import Array, InputError, Mistake, Series

LARGEST = 1e50  # of values, guesses and weights, and of 1 / sigma: squares of their products must exist

Sigma = float | Mapping[str, Any] | Sequence[Any] | Array


class Experiment:
    """One series of measurements: times (n_times,), values by name of state or observable, NaN = missing.

    sigma: one standard deviation for all, one per name, or one per value; None: all alike and unknown, which
    the fit estimates as their common factor. sigma_t: standard deviation of the times, one for all or one
    each; the fit then finds out when the values were read.
    """

    def __init__(
        self,
        times: Any,
        values: Mapping[str, Any],
        sigma: Sigma | None = None,
        sigma_t: float | Sequence[float] | Array | None = None,
    ) -> None:
        grid = np.asarray(times, dtype=float)
        if grid.ndim != 1 or not len(grid):
            raise InputError(f"experiment: times have shape {grid.shape}; give one list of times")
        if not values:
            raise InputError('experiment: no values; give them by name, as in {"x": values}')
        columns = {name: np.asarray(column, dtype=float) for name, column in values.items()}
        for name, column in columns.items():
            if column.shape != grid.shape:
                raise InputError(
                    f"experiment: {name} has {len(np.atleast_1d(column))} values at {len(grid)} times; "
                    "give one at each, NaN where it is missing"
                )
        stacked = np.stack(list(columns.values()), axis=1)
        names = tuple(columns)
        self.series = checked(
            Series(names, grid, stacked, _sigma(sigma, names, stacked), _sigma_t(sigma_t, len(grid)))
        )


def _sigma(given: Sigma | None, names: tuple[str, ...], values: Array) -> Array | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        try:
            return np.broadcast_to(np.asarray(given, dtype=float), values.shape).copy()
        except ValueError:
            raise InputError(
                f"experiment: sigma has shape {np.shape(given)}; give one number, or {values.shape}"
            ) from None
    lacking = [name for name in names if name not in given]
    if lacking:
        raise InputError(
            f"experiment: no sigma for {', '.join(lacking)}; give one to each of {', '.join(names)}"
        )
    columns = [np.broadcast_to(np.asarray(given[name], dtype=float), len(values)) for name in names]
    return np.stack(columns, axis=1)


def _sigma_t(given: float | Sequence[float] | Array | None, count: int) -> Array | None:
    if given is None:
        return None
    try:
        return np.broadcast_to(np.asarray(given, dtype=float), (count,)).copy()
    except ValueError:
        raise InputError(
            f"experiment: sigma_t has shape {np.shape(given)}; give one number, or {count}"
        ) from None


def checked(series: Series) -> Series:
    """The series, if it can be fitted to."""
    check_rows(series)
    if not np.isfinite(series.values).any():
        raise no_values()
    return series


def no_values() -> InputError:
    return _mistake("all values are missing", "give at least some")


def check_rows(series: Series, first: int = 0) -> None:
    """Refuse rows that cannot be fitted to; first: the number of the first of them."""
    times, values, sigma = series.times, series.values, series.sigma
    if not np.isfinite(times).all():
        raise _mistake(f"time {first + int(np.argmin(np.isfinite(times)))} is not finite", "remove its row")
    falls = np.flatnonzero(np.diff(times) <= 0.0)
    if len(falls):
        k = int(falls[0])
        raise _mistake(
            f"times must increase: {times[k + 1]:.15g} comes after {times[k]:.15g}", "sort the rows"
        )
    off = np.zeros(len(times)) if series.sigma_t is None else series.sigma_t
    if not ((off >= 0.0) & (off < np.inf)).all():
        k = int(np.argmin((off >= 0.0) & (off < np.inf)))
        problem = f"sigma_t is {off[k]:g} at t = {times[k]:.15g}"
        raise _mistake(problem, "give 0 where a time is exact, else a standard deviation")
    there = np.isfinite(values)
    if np.isinf(values).any():
        raise _mistake("a value is infinite", "give NaN where a value is missing")
    if sigma is not None and not (sigma[there] > 0.0).all():
        k, column = np.argwhere(there & ~(sigma > 0.0))[0]
        problem = f"sigma of {series.names[column]} is {sigma[k, column]:g} at t = {times[k]:.15g}"
        raise _mistake(problem, "standard deviations must be positive")
    for what, numbers, beyond in (
        ("value", values, np.abs(values) > LARGEST),
        ("sigma", sigma, sigma is not None and sigma < 1.0 / LARGEST),
    ):
        if numbers is not None and (there & beyond).any():
            k, column = np.argwhere(there & beyond)[0]
            problem = f"the {what} of {series.names[column]} is {numbers[k, column]:g} at t = {times[k]:.15g}"
            raise _mistake(problem, f"choose units that need no numbers beyond {LARGEST:g}")


def _mistake(problem: str, remedy: str) -> InputError:
    return InputError(Mistake("experiment", problem, remedy))


@contextmanager
def of_experiment(e: int, count: int) -> Iterator[None]:
    """Mistakes inside say which of several experiments they are about, as their place."""
    try:
        yield
    except InputError as error:
        if count == 1:
            raise
        raise InputError([replace(each, place=f"experiment {e + 1}") for each in error.mistakes]) from None


def check_timing(model: Model, key: str = "data.sigma_t") -> None:
    """Refuse errors of the times of models whose motion cannot be followed to and fro."""
    why = (
        "a map has no times between its iterations"
        if model.kind == "map"
        else f"{model.name} is opaque, and has no expressions"
        if model.opaque
        else "a path with jumps, switches or kinks is not followed backward"
        if not model.smooth
        else ""
    )
    if why:
        raise InputError(Mistake("", why, "remove it, or choose another model", key))


def check_names(model: Model, names: Sequence[str]) -> None:
    for name in names:
        if name not in model.quantities:
            problem = f"{model.name} has no state or observable '{name}'"
            raise InputError(Mistake("", problem, nearest(name, model.quantities), "fit.observe"))
