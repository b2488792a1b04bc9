"""The numbers that stand for an ensemble of fits; only converged members count."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, EnsembleResult, Outcome
from hpcfit.reporting.ensembles.chi_square import IMPLAUSIBLE, ChiSquareTest, chi_square_test
from hpcfit.reporting.ensembles.coverage import Coverage, coverages, student_quantiles
from hpcfit.reporting.ensembles.members import column, good, outcomes, unknowns
from hpcfit.reporting.layout import matched, number


@dataclass(frozen=True)
class Row:
    """One unknown over the members; NaN = not known."""

    group: str  # parameter | initial state
    name: str
    members: int
    mean: float
    truth: float
    bias: float  # of the mean, in its standard errors
    spread: float  # standard deviation of the estimates
    error: float  # mean of the errors that the members predict
    rms_error: float  # the root of their mean square
    coverages: tuple[Coverage, ...]  # none without a truth or without intervals
    unit: str

    @property
    def ratio(self) -> float:
        """Spread over error; squares are compared, as the mean of correct errors is a little too small."""
        return self.spread / self.rms_error if self.rms_error > 0.0 else float("nan")

    @property
    def chance(self) -> float:
        """Standard deviation of the ratio among normal estimates with correct errors."""
        return 1.0 / np.sqrt(2.0 * (self.members - 1)) if self.members > 1 else float("nan")

    @property
    def coverage95(self) -> float:
        return next((each.observed for each in self.coverages if each.level == 0.95), float("nan"))


def rows(ensemble: EnsembleResult) -> list[Row]:
    """Parameters, then initial states."""
    picked = good(ensemble)
    quantiles = student_quantiles(ensemble.degrees_of_freedom[picked])
    return [_row(ensemble, name, picked, quantiles) for name in unknowns(ensemble)]


def _row(ensemble: EnsembleResult, name: str, picked: NDArray[np.bool_], quantiles: Array) -> Row:
    values, errors, deviations = column(ensemble, name, picked)
    count, truth = len(values), float(ensemble.truth.get(name, np.nan))
    mean = float(values.mean()) if count else np.nan
    spread = float(values.std(ddof=1)) if count > 1 else np.nan
    return Row(
        group="parameter" if name in ensemble.parameter_names else "initial state",
        name=name,
        members=count,
        mean=mean,
        truth=truth,
        bias=(mean - truth) / (spread / np.sqrt(count)) if spread > 0.0 else np.nan,
        spread=spread,
        error=float(errors.mean()) if count else np.nan,
        rms_error=float(np.sqrt((errors**2).mean())) if count else np.nan,
        coverages=() if np.isnan(deviations).all() else coverages(deviations, quantiles),
        unit=ensemble.units.get(name, ensemble.units.get(name.partition("@")[0], "")),
    )


def median(values: NDArray[np.int64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def successes(ensemble: EnsembleResult, test: ChiSquareTest) -> list[tuple[str, int]]:
    """Members by outcome; below the converged ones those of them that are suspicious."""
    found = []
    for outcome, count in outcomes(ensemble).items():
        found.append((outcome.value, count))
        if outcome is Outcome.CONVERGED:
            least = np.format_float_scientific(IMPLAUSIBLE, trim="-", exp_digits=1)
            found.append((f"  but chi-square probability < {least}", test.implausible))
    return found


def facts(ensemble: EnsembleResult, test: ChiSquareTest | None = None) -> list[tuple[str, str]]:
    """The main numbers in words."""
    picked, test = good(ensemble), test or chi_square_test(ensemble)
    iterations, linearisations = (
        number(median(each[picked])) for each in (ensemble.iterations, ensemble.linearisations)
    )
    mean = f"{matched(test.beta2, 10.0 * test.chance)}, expected 1 ± {number(test.chance, 2)}"
    if ensemble.grid:  # cells share their noise: a test of all members together would be wrong
        cells = math.prod(map(len, ensemble.grid.values()))
        if ensemble.of == "lyapunov":
            return [
                ("spectra", f"{cells:,} cells of {', '.join(ensemble.grid)}"),
                ("done", f"{int(picked.sum()):,}"),
                ("time", f"{ensemble.seconds:.3g} s"),
            ]
        return [
            ("members", f"{len(ensemble.members):,}, {cells:,} cells of {', '.join(ensemble.grid)}"),
            ("converged", f"{int(picked.sum()):,}"),
            ("median iterations", f"{iterations} exact, {linearisations} linearisations in all"),
            ("solve time", f"{ensemble.seconds:.3g} s"),
            ("seed", str(ensemble.seed)),
        ]
    return [
        ("members", f"{len(ensemble.members):,}"),
        ("converged", f"{int(picked.sum()):,}"),
        ("median iterations", f"{iterations} exact, {linearisations} linearisations in all"),
        ("mean beta^2", mean if test.members else "–"),
        ("chi-square test", f"probability {number(test.probability, 3)}" if test.members else "–"),
        ("solve time", f"{ensemble.seconds:.3g} s"),
        ("seed", str(ensemble.seed)),
    ]
