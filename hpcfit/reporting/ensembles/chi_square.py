"""Whether the objectives of the members are distributed as chance would have them.

All of this supposes that the standard deviations of the data are known and that no weights change them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.members import good

IMPLAUSIBLE = 1e-6  # a smaller probability of the objective makes a member suspicious
BAND = 0.999


@dataclass(frozen=True)
class ChiSquareTest:
    """Objectives of converged members against the chi-square distribution; NaN = nothing to test."""

    members: int
    beta2: float  # mean of objective / degrees of freedom
    chance: float  # standard deviation of this mean, expected
    implausible: int  # members whose objective has a probability below IMPLAUSIBLE
    distance: float  # Kolmogorov and Smirnov, of the probabilities from the uniform distribution
    probability: float  # of such a distance or a larger one


def probabilities(ensemble: EnsembleResult) -> Array:
    """That chance makes the objective larger (M,); NaN where a member did not converge or has no freedom."""
    from scipy.special import chdtrc

    usable = good(ensemble) & (ensemble.degrees_of_freedom > 0) & (ensemble.objective >= 0.0)
    found = np.full(len(ensemble.members), np.nan)
    found[usable] = chdtrc(ensemble.degrees_of_freedom[usable], ensemble.objective[usable])
    return found


def beta2(ensemble: EnsembleResult) -> Array:
    """Objective / degrees of freedom (M,); NaN without any."""
    freedom = ensemble.degrees_of_freedom
    ratio: Array = np.where(freedom > 0, ensemble.objective / np.maximum(freedom, 1), np.nan)
    return ratio


def chi_square_test(ensemble: EnsembleResult) -> ChiSquareTest:
    """Mean, suspicious members and distribution of the objectives."""
    chances = probabilities(ensemble)
    usable = ~np.isnan(chances)
    count = int(usable.sum())
    variances = 2.0 / ensemble.degrees_of_freedom[usable]
    distance = uniform_distance(chances[usable])
    return ChiSquareTest(
        members=count,
        beta2=float(beta2(ensemble)[usable].mean()) if count else np.nan,
        chance=float(np.sqrt(variances.mean() / count)) if count else np.nan,
        implausible=int((chances[usable] < IMPLAUSIBLE).sum()),
        distance=distance,
        probability=distance_probability(distance, count),
    )


def uniform_distance(values: Array) -> float:
    """Largest distance of the empirical distribution of (M,) from the uniform one on [0, 1]."""
    count = len(values)
    if not count:
        return float("nan")
    ordered, steps = np.sort(values), np.arange(count + 1) / count
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def distance_probability(distance: float, count: int) -> float:
    """Of a distance this large among `count` uniform numbers; for few of them after Stephens (1970)."""
    from scipy.special import kolmogorov

    return float(kolmogorov(_effective(count) * distance)) if count else float("nan")


def distance_band(count: int) -> float:
    """The distance within which uniform numbers stay with probability BAND."""
    from scipy.special import kolmogi

    return float(kolmogi(1.0 - BAND) / _effective(count)) if count else float("nan")


def _effective(count: int) -> float:
    """Stephens (1970): makes the limit for many numbers good for few."""
    root = float(np.sqrt(count))
    return root + 0.12 + 0.11 / root
