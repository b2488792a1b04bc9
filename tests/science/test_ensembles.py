"""A thousand noise realisations (members 1..1000, none skipped) of each scenario: do fits succeed, are the
error bars true?
"""

from functools import cache

import numpy as np
import pytest
from scipy.special import chdtrc, stdtrit

from hpcfit.commands.loading import load
from hpcfit.commands.work import run_ensemble
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import EnsembleResult, Outcome
from hpcfit.studies.fit import fit
from hpcfit.studies.simulate import simulate
from jobs.papers import scenarios

pytestmark = pytest.mark.science
MEMBERS = 1000
SCENARIOS = ("S18", "S19", "S21", "S26", "S33", "L3", "R3")


@cache
def ensemble(name: str) -> EnsembleResult:
    asked = ['kind="ensemble"', 'ensemble.of="fit"', f"ensemble.members={MEMBERS}", "fit.derived={}"]
    return run_ensemble(SERIAL, load(scenarios()[name], asked))


def standardised(result: EnsembleResult) -> np.ndarray:
    """(estimate - truth) / error of the parameters (M, q)."""
    columns = [result.names.index(name) for name in result.parameter_names]
    truth = np.array([result.truth[name] for name in result.parameter_names])
    return (result.estimates[:, columns] - truth) / result.errors[:, columns]


def succeeded(result: EnsembleResult) -> np.ndarray:
    """Converged, every parameter within five errors of the truth, and a chi-square that can be (M,)."""
    converged = np.array([outcome is Outcome.CONVERGED for outcome in result.outcomes])
    near = (np.abs(standardised(result)) < 5.0).all(axis=1)
    return converged & near & (chdtrc(result.degrees_of_freedom, result.objective) > 1e-6)


def coverage(result: EnsembleResult) -> np.ndarray:
    """The part of the members whose single 95 % interval holds the truth (q,)."""
    quantile = stdtrit(result.degrees_of_freedom, 0.975)
    return (np.abs(standardised(result)) < quantile[:, None]).mean(axis=0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_member_succeeds(name):
    assert succeeded(ensemble(name)).sum() == MEMBERS


@pytest.mark.parametrize("name", SCENARIOS)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    """93 to 97 of 100; the binomial standard deviation is 0.7."""
    found = coverage(ensemble(name))
    assert ((found > 0.93) & (found < 0.97)).all(), found


def test_one_component_alone_is_reported_as_it_is(capsys):
    """S34: the sum of squares hardly depends on c, as its profile shows; most members converge."""
    result = ensemble("S34")
    converged = sum(outcome is Outcome.CONVERGED for outcome in result.outcomes)
    job = load(scenarios()["S34"]).job
    model, truth, times = job.model, job["truth"], 0.2 * np.arange(100)
    data = simulate(
        model,
        start=truth["start"],
        parameters=truth["parameters"],
        times=times,
        noise=truth["noise"],
        seed=job.seed,
    ).observed
    guess = {name: value for name, value in job["guess"].items() if name != "c"}
    options = {"guess": guess, "weights": job["fit"]["weights"], "max_iterations": 300}
    profile = {
        c: fit(model, data, fixed={"c": c}, **options) for c in (-2.0, -1.65, -1.3, -0.95, -0.6, -0.25)
    }
    with capsys.disabled():
        print(
            f"\nS34: {converged} of {MEMBERS} converge, {succeeded(result).sum()} succeed, "
            f"coverage {coverage(result)}"
        )
        for c, each in profile.items():
            print(
                f"  c = {c:5}: sum of squares {each.objective:.3f}, a = {each.parameters['a']:.3f}, "
                f"b = {each.parameters['b']:.3f}, {each.outcome.value}"
            )
    assert converged > 0.85 * MEMBERS
    squares = [each.objective for each in profile.values()]
    assert max(squares) - min(squares) < 20.0  # c from -2 to -0.25: what a few sigma do elsewhere
