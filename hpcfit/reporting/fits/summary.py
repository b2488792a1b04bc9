"""The numbers that stand for a fit, for all kinds of pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, FitResult, Series

GROUPS = ("parameter", "initial state", "derived")


@dataclass(frozen=True)
class Row:
    """One estimate with all that is known of it; NaN = not known."""

    group: str  # one of GROUPS
    name: str
    estimate: float
    error: float
    single: float  # half width of the 95 % interval of this one alone
    joint: float  # of the joint 95 % region
    guess: float
    truth: float
    unit: str

    @property
    def deviation(self) -> float:
        """Distance from the truth in standard errors."""
        return (self.estimate - self.truth) / self.error if self.error > 0.0 else float("nan")

    def interval(self, half: float) -> tuple[float, float]:
        return self.estimate - half, self.estimate + half


def rows(fit: FitResult) -> list[Row]:
    """Parameters, initial states and derived quantities, in this order."""
    states = tuple(name for name in fit.unknowns.names if name not in fit.parameter_names)
    begins = dict(fit.guess) | dict(zip(states, first_states(fit).ravel(), strict=False))
    parts = (fit.unknowns.part(fit.parameter_names), fit.unknowns.part(states), fit.derived)
    nothing = float("nan")
    return [
        Row(
            group,
            name,
            float(value),
            float(error),
            fit.t95 * float(error),
            fit.gamma * float(error),
            float(begins.get(name, nothing)),
            float(fit.truth.get(name, nothing)),
            unit_of(fit, name),
        )
        for group, part in zip(GROUPS, parts, strict=True)
        for name, value, error in zip(part.names, part.values, part.errors, strict=True)
    ]


def unit_of(fit: FitResult, name: str) -> str:
    """The unit of a quantity; x@2 has that of x."""
    return fit.units.get(name, fit.units.get(name.partition("@")[0], ""))


def piece_experiments(fit: FitResult) -> NDArray[np.int64]:
    """Which experiment each piece of the path belongs to (n_intervals,)."""
    linked = fit.node_experiments[1:] == fit.node_experiments[:-1]
    return fit.node_experiments[:-1][linked]


def first_states(fit: FitResult) -> Array:
    """Where the initial states of every experiment began (n_experiments, n)."""
    own = piece_experiments(fit)
    if len(own) != len(fit.initial.states):
        return np.zeros((0, len(fit.state_names)))
    _, first = np.unique(own, return_index=True)
    return fit.initial.states[first, 0]


def n_values(fit: FitResult) -> int:
    """How many data the fit considers."""
    return sum(int(used.sum()) for used in considered(fit))


def considered(fit: FitResult) -> list[NDArray[np.bool_]]:
    """Which data take part in the fit, per experiment (n_times, n_names)."""
    found = []
    for series in fit.experiments:
        weights = np.array([fit.weights.get(name, 1.0) for name in series.names])
        used = np.isfinite(series.values) & (weights > 0.0)
        found.append(used if series.sigma is None else used & np.isfinite(series.sigma))
    return found


def probability(fit: FitResult) -> float:
    """That chance makes the objective larger than this; NaN where the data's errors are not known."""
    from scipy.special import chdtrc

    plain = all(weight in (0.0, 1.0) for weight in fit.weights.values())
    if not (fit.sigma_known and plain and fit.degrees_of_freedom > 0):
        return float("nan")
    return float(chdtrc(fit.degrees_of_freedom, fit.objective))


def sigma(fit: FitResult, series: Series) -> Array:
    """Standard deviations of data (n_times, n_names): as stated, or as the residuals tell."""
    if series.sigma is not None:
        return series.sigma
    weights = np.array([fit.weights.get(name, 1.0) for name in series.names])
    with np.errstate(divide="ignore"):
        return np.broadcast_to(np.sqrt(fit.beta2) / weights, series.values.shape)


def standardised(fit: FitResult) -> list[Array]:
    """Residuals in standard deviations, per experiment (n_times, n_names); NaN = not considered."""
    found = []
    for series, residuals, used in zip(fit.experiments, fit.residuals, considered(fit), strict=True):
        scale = 1.0 if series.sigma is not None else sigma(fit, series)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.where(used, residuals / scale, np.nan))
    return found


def fitted(fit: FitResult, experiment: int) -> Array:
    """The fitted values of what was observed, at the times of the data (n_times, n_names)."""
    series, residuals = fit.experiments[experiment], fit.residuals[experiment]
    return series.values - residuals * (1.0 if series.sigma is None else series.sigma)


def strongest(fit: FitResult, most: int = 5) -> list[tuple[str, str, float]]:
    """The pairs of unknowns with the largest correlations."""
    names, table = fit.unknowns.names, fit.unknowns.correlations
    first, second = np.triu_indices(len(names), 1)
    sizes = np.nan_to_num(np.abs(table[first, second]))
    order = np.argsort(-sizes, kind="stable")[:most]
    pairs = [(int(first[k]), int(second[k])) for k in order if sizes[k] > 0.0]
    return [(names[i], names[j], float(table[i, j])) for i, j in pairs]


def status(fit: FitResult) -> str:
    """How the fit ended, with the cause."""
    return fit.outcome.value + (f" ({fit.cause})" if fit.cause else "")


def facts(fit: FitResult) -> list[tuple[str, str]]:
    """The main numbers in words."""
    chance = probability(fit)
    verdict = "" if np.isnan(chance) else f", chi-square probability {chance:.3g}"
    experiments = f" in {len(fit.experiments):,} experiments" if len(fit.experiments) > 1 else ""
    found = [
        ("data", f"{n_values(fit):,} values{experiments}"),
        ("unknowns", f"{len(fit.unknowns.names):,}"),
        ("degrees of freedom", f"{fit.degrees_of_freedom:,}"),
        ("objective", f"{fit.objective:.6g}"),
        ("beta^2", f"{fit.beta2:.4g}{verdict}"),
        ("iterations", f"{fit.iterations:,} exact, {fit.linearisations:,} linearisations in all"),
        *([("strategy", "; then ".join(fit.strategy))] if fit.strategy else []),
        ("solve time", f"{fit.seconds:.3g} s, {fit.solver}"),
    ]
    return found + ([] if fit.seed is None else [("seed", f"{fit.seed}, member {fit.member}")])
