"""How a spectrum came to its values: running exponents with their error bands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.lyapunov.estimate import Estimate, running
from hpcfit.records import Array, Convergence

POINTS = 60
FEWEST_BLOCKS = 4  # of the first point
ENOUGH_BLOCKS = 100  # before an error is believed to have been reached


def history(growth: Array, block: float, last: Estimate, points: int = POINTS) -> Convergence:
    """Exponents and 95 % half widths at times in equal ratios, from growth (L, B, k)."""
    counts = log_spaced(growth.shape[1], points)
    found = [running(growth[:, :b], block, last) for b in counts]
    k = growth.shape[2]
    return Convergence(
        counts * block,
        np.array([each.exponents for each in found]).reshape(-1, k),
        np.array([each.half_widths for each in found]).reshape(-1, k),
    )


def log_spaced(blocks: int, points: int) -> NDArray[np.int64]:
    """Increasing whole numbers up to `blocks` in about equal ratios."""
    first = min(FEWEST_BLOCKS, blocks)
    if not first:
        return np.zeros(0, dtype=np.int64)
    return np.unique(np.rint(np.geomspace(first, blocks, points)).astype(np.int64))


def reached(found: Estimate, asked: float, blocks: int) -> bool:
    """Whether the standard errors of all exponents are as small as asked; bounds count if all vanish."""
    if blocks < ENOUGH_BLOCKS or not found.used.any():
        return False
    judged = found.errors[np.isnan(found.bounds)] if found.zeros < len(found.bounds) else found.bounds
    return bool((judged <= asked).all())
