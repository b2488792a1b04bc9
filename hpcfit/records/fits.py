"""Fits, one by one and in ensembles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.records.arrays import Array
from hpcfit.records.outcomes import Outcome
from hpcfit.records.paths import Series


@dataclass(frozen=True)
class Iteration:
    """One step of a fit; lengths are in units of the states and of what the parameters do in one interval."""

    phase: str  # presolve | weak | exact
    objective: float  # sum of squares of the weighted residuals at its begin
    defect: float  # largest discontinuity
    increment: float  # length of the whole step
    damping: float  # the part of it that was taken
    rank: int
    multipliers: tuple[float, ...] = ()  # of the constraints; NaN where one is not active


@dataclass(frozen=True)
class Estimates:
    """Named estimates with their covariance, the common factor of the errors included."""

    names: tuple[str, ...]
    values: Array  # (k,)
    covariance: Array  # (k, k)

    @property
    def errors(self) -> Array:
        """Standard errors (k,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))  # rounding may lead below zero

    @property
    def correlations(self) -> Array:
        """(k, k); NaN beside an estimate without an error."""
        errors = self.errors
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.covariance / np.outer(errors, errors)

    def part(self, names: Sequence[str]) -> Estimates:
        """Some of them."""
        places = {name: k for k, name in enumerate(self.names)}
        index = [places[name] for name in names]
        return Estimates(tuple(names), self.values[index], self.covariance[np.ix_(index, index)])

    def by_name(self) -> dict[str, float]:
        return {name: float(value) for name, value in zip(self.names, self.values, strict=True)}


@dataclass(frozen=True)
class Constraint:
    """A condition on a fit, and how it stands at the solution."""

    text: str  # as it was given, of one experiment
    exact: bool  # an equality
    value: float  # left - right of an equality; how far an inequality is from its bound, negative if not met
    active: bool  # it holds as an equality
    multiplier: float  # how fast half the objective grows with what the condition demands; 0 if not active
    error: float  # standard error of the multiplier; NaN if not active
    bounds: str = ""  # the unknown that it alone is about

    @property
    def pull(self) -> float:
        """How many standard errors the data pull against it; NaN if it is not active."""
        return self.multiplier / self.error if self.error > 0.0 else float("nan")


@dataclass(frozen=True)
class Pieces:
    """A path cut at the nodes: what a picture of it needs."""

    times: Array  # (n_intervals, n_points)
    states: Array  # (n_intervals, n_points, n)
    nodes: NDArray[np.int64] | None = None  # (n_intervals,) where they begin; None: a piece for each interval


@dataclass(frozen=True)
class Stretch:
    """Consecutive data times of one experiment."""

    experiment: int
    first: int
    last: int  # included


@dataclass(frozen=True)
class Extent:
    """Which nodes and which data a rank has of a fit that is spread over ranks: some in a row of each."""

    nodes: int  # of all ranks
    first_node: int
    rows: NDArray[np.int64]  # (n_experiments,) data times of all ranks
    first_rows: NDArray[np.int64]  # (n_experiments,)


