"""The numbers that stand for an ensemble of fits; only converged members count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, EnsembleResult, Outcome


@dataclass(frozen=True)
class Row:
    """One unknown over the members; NaN = not known."""

    group: str  # parameter | initial state
    name: str
    mean: float
    truth: float
    bias: float  # of the mean, in its standard errors
    spread: float  # standard deviation of the estimates
    error: float  # mean of the errors that the members predict
    coverage: float  # part of the single 95 % intervals that hold the truth
    unit: str

    @property
    def ratio(self) -> float:
        return self.spread / self.error if self.error > 0.0 else float("nan")


def outcomes(ensemble: EnsembleResult) -> dict[Outcome, int]:
    """How many members ended how, the most frequent first."""
    return dict(Counter(ensemble.outcomes).most_common())


def good(ensemble: EnsembleResult) -> NDArray[np.bool_]:
    """Members that converged (M,)."""
    return np.array([outcome is Outcome.CONVERGED for outcome in ensemble.outcomes], dtype=bool)


def rows(ensemble: EnsembleResult) -> list[Row]:
    """Parameters, then initial states."""
    states = tuple(name for name in ensemble.names if name not in ensemble.parameter_names)
    return [_row(ensemble, name) for name in (*ensemble.parameter_names, *states)]


def _row(ensemble: EnsembleResult, name: str) -> Row:
    values, errors, deviations = column(ensemble, name)
    count, truth = len(values), float(ensemble.truth.get(name, np.nan))
    mean = float(values.mean()) if count else np.nan
    spread = float(values.std(ddof=1)) if count > 1 else np.nan
    quantiles = single_factors(ensemble)[good(ensemble)]
    return Row(
        group="parameter" if name in ensemble.parameter_names else "initial state",
        name=name,
        mean=mean,
        truth=truth,
        bias=(mean - truth) / (spread / np.sqrt(count)) if spread > 0.0 else np.nan,
        spread=spread,
        error=float(errors.mean()) if count else np.nan,
        coverage=float((np.abs(deviations) <= quantiles).mean()) if count and truth == truth else np.nan,
        unit=ensemble.units.get(name, ensemble.units.get(name.partition("@")[0], "")),
    )


def column(ensemble: EnsembleResult, name: str) -> tuple[Array, Array, Array]:
    """Estimates, errors, and (estimate - truth) / error of an unknown, of the converged members."""
    k, picked = ensemble.names.index(name), good(ensemble)
    values, errors = ensemble.estimates[picked, k], ensemble.errors[picked, k]
    with np.errstate(divide="ignore", invalid="ignore"):
        return values, errors, (values - ensemble.truth.get(name, np.nan)) / errors


def single_factors(ensemble: EnsembleResult) -> Array:
    """Student's quantile of each member's single 95 % intervals (M,)."""
    from scipy.special import stdtrit

    freedom = ensemble.degrees_of_freedom
    quantiles: Array = np.where(freedom > 0, stdtrit(np.maximum(freedom, 1), 0.975), np.nan)
    return quantiles


def median(values: NDArray[np.int64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def mean_beta2(ensemble: EnsembleResult) -> float:
    """Mean of objective / degrees of freedom over the converged members."""
    picked = good(ensemble) & (ensemble.degrees_of_freedom > 0)
    if not picked.any():
        return float("nan")
    return float((ensemble.objective[picked] / ensemble.degrees_of_freedom[picked]).mean())


def facts(ensemble: EnsembleResult) -> list[tuple[str, str]]:
    """The main numbers in words."""
    picked = good(ensemble)
    iterations = median(ensemble.iterations[picked])
    linearisations = median(ensemble.linearisations[picked])
    return [
        ("members", f"{len(ensemble.members):,}"),
        ("converged", f"{int(picked.sum()):,}"),
        ("median iterations", f"{iterations:g} exact, {linearisations:g} linearisations in all"),
        ("mean beta^2", f"{mean_beta2(ensemble):.4g}"),
        ("solve time", f"{ensemble.seconds:.3g} s"),
        ("seed", str(ensemble.seed)),
    ]
