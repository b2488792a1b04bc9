"""From the growth of tangent frames, block by block, to exponents with honest errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.lyapunov.doubts import doubts
from hpcfit.lyapunov.errors import means
from hpcfit.lyapunov.regular import regular
from hpcfit.lyapunov.zeros import bound, vanishing
from hpcfit.records import Array


@dataclass(frozen=True)
class Estimate:
    """Exponents per unit of time, of the chaotic trajectories; of all if none is chaotic."""

    exponents: Array  # (k,) the mean growth
    errors: Array  # (k,) standard errors; NaN where there is a bound
    bounds: Array  # (k,) C/T of exponents that vanish; NaN for the others
    half_widths: Array  # (k,) of 95 % intervals; the bounds of exponents that vanish
    regular: NDArray[np.bool_]  # (L,)
    used: NDArray[np.bool_]  # (L,) trajectories in the means
    warnings: tuple[str, ...]

    @property
    def zeros(self) -> int:
        return int(np.isfinite(self.bounds).sum())

    @property
    def cleaned(self) -> Array:
        """The exponents, those that vanish as zero."""
        return np.where(np.isfinite(self.bounds), 0.0, self.exponents)


def estimate(growth: Array, block: float) -> Estimate:
    """Exponents from log growth (L, B, k) in blocks of `block` time units; failed trajectories hold NaN."""
    finished = np.isfinite(growth).all(axis=(1, 2))
    calm = np.zeros(len(growth), dtype=bool)
    calm[finished] = regular(growth[finished])
    chaotic = finished & ~calm
    used = chaotic if chaotic.any() else finished
    return _averaged(growth, block, calm, used)


def running(growth: Array, block: float, last: Estimate) -> Estimate:
    """The same from the first blocks alone (L, b, k), of the trajectories that were used in the end."""
    return _averaged(growth, block, last.regular, last.used, judged=False)


def _averaged(
    growth: Array, block: float, calm: NDArray[np.bool_], used: NDArray[np.bool_], judged: bool = True
) -> Estimate:
    """The means over the trajectories in use."""
    _, blocks, k = growth.shape
    if not used.any() or not blocks:
        missing = np.full(k, np.nan)
        return Estimate(missing, missing, missing, missing, calm, used, ())
    taken = growth if used.all() else growth[used]
    found = means(taken / block)
    zero = vanishing(taken)
    bounds = np.where(zero, bound(taken) / (blocks * block), np.nan)
    return Estimate(
        found.values,
        np.where(zero, np.nan, found.errors),
        bounds,
        np.where(zero, bounds, found.half_widths),
        calm,
        used,
        doubts(taken / block, found, zero, calm, used) if judged else (),
    )
