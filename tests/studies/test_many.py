"""Many experiments that share their parameters: the answer of one big problem, whatever solves it."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.models.catalogue import find
from hpcfit.records import FitResult
from hpcfit.shooting.experiments import Experiment
from hpcfit.studies.fit import fit
from hpcfit.studies.simulate import simulate

LORENZ = find("lorenz")
TRUTH = {"sigma": 10.0, "r": 28.0, "b": 8.0 / 3.0}
GUESS = {"sigma": 8.0, "r": 20.0, "b": 2.0}


def experiment(number: int, length: int) -> Experiment:
    """Another start, another noise, every third without z; one value is missing."""
    rng = np.random.default_rng(number)
    start, times = 5.0 * rng.normal(size=3) + [0.0, 0.0, 25.0], 0.05 * np.arange(length)
    path = simulate(LORENZ, start=start, parameters=TRUTH, times=times).states
    noisy = path + rng.normal(size=path.shape)
    noisy[3, 1] = np.nan
    names = "xy" if number % 3 == 2 else "xyz"
    return Experiment(times, {name: noisy[:, "xyz".index(name)] for name in names}, sigma=1.0)


def fitted(experiments: list[Experiment], solver: str | None = None) -> FitResult:
    result = fit(LORENZ, experiments, guess=GUESS, solver=solver)
    assert result.converged
    return result


@pytest.mark.parametrize("solver", [None, "petsc"])
def test_the_answer_is_that_of_one_big_dense_problem(solver: str | None) -> None:
    several = [experiment(number, 20 + 7 * (number % 4)) for number in range(18)]
    ours, reference = fitted(several, solver), fitted(several, "reference")
    np.testing.assert_allclose(ours.unknowns.values, reference.unknowns.values, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ours.unknowns.errors, reference.unknowns.errors, rtol=1e-7)
    size = np.outer(reference.unknowns.errors, reference.unknowns.errors)
    assert np.abs((ours.unknowns.covariance - reference.unknowns.covariance) / size).max() < 1e-7
    np.testing.assert_allclose(ours.node_errors, reference.node_errors, rtol=1e-7)
    assert ours.objective == pytest.approx(reference.objective, rel=1e-9)


def test_a_thousand_experiments_are_one_fit() -> None:
    result = fitted([experiment(3 * number, 50) for number in range(1_000)])
    assert len(result.unknowns.names) == 3_003
    for name, estimate in result.parameters.items():
        assert abs(estimate - TRUTH[name]) < 5.0 * result.errors[name]
    assert result.beta2 == pytest.approx(1.0, abs=5.0 * np.sqrt(2.0 / result.degrees_of_freedom))
