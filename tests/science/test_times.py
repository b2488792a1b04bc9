"""A thousand realisations of values and times (members 1..1000, none skipped): are error bars true, and is
the estimate without bias where errors of times are modelled, and only there?
"""

from functools import cache

import numpy as np
import pytest
from scipy.special import stdtrit
from scipy.stats import binom

from hpcfit.commands.loading import load
from hpcfit.commands.work import run_ensemble
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import EnsembleResult, Outcome
from tests.conftest import ROOT

pytestmark = pytest.mark.science
MEMBERS = 1000
LOW, HIGH = binom.ppf([0.0005, 0.9995], MEMBERS, 0.95)


@cache
def ensemble(times: str) -> EnsembleResult:
    """Hénon–Heiles, sigma_t = 0.02 at a spacing of 0.2, 300 times."""
    series = "truth.times={start=0.0, spacing=0.2, count=300}"
    asked = ['kind="ensemble"', 'ensemble.of="fit"', f"ensemble.members={MEMBERS}", series]
    asked.append(f'fit.times="{times}"')
    return run_ensemble(SERIAL, load(ROOT / "jobs/examples/times.toml", asked))


def off(times: str) -> np.ndarray:
    """(estimate - truth) / error of all unknowns (M, k)."""
    found = ensemble(times)
    return (found.estimates - [found.truth[name] for name in found.names]) / found.errors


def inside(times: str) -> np.ndarray:
    """How many single 95 % intervals hold the truth (k,)."""
    quantile = stdtrit(ensemble(times).degrees_of_freedom, 0.975)
    return (np.abs(off(times)) < quantile[:, None]).sum(axis=0)


def mean_off(times: str) -> np.ndarray:
    """Bias in its own standard errors (k,)."""
    found = ensemble(times).estimates - [ensemble(times).truth[name] for name in ensemble(times).names]
    return found.mean(axis=0) / (found.std(axis=0, ddof=1) / np.sqrt(MEMBERS))


@pytest.mark.parametrize("times", ["measured", "exact"])
def test_every_member_converges(times):
    assert all(outcome is Outcome.CONVERGED for outcome in ensemble(times).outcomes)


def test_unbiased_with_true_error_bars_where_times_are_unknowns():
    assert (np.abs(mean_off("measured")) < 3.3).all(), mean_off("measured")
    assert ((inside("measured") >= LOW) & (inside("measured") <= HIGH)).all(), inside("measured")
    beta2 = ensemble("measured").objective / ensemble("measured").degrees_of_freedom
    assert abs(beta2.mean() - 1.0) < 0.01


def test_biased_with_wrong_error_bars_where_times_are_taken_as_exact():
    assert np.abs(mean_off("exact")).max() > 4.0, mean_off("exact")
    assert (inside("exact") < LOW).any(), inside("exact")
    beta2 = ensemble("exact").objective / ensemble("exact").degrees_of_freedom
    assert beta2.mean() > 3.0
