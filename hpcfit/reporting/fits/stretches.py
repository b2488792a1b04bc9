"""Which parts of a long series, and which of many experiments, are looked at from near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, FitResult, Stretch
from hpcfit.reporting.fits import summary

LONG = 400  # data times: more cannot be told apart on a page
BEGINNING = 120  # data times of the close view of the begin
AROUND = 25  # data times before and after a large residual
MOST = 3  # stretches with large residuals
FEW_EXPERIMENTS = 4  # that are all shown
PICKED = 3  # of many experiments: so many of the first, and so many of the worst


def is_long(fit: FitResult, experiment: int) -> bool:
    return len(fit.experiments[experiment].times) > LONG


def whole(fit: FitResult, experiment: int) -> Stretch:
    return Stretch(experiment, 0, len(fit.experiments[experiment].times) - 1)


def begin(fit: FitResult, experiment: int) -> Stretch:
    return Stretch(experiment, 0, min(BEGINNING, len(fit.experiments[experiment].times)) - 1)


def worst(fit: FitResult, experiment: int) -> list[tuple[int, Stretch]]:
    """The data times with the largest residuals, largest first, with what is around them; none overlap."""
    sizes, count = largest(fit, experiment), len(fit.experiments[experiment].times)
    found: list[tuple[int, Stretch]] = []
    while len(found) < MOST and count and np.isfinite(sizes).any():
        k = int(np.nanargmax(sizes))
        first = max(min(k - AROUND, count - 2 * AROUND - 1), 0)
        last = min(first + 2 * AROUND, count - 1)
        found.append((k, Stretch(experiment, first, last)))
        sizes[max(first - AROUND, 0) : last + AROUND + 1] = np.nan
    return found


def largest(fit: FitResult, experiment: int) -> Array:
    """The largest residual of each data time, in standard deviations (n_times,); NaN where there is none."""
    sizes = np.full(len(fit.experiments[experiment].times), np.nan)
    for name in fit.experiments[experiment].names:
        np.fmax(sizes, np.abs(summary.standardised(fit, experiment, name)), out=sizes)
    return sizes


def mean_squares(fit: FitResult) -> Array:
    """Mean square of the standardised residuals of each experiment (n_experiments,); NaN without data."""
    found = np.full(len(fit.experiments), np.nan)
    for e, series in enumerate(fit.experiments):
        columns = [summary.standardised(fit, e, name) for name in series.names]
        values = np.concatenate([column[np.isfinite(column)] for column in columns])
        if len(values):
            found[e] = np.mean(values**2)
    return found


def shown_experiments(fit: FitResult, most: int = 2 * PICKED) -> tuple[list[int], list[int]]:
    """All of a few experiments; of many the first ones, and the worst of the others, worst first."""
    count = len(fit.experiments)
    if count <= most:
        return list(range(count)), []
    first = list(range(most // 2))
    order: NDArray[np.intp] = np.argsort(-np.nan_to_num(mean_squares(fit), nan=-1.0), kind="stable")
    return first, [int(e) for e in order if e not in first][: most - most // 2]
