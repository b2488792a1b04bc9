"""What follows from a spectrum: dimension, entropy, doubling time, number of integrals, bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcfit.lyapunov.errors import Means, means
from hpcfit.records import Array

ROUNDING = 1e-12  # of the sum of all exponents, against their sizes


@dataclass(frozen=True)
class Derived:
    """Quantities that follow from the exponents, with standard errors; NaN: not defined, or not known."""

    dimension: float  # Kaplan-Yorke
    dimension_error: float
    entropy: float  # the sum of the positive exponents: an upper bound of it (Pesin: equal if smooth)
    entropy_error: float
    doubling_time: float  # of small errors
    doubling_time_error: float
    integrals: int | None  # isolating ones, which the zeros of a Hamiltonian system suggest


def kaplan_yorke(exponents: Array, states: int) -> tuple[float, Array]:
    """D = j + (lambda_1 + ... + lambda_j) / |lambda_{j+1}| and its gradient by the exponents (k,).

    j is the largest number of exponents whose sum is not negative (Kaplan and Yorke 1979). D is the number
    of states where no volume shrinks; NaN where more exponents would be needed, and where all vanish.
    """
    gradient = np.zeros(len(exponents))
    if not np.isfinite(exponents).all() or not exponents.any():
        return float("nan"), gradient
    ordered = np.sort(exponents)[::-1]
    sums = np.cumsum(ordered)
    sums[np.abs(sums) <= ROUNDING * np.abs(ordered).sum()] = 0.0
    whole = int(np.flatnonzero(np.concatenate([[0.0], sums]) >= 0.0)[-1])
    if whole == len(exponents):
        return (float(states), gradient) if whole == states else (float("nan"), gradient)
    total, next_one = float(ordered[:whole].sum()), float(ordered[whole])
    places = np.argsort(-exponents, kind="stable")
    gradient[places[:whole]] = -1.0 / next_one
    gradient[places[whole]] = total / next_one**2
    return whole - total / next_one, gradient


def derived(exponents: Array, series: Array, zeros: int, states: int, *, hamiltonian: bool) -> Derived:
    """From exponents (k,), zeros set to 0, and the blocks (L, B, k) that they are the means of.

    Errors are those of the linear combinations of the blocks, so that the correlation of the exponents
    is in them.
    """
    dimension, slope = kaplan_yorke(exponents, states)
    if hamiltonian and np.isfinite(dimension):  # no volume shrinks, whatever rounding says
        dimension, slope = float(states), np.zeros_like(slope)
    positive = (exponents > 0.0).astype(float)
    weights = np.column_stack([slope, positive, np.eye(len(exponents))[0]])
    combined = means(np.einsum("lbk,kj->lbj", series, weights))  # not BLAS: the same bits with any threads
    known = np.isfinite(dimension)
    largest = float(exponents[0])
    doubling = np.log(2.0) / largest if largest > 0.0 else float("inf")
    return Derived(
        dimension,
        _error(combined, 0) if known else float("nan"),
        float(exponents[exponents > 0.0].sum()),
        _error(combined, 1),
        doubling,
        doubling * _error(combined, 2) / largest if largest > 0.0 else float("nan"),
        zeros // 2 if hamiltonian and len(exponents) == states else None,
    )


def _error(combined: Means, number: int) -> float:
    return float(combined.errors[number])


def bits(exponents: Array, orbits: float = 1.0) -> Array:
    """Binary digits per unit of time, or per orbit where there are so many orbits in it (5.10)."""
    rate: Array = exponents / np.log(2.0) / orbits
    return rate
