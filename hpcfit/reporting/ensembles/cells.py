"""The cells of the tables of an ensemble, for terminals and for pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from hpcfit.records import EnsembleResult, Outcome
from hpcfit.reporting.ensembles.chi_square import ChiSquareTest
from hpcfit.reporting.ensembles.coverage import BAND, LEVELS, Coverage, binomial_band
from hpcfit.reporting.ensembles.summary import Row, successes
from hpcfit.reporting.ensembles.worst import Worst, rerun
from hpcfit.reporting.layout import matched, number, shortened, signed

SUCCESS_HEADER = ("outcome", "members")
ROW_HEADER = ("mean", "truth", "bias", "spread", "mean error", "ratio", "unit")
COVERAGE_HEADER = tuple(f"{100.0 * level:g} %" for level in LEVELS)
WORST_HEADER = ("member", "what", "run again")


def success_cells(ensemble: EnsembleResult, test: ChiSquareTest) -> list[tuple[str, ...]]:
    """Members by outcome."""
    return [(words, f"{count:,}") for words, count in successes(ensemble, test)]


def row_cells(row: Row) -> tuple[str, ...]:
    """One unknown, as under ROW_HEADER."""
    return (
        matched(row.mean, row.spread),
        "" if np.isnan(row.truth) else number(row.truth, 6),
        "" if np.isnan(row.bias) else signed(row.bias),
        number(row.spread, 3),
        number(row.error, 3),
        ratio_cell(row),
        row.unit,
    )


def ratio_cell(row: Row) -> str:
    """Spread / error, and how far from 1 chance takes it."""
    if np.isnan(row.ratio):
        return "–"
    return f"{matched(row.ratio, 10.0 * row.chance)} ± {number(row.chance, 2)}"


def coverage_cells(row: Row) -> tuple[str, ...]:
    """One unknown, as under COVERAGE_HEADER."""
    return tuple(coverage_cell(each) for each in row.coverages)


def coverage_cell(each: Coverage) -> str:
    """The part of the intervals that hold the truth, marked where chance does not explain it."""
    return percent(each.observed, each.members) + (" !" if each.outside else "  ")


def band_cells(rows: Sequence[Row]) -> tuple[str, ...]:
    """What chance allows at each level, for the unknown with the most intervals."""
    count = max((each.members for row in rows for each in row.coverages), default=0)
    if not count:
        return ("",) * len(LEVELS)
    bands = [binomial_band(count, level) for level in LEVELS]
    return tuple(f"{percent(low / count, count)} – {percent(high / count, count)}  " for low, high in bands)


def percent(part: float, count: int) -> str:
    """A part of `count` members in per cent, with the digits that so many give."""
    digits = 1 if count < 10_000 else 2
    return f"{100.0 * part:.{digits}f}"


def worst_cells(worst: Worst, provenance: Mapping[str, object]) -> tuple[str, ...]:
    """One member, as under WORST_HEADER."""
    what = {
        "beta^2": f"{reason(worst.outcome)}, beta^2 {number(worst.value, 3)}",
        "deviation": f"{shortened(worst.name, 18)} off by {signed(worst.value)} errors",
        "probability": f"chi-square probability {number(worst.value, 2)}",
    }[worst.measure]
    return (str(worst.member), what, rerun(provenance, worst.member))


def reason(outcome: Outcome) -> str:
    """The first part of what a person reads of an outcome."""
    return re.split("[:;]", outcome.value)[0]


def row_note(truth: bool) -> str:
    """What the columns of ROW_HEADER are."""
    bias = "bias: (mean - truth) / (spread / sqrt(members)); " if truth else ""
    return (
        f"Over converged members; {bias}ratio: spread / error (root mean square); if the errors are right, "
        "1 with this standard deviation."
    )


def coverage_note() -> str:
    """What the columns of COVERAGE_HEADER are."""
    return (
        "Coverage: per cent of the single t intervals that hold the truth; if they are right, it is within "
        f"the band in {100.0 * BAND:g} % of all cases; ! is outside."
    )


def chi_square_note() -> str:
    """What the test of the objectives supposes."""
    return (
        "Chi-square test: of all objectives (Kolmogorov-Smirnov); it supposes data of known standard "
        "deviations and weights of 1. Noise that is cut off, say at 3 sigma, shows as a beta^2 below 1."
    )
