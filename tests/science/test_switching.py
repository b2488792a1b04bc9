"""Fits of models with jumps, switches and dry friction: a thousand noise realisations (members 1..1000, none
skipped) of each example; do they succeed, are the error bars true?
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from hpcfit.commands.loading import load
from hpcfit.commands.work import run_ensemble
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import EnsembleResult
from tests.conftest import ROOT
from tests.science.test_ensembles import coverage, succeeded

pytestmark = pytest.mark.science
MEMBERS = 1000
EXAMPLES = ("bouncing_ball", "relay", "coulomb_pendulum", "dosing", "stick_slip")


@cache
def ensemble(name: str) -> EnsembleResult:
    asked = ['kind="ensemble"', 'ensemble.of="fit"', f"ensemble.members={MEMBERS}", "fit.derived={}"]
    return run_ensemble(SERIAL, load(ROOT / "jobs" / "examples" / f"{name}.toml", asked))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_member_succeeds(name):
    assert succeeded(ensemble(name)).sum() == MEMBERS


@pytest.mark.parametrize("name", EXAMPLES)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    """Coverage of 95 % intervals inside the 99.9 % band of the binomial distribution, for every parameter."""
    lowest, highest = binom.ppf([0.0005, 0.9995], MEMBERS, 0.95) / MEMBERS
    found = coverage(ensemble(name))
    assert ((found >= lowest) & (found <= highest)).all(), np.round(found, 3)
