"""Damping: how far to go along an increment (Appendix A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from hpcfit.linear.chain import Residuals, scaled_residuals, violated
from hpcfit.linear.inverse import Inverse, Numbers
from hpcfit.records import Array

SMALLEST_DAMPING = 1e-3
ETA = 1.0  # of the restrictive monotonicity test; below 2
TRIALS = 12
SLOPES_SAFETY = 2.0  # weights of T1 above the multipliers

Trial = Callable[[Array, Numbers], Residuals]  # F(z + alpha dz) of some members of an inverse


class Level(Protocol):
    """Chooses a damping factor for some members of an inverse; 0 = no descent.

    It remembers members by the numbers that they have in the course.
    """

    def damping(self, here: Inverse, which: Numbers, trial: Trial, members: Numbers) -> Array: ...

    def forget(self, members: Numbers) -> None: ...


class NaturalLevel:
    """T_n^k(z) = ||J+(z_k) F(z)||^2 (A3) with the restrictive monotonicity test of Bock (1987).

    A damping is accepted if the simplified increment stays near what linearity predicts,
    ||-J+ F(z + alpha dz) - (1 - alpha) dz|| <= eta / 2 * alpha ||dz||; the level then falls to
    1 - alpha (1 - eta / 2) of itself or below.
    """

    def __init__(self, members: int) -> None:
        self.curvature = np.zeros(members)  # omega of the last iteration; 0 = unknown

    def forget(self, members: Numbers) -> None:
        self.curvature[members] = 0.0

    def damping(self, here: Inverse, which: Numbers, trial: Trial, members: Numbers) -> Array:
        length = here.increment[which]
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = np.fmin(1.0, ETA / (self.curvature[members] * length))
        alpha = np.maximum(alpha, SMALLEST_DAMPING)
        left = np.arange(len(length))
        for _ in range(TRIALS):
            tried, unit = alpha[left], length[left]
            away = here.away(tried, which[left], trial(tried, which[left]))
            with np.errstate(divide="ignore", invalid="ignore"):
                curvature = 2.0 * away / (tried * unit) ** 2
                better = np.clip(ETA / (curvature * unit), 0.1 * tried, 0.5 * tried)
            good = away <= 0.5 * ETA * tried * unit
            self.curvature[members[left]] = np.where(np.isfinite(curvature), curvature, 0.0)
            alpha[left] = np.where(good, tried, np.where(np.isfinite(away), better, 0.3 * tried))
            left = left[~good & (alpha[left] >= SMALLEST_DAMPING)]
            if not len(left):
                break
        alpha[left] = 0.0
        return np.where(alpha < SMALLEST_DAMPING, 0.0, alpha)


class SumLevel:
    """T1 (A1) with weights above the multipliers, minimised over halvings of the step (A2)."""

    def __init__(self, members: int) -> None:
        self.weights: list[Array | None] = [None] * members  # beta^i (N - 1, n)
        self.of_conditions: list[Array | None] = [None] * members  # beta^i (c,) of further conditions

    def forget(self, members: Numbers) -> None:
        for member in members.tolist():
            self.weights[member] = self.of_conditions[member] = None

    def damping(self, here: Inverse, which: Numbers, trial: Trial, members: Numbers) -> Array:
        weights = _raised(self.weights, SLOPES_SAFETY * np.abs(here.multipliers(which)), members)

        def level(residuals: Residuals, some: Numbers) -> Array:
            if here.held is None:
                return t1(residuals, weights[some])
            lacking = violated(residuals.conditions, here.held.exact)
            return t1(residuals, weights[some], (of_conditions[some] * lacking).sum(axis=1))

        if here.held is not None:
            slopes = np.abs(here.held.multipliers[which])
            of_conditions = _raised(self.of_conditions, SLOPES_SAFETY * slopes, members)
        best = level(here.residuals.take(which), np.arange(len(members)))
        at_best = np.zeros(len(members))
        left, alpha = np.arange(len(members)), 1.0
        while alpha >= SMALLEST_DAMPING and len(left):
            tried = trial(np.full(len(left), alpha), which[left])
            value = level(scaled_residuals(tried, here.scales.take(which[left])), left)
            better = value < best[left]
            best[left] = np.where(better, value, best[left])
            at_best[left] = np.where(better, alpha, at_best[left])
            left = left[better | (at_best[left] == 0.0)]
            alpha *= 0.5
        return at_best


def _raised(weights: list[Array | None], needed: Array, members: Numbers) -> Array:
    """The weights of these members, raised where the multipliers ask for more."""
    for k, member in enumerate(members):
        before = weights[member]
        weights[member] = needed[k] if before is None else np.maximum(before, needed[k])
    return np.stack([weights[member] for member in members])


def t1(residuals: Residuals, weights: Array, conditions: Array | float = 0.0) -> Array:
    """1/2 ||F1||^2 + sum beta^i |F2^i| (A1) per member; infinite where it cannot be computed.

    conditions (M,): what conditions add, of which an inequality counts as far as it is not met.
    """
    value: Array = 0.5 * residuals.objective() + (weights * np.abs(residuals.links)).sum(axis=(1, 2))
    value = value + conditions
    return np.where(np.isfinite(value), value, np.inf)


LEVELS: dict[str, type[NaturalLevel] | type[SumLevel]] = {"natural": NaturalLevel, "T1": SumLevel}
