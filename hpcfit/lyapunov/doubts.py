"""What speaks against the errors of a spectrum, in plain sentences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.lyapunov.errors import Means
from hpcfit.records import Array

FEW_BLOCKS = 32
STRETCHES = 32  # in which the growth is looked at for sticking
CLEARLY_SLOW = 2.5  # power at low frequencies over that at higher ones, which no chance explains
LOW = 0.5  # of the median: an orbit that grows so much slower is stuck
QUIET = 0.15  # of the median: stretches scatter so little where chance makes none of them low
APART = 4.0  # how many times more trajectories scatter than their own errors say, in squares


def doubts(
    series: Array, found: Means, zero: NDArray[np.bool_], calm: NDArray[np.bool_], used: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Sentences on the growth rates (L, B, k) of the trajectories in use."""
    stuck = "" if zero[0] else _stuck(series[..., 0], bool(found.slow[0]))
    apart = "" if stuck else _apart(series, zero)  # sticking makes trajectories differ
    sentences = (_few(series), _slow(found, zero), stuck, apart, _calm(calm, used))
    return tuple(sentence for sentence in sentences if sentence)


def _few(series: Array) -> str:
    lanes, blocks, _ = series.shape
    if lanes * blocks >= FEW_BLOCKS:
        return ""
    return f"only {lanes * blocks} blocks: the errors are rough; run longer, or with shorter blocks"


def _slow(found: Means, zero: NDArray[np.bool_]) -> str:
    numbers = [str(k + 1) for k in np.flatnonzero((found.memory > CLEARLY_SLOW) & ~zero)]
    if not numbers:
        return ""
    which = f"exponent {numbers[0]}" if len(numbers) == 1 else f"exponents {', '.join(numbers)}"
    return (
        f"the growth of {which} is correlated over times that are not short against the run: "
        "the errors are widened for it, and a longer run would tell more"
    )


def _stuck(rates: Array, slow: bool) -> str:
    """Stretches in which lambda_1 is far below its median: for longer than chance, or by more."""
    parts = _stretches(rates, max(1, rates.size // STRETCHES))
    median = float(np.median(parts))
    low = parts < LOW * median
    if len(parts) < STRETCHES // 4 or median <= 0.0 or not low.any():
        return ""
    scatter = float(np.quantile(parts, 0.84)) - median  # above, where nothing sticks
    if not slow and scatter > QUIET * median:
        return ""
    return (
        f"the orbit sticks: lambda_1 is less than half of its median in {int(low.sum())} of {len(parts)} "
        "stretches of the run; the errors hold if such stretches were met often enough"
    )


def _stretches(rates: Array, length: int) -> Array:
    """Means over `length` blocks of the same trajectory, or over all that it has."""
    lanes, blocks = rates.shape
    count = max(1, blocks // length)
    used = rates[:, : count * (blocks // count)]
    means: Array = used.reshape(lanes, count, -1).mean(axis=2).ravel()
    return means


def _apart(series: Array, zero: NDArray[np.bool_]) -> str:
    """Trajectories that differ by more than what happens within each of them explains."""
    lanes, blocks, _ = series.shape
    parts = min(8, blocks)
    if lanes < 3 or parts < 4 or zero[0]:
        return ""
    rates = series[..., 0]
    own = rates[:, : parts * (blocks // parts)].reshape(lanes, parts, -1).mean(axis=2)
    within = float(own.var(axis=1, ddof=1).mean()) / parts
    between = float(rates.mean(axis=1).var(ddof=1))
    if between <= APART * within:
        return ""
    return (
        "the trajectories differ by more than the errors within them explain: they may live in different "
        "regions, and the mean depends on how many were started in which"
    )


def _calm(calm: NDArray[np.bool_], used: NDArray[np.bool_]) -> str:
    aside = int((calm & ~used).sum())
    if not aside:
        return ""
    were = "trajectory is" if aside == 1 else "trajectories are"
    return f"{aside} of {len(calm)} {were} regular and not in the means"
