"""Gragg's midpoint rule, its extrapolation to step zero, and the polynomial through one step.

Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.9; the dense output is
that of Hairer and Ostermann (1990). All arrays have lanes as their last axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import factorial

import numpy as np

from hpcfit.flow.tangents import Frame
from hpcfit.records import Array

SUBSTEPS = tuple(4 * j + 2 for j in range(12))  # 2 6 10 14 ...: the middle always falls on an odd point


@dataclass
class Row:
    """One midpoint integration over the step: its end, its middle, and f at all of its points."""

    end: Array
    middle: Array
    slopes: list[Array]


def midpoint_row(frame: Frame, t: Array, h: Array, slope: Array, n: int, keep_slopes: bool) -> Row:
    """Gragg's method with n substeps and the smoothing step at the end; `slope` is f at the start.

    The sums are compensated (Kahan): extrapolation multiplies their rounding errors by up to 400.
    """
    small = h / n
    before, here = frame.y, frame.y + small * slope
    lost_before, lost = np.zeros_like(here), small * slope - (here - before)
    slopes = [slope]
    middle = here
    for i in range(1, n):
        if i == n // 2:
            middle = here
        now = frame.rhs(t + i * small, here)
        if keep_slopes:
            slopes.append(now)
        step = 2 * small * now + lost_before
        after = before + step
        lost_before, lost = lost, step - (after - before)
        before, here = here, after
    last = frame.rhs(t + h, here)
    if keep_slopes:
        slopes.append(last)
    return Row((before + here + (small * last + lost_before + lost)) / 2, middle, slopes)


def extrapolated(previous: list[Array], first: Array, substeps: tuple[int, ...]) -> list[Array]:
    """The next row of the Aitken–Neville scheme in h^2; `substeps` of all rows so far, newest last."""
    row = [first]
    for i, older in enumerate(previous):
        ratio = (substeps[-1] / substeps[-2 - i]) ** 2
        row.append(row[-1] + (row[-1] - older) / (ratio - 1))
    return row


def limit(values: list[Array], substeps: tuple[int, ...]) -> Array:
    """Values for several numbers of substeps, extrapolated to infinitely many."""
    row: list[Array] = []
    for j, value in enumerate(values):
        row = extrapolated(row, value, substeps[: j + 1])
    return row[-1]


@dataclass
class StepPolynomial:
    """The solution inside one step, as a function of theta in [0, 1] (II.9.30 of Hairer et al.).

    A cubic through values and slopes at both ends plus theta^2 (1 - theta)^2 times a polynomial in
    theta - 1/2 that carries the derivatives in the middle of the step.
    """

    cubic: list[Array]  # coefficients in powers of s = theta - 1/2
    inner: list[Array]

    def __call__(self, theta: Array) -> Array:
        s = theta - 0.5
        bump = (theta * (1 - theta)) ** 2
        return _horner(self.cubic, s) + bump * _horner(self.inner, s)

    def error(self) -> Array:
        """What the last two terms contribute at most; one of them alone may vanish by symmetry."""
        worst = np.zeros_like(self.inner[0])
        for degree in range(len(self.inner))[-2:]:
            s = 0.5 * np.sqrt(degree / (degree + 4))
            worst = np.maximum(worst, np.abs(self.inner[degree]) * ((0.25 - s * s) ** 2 * s**degree))
        return worst


def step_polynomial(
    rows: list[Row], h: Array, start: Array, end: Array, slope: Array, end_slope: Array
) -> StepPolynomial:
    """Dense output from the rows of an accepted step; rows hold all slopes."""
    k = len(rows)
    g0, g1 = h * slope, h * end_slope
    cubic = [
        (start + end) / 2 + (g0 - g1) / 8,
        1.5 * (end - start) - (g0 + g1) / 4,
        (g1 - g0) / 2,
        2 * (start - end) + g0 + g1,
    ]
    inner: list[Array] = []
    for order in range(max(2 * k - 3, 0) + 1):
        taylor = _middle_derivative(rows, h, order) / factorial(order)
        remainder = taylor - cubic[order] if order < 4 else taylor
        if order >= 2:
            remainder = remainder + inner[order - 2] / 2
        if order >= 4:
            remainder = remainder - inner[order - 4]
        inner.append(16 * remainder)  # division by theta^2 (1 - theta)^2 = 1/16 - s^2/2 + s^4
    return StepPolynomial(cubic, inner)


def _middle_derivative(rows: list[Row], h: Array, order: int) -> Array:
    """h^order times the derivative in the middle of the step, from central differences of the slopes."""
    k = len(rows)
    if order == 0:
        return limit([row.middle for row in rows], SUBSTEPS[:k])
    first = (order + 1) // 2 - 1  # rows before this one have too few points
    values = []
    for j in range(first, k):
        half = SUBSTEPS[j] // 2
        difference = rows[j].slopes[half - order + 1 : half + order : 2]
        while len(difference) > 1:
            difference = [b - a for a, b in pairwise(difference)]
        values.append(h * difference[0] * float(half) ** (order - 1))
    return limit(values, SUBSTEPS[first:k])


def _horner(coefficients: list[Array], s: Array) -> Array:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * s + coefficient
    return value
