"""Statistics of members by group: by cell, or by the values of some keys of the grid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.coverage import LEVELS, student_quantiles
from hpcfit.reporting.ensembles.members import good, unknowns

Numbers = NDArray[np.int64]
LEVEL = 0.95


@dataclass(frozen=True)
class Unknown:
    """One unknown over the converged members of each group (G,); NaN = not known."""

    name: str
    bias: Array  # mean of estimate - truth
    chance: Array  # standard error of the bias
    spread: Array  # standard deviation of estimate - truth, or of the estimates
    error: Array  # root mean square of the errors that the members predict
    covered: Array  # part of the single 95 % intervals that hold the truth

    @property
    def ratio(self) -> Array:
        """Spread over error: 1 if the errors are right."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.spread / self.error


@dataclass(frozen=True)
class Groups:
    """What the members of each group (G,) have in common."""

    members: Numbers
    converged: Numbers
    work: Array  # mean number of linearisations of the converged ones
    unknowns: tuple[Unknown, ...]

    @property
    def success(self) -> Array:
        """The part that converged; NaN without members."""
        with np.errstate(invalid="ignore"):
            return self.converged / np.where(self.members > 0, self.members, np.nan)

    @property
    def bands(self) -> tuple[Array, Array]:
        """Ends of the 95 % interval of the success rate: Wilson (1927)."""
        n, p, z = np.where(self.members > 0, self.members, np.nan), self.success, 1.959964
        centre, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def choices(ensemble: EnsembleResult) -> Numbers:
    """Which value of each key every member has (M, n_keys)."""
    shape = tuple(len(values) for values in ensemble.grid.values())
    return np.stack(np.unravel_index(ensemble.cells, shape), axis=1)


def by_keys(ensemble: EnsembleResult, keys: Sequence[str], names: Sequence[str]) -> Groups:
    """Groups by the values of some keys, the last varying fastest, whatever the other keys are."""
    chosen, places = choices(ensemble), list(ensemble.grid)
    which = np.zeros(len(ensemble.members), dtype=np.int64)
    count = 1
    for key in keys:
        size = len(ensemble.grid[key])
        which, count = which * size + chosen[:, places.index(key)], count * size
    return grouped(ensemble, which, count, names)


def by_cell(ensemble: EnsembleResult, names: Sequence[str]) -> Groups:
    """A group for each cell."""
    return by_keys(ensemble, list(ensemble.grid), names)


def grouped(ensemble: EnsembleResult, which: Numbers, count: int, names: Sequence[str]) -> Groups:
    """The statistics of groups 0 to count - 1, of which every member (M,) has one."""
    picked = good(ensemble)
    own = which[picked]
    converged = np.bincount(own, minlength=count)
    quantiles = student_quantiles(ensemble.degrees_of_freedom[picked])[LEVELS.index(LEVEL)]
    mean = _Mean(own, converged)
    return Groups(
        members=np.bincount(which, minlength=count),
        converged=converged,
        work=mean(ensemble.linearisations[picked].astype(float)),
        unknowns=tuple(_unknown(ensemble, name, picked, quantiles, mean) for name in names),
    )


@dataclass(frozen=True)
class _Mean:
    """Means over the converged members of each group; NaN where there is none."""

    own: Numbers  # the group of each converged member
    converged: Numbers

    def __call__(self, values: Array) -> Array:
        there = np.isfinite(values)
        sums = np.bincount(self.own[there], values[there], len(self.converged))
        counts = np.bincount(self.own[there], minlength=len(self.converged))
        return sums / np.where(counts > 0, counts, np.nan)


def _unknown(
    ensemble: EnsembleResult, name: str, picked: NDArray[np.bool_], quantiles: Array, mean: _Mean
) -> Unknown:
    k = ensemble.names.index(name)
    errors, truth = ensemble.errors[picked, k], ensemble.true(name)[picked]
    known = np.isfinite(truth)
    off = ensemble.estimates[picked, k] - np.where(known, truth, 0.0)
    centre = mean(off)
    variance = mean((off - centre[mean.own]) ** 2)
    n = np.where(mean.converged > 1, mean.converged, np.nan)
    spread = np.sqrt(variance * n / (n - 1.0))
    with np.errstate(invalid="ignore"):
        holds = np.where(known & np.isfinite(errors), np.abs(off) <= quantiles * errors, np.nan)
    return Unknown(
        name=name,
        bias=mean(np.where(known, off, np.nan)),
        chance=spread / np.sqrt(n),
        spread=spread,
        error=np.sqrt(mean(errors**2)),
        covered=mean(holds.astype(float)),
    )


def shown_unknowns(ensemble: EnsembleResult, most: int) -> list[str]:
    """Parameters, or initial states where there are none: the first few."""
    return list(ensemble.parameter_names or unknowns(ensemble))[:most]


def chosen_keys(ensemble: EnsembleResult) -> list[str]:
    """The two keys with the most values, in the order of the grid."""
    sizes = {key: len(values) for key, values in ensemble.grid.items()}
    largest = sorted(sizes, key=lambda key: -sizes[key])[:2]
    return [key for key in sizes if key in largest and sizes[key] > 1]


def axis_numbers(values: Sequence[Any]) -> Array | None:
    """The values of a key as numbers; None if they are none."""
    try:
        return np.array([float(value) for value in values if not isinstance(value, bool)])
    except (TypeError, ValueError):
        return None


def value_text(value: Any) -> str:
    """A value of the grid for people."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value)


def cell_values(grid: Mapping[str, Sequence[Any]], cell: int) -> list[Any]:
    """The value of each key in a cell."""
    chosen = np.unravel_index(cell, tuple(len(values) for values in grid.values()))
    return [values[int(k)] for values, k in zip(grid.values(), chosen, strict=True)]
