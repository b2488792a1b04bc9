"""The numbers that stand for a fit, for all kinds of pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, FitResult, Pieces
from hpcfit.reporting.fits import constraints

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
    free, nothing = set(fit.parameter_names), float("nan")
    states = [name for name in fit.unknowns.names if name not in free]
    begins = dict(fit.guess) | dict(zip(states, first_states(fit).ravel(), strict=False))
    found = {
        name: (float(value), float(error))
        for part in (fit.unknowns, fit.derived)
        for name, value, error in zip(part.names, part.values, part.errors, strict=True)
    }
    return [
        Row(
            group,
            name,
            found[name][0],
            found[name][1],
            fit.t95 * found[name][1],
            fit.gamma * found[name][1],
            float(begins.get(name, nothing)),
            float(fit.truth.get(name, nothing)),
            unit_of(fit, name),
        )
        for group, names in zip(GROUPS, (fit.parameter_names, states, fit.derived.names), strict=True)
        for name in names
    ]


def unit_of(fit: FitResult, name: str) -> str:
    """The unit of a quantity; x@2 has that of x."""
    return fit.units.get(name, fit.units.get(name.partition("@")[0], ""))


def nodes_of(fit: FitResult, experiment: int) -> slice:
    """The nodes of an experiment."""
    first, end = np.searchsorted(fit.node_experiments, (experiment, experiment + 1))
    return slice(int(first), int(end))


def pieces_of(fit: FitResult, pieces: Pieces, experiment: int) -> slice:
    """The pieces of a path that belong to an experiment."""
    own = nodes_of(fit, experiment)
    if pieces.nodes is not None:
        first, end = np.searchsorted(pieces.nodes, (own.start, own.stop))
        return slice(int(first), int(end))
    return slice(own.start - experiment, own.stop - experiment - 1)  # no piece leads to the next experiment


def first_states(fit: FitResult) -> Array:
    """Where the initial states of every experiment began (n_experiments, n); NaN where that is not known."""
    found = np.full((len(fit.experiments), len(fit.state_names)), np.nan)
    for e in range(len(found)):
        piece = pieces_of(fit, fit.initial, e).start
        known = fit.initial.nodes is None or nodes_of(fit, e).start in fit.initial.nodes[piece : piece + 1]
        if known and piece < len(fit.initial.states):
            found[e] = fit.initial.states[piece, 0]
    return found


def n_values(fit: FitResult) -> int:
    """How many data the fit considers."""
    return sum(
        int(considered(fit, e, name).sum())
        for e, series in enumerate(fit.experiments)
        for name in series.names
    )


def considered(fit: FitResult, experiment: int, name: str) -> NDArray[np.bool_]:
    """Which data of a quantity take part in the fit (n_times,)."""
    series = fit.experiments[experiment]
    if not fit.weights.get(name, 1.0) > 0.0:
        return np.zeros(len(series.times), dtype=bool)
    column = series.names.index(name)
    used = np.isfinite(series.values[:, column])
    return used if series.sigma is None else used & np.isfinite(series.sigma[:, column])


def probability(fit: FitResult) -> float:
    """That chance makes the objective larger than this; NaN where the data's errors are not known."""
    from scipy.special import chdtrc

    plain = all(weight in (0.0, 1.0) for weight in fit.weights.values())
    if not (fit.sigma_known and plain and fit.degrees_of_freedom > 0):
        return float("nan")
    return float(chdtrc(fit.degrees_of_freedom, fit.objective))


def sigma(fit: FitResult, experiment: int, name: str) -> Array:
    """Standard deviations of the data of a quantity (n_times,): as stated, or as the residuals tell."""
    series = fit.experiments[experiment]
    if series.sigma is not None:
        return series.sigma[:, series.names.index(name)]
    weight = fit.weights.get(name, 1.0)
    size = np.sqrt(fit.beta2) / weight if weight > 0.0 else float("inf")
    return np.broadcast_to(np.float64(size), series.times.shape)