@dataclass(frozen=True)
class FitResult:
    """A fit: estimates, how well the data determine them, and the way to them.

    `unknowns` are the initial states of every experiment (x, or x@2 in the second) and the free parameters,
    of which local ones have a value for each experiment (k@1, k@2, ...). With an `extent`, experiments,
    residuals and nodes are those of one rank.
    """

    model: str
    state_names: tuple[str, ...]
    parameter_names: tuple[str, ...]  # free
    fixed: Mapping[str, float]
    outcome: Outcome
    cause: str  # which unknowns are not determined, where the path failed
    unknowns: Estimates
    derived: Estimates  # expressions of the initial state and the parameters; the invariant
    experiments: tuple[Series, ...]
    weights: Mapping[str, float]  # by observed name; 0 = not considered
    residuals: tuple[Array, ...]  # per experiment (n_times, n_names), in units of sigma; NaN = no value
    node_times: Array  # (N,)
    node_experiments: NDArray[np.int64]  # (N,)
    nodes: Array  # (N, n)
    node_errors: Array  # (N, n)
    guess: Mapping[str, float]
    initial: Pieces  # with the guess, from the first nodes: discontinuous
    final: Pieces
    objective: float
    degrees_of_freedom: int
    sigma_known: bool
    gamma: float  # Fisher factor (5.9) of joint 95 % intervals
    t95: float  # quantile of single 95 % intervals
    iterations: int  # of the exact phase
    linearisations: int  # of all phases
    history: tuple[Iteration, ...]
    solver: str
    seconds: float
    solver_log: str = ""  # what the solver says of its own work: PETSc's log view
    truth: Mapping[str, float] = field(default_factory=dict)  # of unknowns and derived, where it is known
    units: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    member: int = 0
    strategy: tuple[str, ...] = ()  # the phases of every attempt, and why it was made
    extent: Extent | None = None  # None: this is the whole
    constraints: tuple[Constraint, ...] = ()
    noise_levels: Mapping[str, float] = field(default_factory=dict)  # estimated: sigma, or factors of it
    noise_level_errors: Mapping[str, float] = field(default_factory=dict)  # standard errors

    @property
    def at_bounds(self) -> dict[str, str]:
        """The unknowns that a constraint alone holds, with that constraint."""
        return {each.bounds: each.text for each in self.constraints if each.active and each.bounds}

    time_shifts: tuple[Array, ...] = ()  # per experiment (n_times,) from the nominal times; (): all are exact

    @property
    def converged(self) -> bool:
        return self.outcome is Outcome.CONVERGED

    @property
    def beta2(self) -> float:
        """The common factor of the variances, estimated."""
        return self.objective / self.degrees_of_freedom if self.degrees_of_freedom > 0 else float("nan")

    @property
    def parameters(self) -> dict[str, float]:
        return self.unknowns.part(self.parameter_names).by_name()

    @property
    def initial_states(self) -> dict[str, float]:
        names = self.unknowns.names[: len(self.unknowns.names) - len(self.parameter_names)]
        return self.unknowns.part(names).by_name()

    @property
    def errors(self) -> dict[str, float]:
        """Standard errors of all unknowns and derived quantities."""
        return {
            name: float(error)
            for each in (self.unknowns, self.derived)
            for name, error in zip(each.names, each.errors, strict=True)
        }

    @property
    def covariance(self) -> Array:
        """Of the parameters (q, q)."""
        return self.unknowns.part(self.parameter_names).covariance

    def confidence(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Interval of each unknown and derived quantity by itself."""
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level))
        values = self.unknowns.by_name() | self.derived.by_name()
        return {
            name: (values[name] - quantile * error, values[name] + quantile * error)
            for name, error in self.errors.items()
        }


@dataclass(frozen=True)
class EnsembleResult:
    """Many fits of one job, each with its own noise, perhaps in every cell of a grid: one row a member.

    Of spectra (`of`) the unknowns of a row are the exponents and what follows from them.
    """

    model: str
    names: tuple[str, ...]  # unknowns: initial states and parameters
    parameter_names: tuple[str, ...]
    members: NDArray[np.int64]  # (M,)
    outcomes: tuple[Outcome, ...]  # (M,)
    estimates: Array  # (M, k)
    errors: Array  # (M, k)
    objective: Array  # (M,)
    degrees_of_freedom: NDArray[np.int64]  # (M,)
    iterations: NDArray[np.int64]  # (M,)
    linearisations: NDArray[np.int64]  # (M,)
    truth: Mapping[str, float]
    seed: int
    seconds: float
    units: Mapping[str, str] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values by key, the last varies fastest
    cell_truth: Mapping[str, Array] = field(default_factory=dict)  # (cells,) where cells differ in it
    of: str = "fit"  # fit | lyapunov

    @property
    def cells(self) -> NDArray[np.int64]:
        """The cell of every member (M,): realisation by realisation through all cells."""
        return (self.members - 1) % math.prod(map(len, self.grid.values()))

    def true(self, name: str) -> Array:
        """What the data were simulated with (M,); NaN where it is not known."""
        if name in self.cell_truth:
            return self.cell_truth[name][self.cells]
        return np.full(len(self.members), self.truth.get(name, np.nan))

    @property
    def success(self) -> Outcome:
        """How a member ends that is as it should be."""
        return Outcome.DONE if self.of == "lyapunov" else Outcome.CONVERGED

    @property
    def converged(self) -> bool:
        return all(outcome is self.success for outcome in self.outcomes)
