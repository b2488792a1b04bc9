"""Which exponents vanish: those whose accumulated growth stays where it is, or rises like ln t.

The growth along the flow is log |f| at the end minus log |f| at the begin; what a conserved quantity leaves
free grows linearly, so that its logarithm is ln t. Neither is a sum of chances, and a standard error does
not apply: the exponent is within C/T of zero, C being the most that the growth ever reached.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.lyapunov.regular import accumulate
from hpcfit.records import Array

LONG, SHORT = 4, 256  # parts of the run over which growth is compared
FEWEST_BLOCKS = 16
LEAST_BOUND = 1.0  # C: another norm of the tangents changes their logarithm by as much
FLAT = 0.3  # growth over long times against that of chance from short ones
NOTHING = 0.1  # growth in the whole run that cannot be told from that of another norm
LIKE_LOG = 2.0  # typical increment of ln t and an oscillation over a quarter of the run


def vanishing(growth: Array) -> NDArray[np.bool_]:
    """Directions (k,) whose exponent is zero, from the growth (L, B, k) of the trajectories in the mean.

    Over times m the increments of a sum of chances grow like sqrt(m), those of an exponent like m; those
    of bounded growth do not grow, and those of ln t stay of the order of one.
    """
    blocks = growth.shape[1]
    accumulated = accumulate(growth)
    still: NDArray[np.bool_] = np.abs(accumulated).max(axis=(0, 1)) <= NOTHING
    if blocks < FEWEST_BLOCKS:
        return still
    lags = blocks // LONG, max(1, blocks // SHORT)
    over_long, over_short = (_typical(accumulated, lag) for lag in lags)
    ratio = lags[0] / lags[1]
    bounded = over_long <= FLAT * np.sqrt(ratio) * over_short
    like_log = (over_long <= LIKE_LOG) & (over_long <= ratio / 3.0 * over_short)
    found: NDArray[np.bool_] = still | bounded | like_log
    return found


def bound(growth: Array) -> Array:
    """C (k,): the most that the growth of each direction ever reached on any of the trajectories."""
    reached: Array = np.abs(accumulate(growth)).max(axis=(0, 1))
    return np.maximum(reached, LEAST_BOUND)


def _typical(accumulated: Array, lag: int) -> Array:
    """The root mean square of all increments over `lag` blocks."""
    root: Array = np.sqrt(((accumulated[:, lag:] - accumulated[:, :-lag]) ** 2).mean(axis=(0, 1)))
    return root
