"""A thousand noise realisations (seeds 1..1000, none skipped) under constraints: are errors true?"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, halfnorm, kstest, t

from hpcfit import Noise, fit, simulate
from hpcfit.models.strings import model_from_strings
from hpcfit.records import FitResult

pytestmark = pytest.mark.science
SEEDS = 1000
TRUTH = {"x": 1.0, "y": 0.0, "w": 1.0, "c": 0.0}  # y is known, c lies at its bound
OSCILLATOR = model_from_strings(
    "oscillator", states=["x", "y"], parameters=["w", "c"], equations={"x": "y", "y": "-w*x - c*y"}
)


@cache
def fits() -> list[FitResult]:
    found = []
    for seed in range(1, SEEDS + 1):
        series = simulate(
            OSCILLATOR,
            start=[1.0, 0.0],
            parameters=[1.0, 0.0],
            times=0.25 * np.arange(40),
            noise=Noise(sd=0.05),
            seed=seed,
        ).observed
        assert series is not None
        found.append(
            fit(OSCILLATOR, series, guess={"w": 1.5, "c": 0.2}, constraints=["c >= 0", "y@start = 0"])
        )
    return found


def within_band(count: int, total: int, probability: float) -> bool:
    """Whether a count lies in the 99.9 % binomial band."""
    low, high = binom.interval(0.999, total, probability)
    return bool(low <= count <= high)


def test_every_fit_converges_and_half_of_them_end_at_the_bound() -> None:
    assert all(each.converged for each in fits())
    at_bound = sum("c" in each.at_bounds for each in fits())
    assert within_band(at_bound, SEEDS, 0.5), at_bound


@pytest.mark.parametrize("held", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(held: bool) -> None:
    """Of w, which c hardly touches, with the bound active and without; those held are right as they stand."""
    own = [each for each in fits() if ("c" in each.at_bounds) == held]
    inside = sum(
        abs(each.parameters["w"] - TRUTH["w"]) <= t.ppf(0.975, each.degrees_of_freedom) * each.errors["w"]
        for each in own
    )
    assert within_band(inside, len(own), 0.95), (inside, len(own))
    assert all(each.errors["y"] == 0.0 and each.initial_states["y"] == 0.0 for each in own)


def test_pulls_are_those_of_chance() -> None:
    """At a bound that is true the pull is half normal, and that of a true equality is normal."""
    bounds = [each.constraints[0].pull * np.sqrt(each.beta2) for each in fits() if "c" in each.at_bounds]
    assert kstest(bounds, halfnorm.cdf).pvalue > 1e-3
    equal = [each.constraints[1].pull * np.sqrt(each.beta2) for each in fits()]
    assert kstest(np.abs(equal), halfnorm.cdf).pvalue > 1e-3