def standardised(fit: FitResult, experiment: int, name: str) -> Array:
    """Residuals of a quantity in standard deviations (n_times,); NaN = not considered."""
    series = fit.experiments[experiment]
    values = fit.residuals[experiment][:, series.names.index(name)].copy()
    if series.sigma is None:
        with np.errstate(invalid="ignore", divide="ignore"):
            values /= sigma(fit, experiment, name)
    values[~considered(fit, experiment, name)] = np.nan
    return values


def fitted(fit: FitResult, experiment: int, name: str) -> Array:
    """The fitted values of what was observed, at the times of the data (n_times,)."""
    series = fit.experiments[experiment]
    column = series.names.index(name)
    size = 1.0 if series.sigma is None else series.sigma[:, column]
    return series.values[:, column] - fit.residuals[experiment][:, column] * size


def strongest(fit: FitResult, most: int = 5) -> list[tuple[str, str, float]]:
    """The pairs of unknowns with the largest correlations."""
    names, errors = fit.unknowns.names, fit.unknowns.errors
    found: list[tuple[float, int, int, float]] = []
    for i in range(len(names) - 1):  # row by row: the whole matrix of many experiments is large
        with np.errstate(divide="ignore", invalid="ignore"):
            row = fit.unknowns.covariance[i, i + 1 :] / (errors[i] * errors[i + 1 :])
        sizes = np.nan_to_num(np.abs(row))
        for j in np.argsort(-sizes, kind="stable")[:most]:
            if sizes[j] > 0.0:
                found.append((-float(sizes[j]), i, i + 1 + int(j), float(row[j])))
    return [(names[i], names[j], value) for _, i, j, value in sorted(found)[:most]]


def status(fit: FitResult) -> str:
    """How the fit ended, with the cause."""
    return fit.outcome.value + (f" ({fit.cause})" if fit.cause else "")


def _levels_found(fit: FitResult) -> list[tuple[str, str]]:
    """The noise levels that the fit has estimated, with their standard errors."""
    told = [
        f"{name} {value:.4g} +- {fit.noise_level_errors[name]:.2g}"
        for name, value in fit.noise_levels.items()
    ]
    return [("noise levels", ", ".join(told))] if told else []


def _times_found(fit: FitResult) -> list[tuple[str, str]]:
    """How far the times of observation were off, beside their standard deviations."""
    if not fit.time_shifts:
        return []
    off = np.concatenate(fit.time_shifts)
    stated = np.concatenate(
        [np.zeros(each.count) if each.sigma_t is None else each.sigma_t for each in fit.experiments]
    )
    unknown = stated > 0.0
    sizes = [np.sqrt(np.mean(each[unknown] ** 2)) for each in (off, stated)]
    told = f"{int(unknown.sum()):,} found, off by {sizes[0]:.3g} in the mean (stated errors {sizes[1]:.3g})"
    return [("times of observation", told)]


def facts(fit: FitResult) -> list[tuple[str, str]]:
    """The main numbers in words."""
    chance = probability(fit)
    verdict = "" if np.isnan(chance) else f", chi-square probability {chance:.3g}"
    experiments = f" in {len(fit.experiments):,} experiments" if len(fit.experiments) > 1 else ""
    found = [
        ("data", f"{n_values(fit):,} values{experiments}"),
        ("unknowns", f"{len(fit.unknowns.names):,}"),
        *([("constraints", constraints.fact(fit))] if fit.constraints else []),
        *_times_found(fit),
        *_levels_found(fit),
        ("degrees of freedom", f"{fit.degrees_of_freedom:,}"),
        ("objective", f"{fit.objective:.6g}"),
        ("beta^2", f"{fit.beta2:.4g}{verdict}"),
        ("iterations", f"{fit.iterations:,} exact, {fit.linearisations:,} linearisations in all"),
        *([("strategy", "; then ".join(fit.strategy))] if fit.strategy else []),
        ("solve time", f"{fit.seconds:.3g} s, {fit.solver}"),
    ]
    return found + ([] if fit.seed is None else [("seed", f"{fit.seed}, member {fit.member}")])
