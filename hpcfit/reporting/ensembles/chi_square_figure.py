"""Pictures of the objectives of an ensemble: as a histogram, and as probabilities that should be uniform."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.decimate import kept
from hpcfit.reporting.ensembles.chi_square import (
    distance_band,
    distance_probability,
    probabilities,
    uniform_distance,
)
from hpcfit.reporting.ensembles.figures import WIDTH, bare, bars
from hpcfit.reporting.ensembles.members import good
from hpcfit.reporting.style import BLUE, INK, PALE, SKY, styled

FAR = 10.0  # times the degrees of freedom: the density has no place beside the objectives


def chi_square(ensemble: EnsembleResult) -> Figure:
    """The objectives of the converged members against their density, beside their probabilities."""
    with styled():
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1.1, 1.0))
        draw_objectives(left.subplots(), ensemble)
        draw_probabilities(right, ensemble)
        return figure


def draw_objectives(axis: Any, ensemble: EnsembleResult) -> None:
    """Objectives as a histogram; the density for the commonest number of degrees of freedom."""
    usable = good(ensemble) & np.isfinite(ensemble.objective)
    values, freedom = ensemble.objective[usable], ensemble.degrees_of_freedom[usable]
    axis.set_xlabel("objective")
    if not len(values):
        return
    common = int(np.bincount(freedom).argmax())
    near = common > 0 and 1.0 / FAR < np.median(values) / common < FAR
    low, high = _range(values, common) if near else (0.0, 1.2 * float(np.quantile(values, 0.98)) or 1.0)
    bars(axis, values, low, high)
    title = f"far from chi-square, {common:,} degrees of freedom"
    if near:
        title = f"line: chi-square, {common:,} degrees of freedom"
        x = np.linspace(max(low, 1e-9), high, 301)
        axis.plot(x, _density(x, common), color=INK, linewidth=0.9)
    axis.set_title(title, loc="left", fontsize=8)
    bare(axis)


def _range(values: Array, freedom: int) -> tuple[float, float]:
    """What holds the values and the density; a stray value is left out."""
    wide = 4.0 * np.sqrt(2.0 * freedom)
    low, high = min(values.min(), max(freedom - wide, 0.0)), max(values.max(), freedom + wide)
    return low, min(high, max(float(np.quantile(values, 0.98)) * 1.5, freedom + wide))


def draw_probabilities(figure: Any, ensemble: EnsembleResult) -> None:
    """The part of the members below each probability, and its distance from the diagonal below it."""
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    values = probabilities(ensemble)
    values = np.sort(values[~np.isnan(values)])
    count = len(values)
    lower.set_xlabel("chi-square probability")
    upper.set_ylabel("members below")
    lower.set_ylabel("distance")
    upper.set_xlim(0.0, 1.0)
    upper.set_ylim(0.0, 1.0)
    if not count:
        return
    distance, band = uniform_distance(values), distance_band(count)
    ends = np.array([0.0, 1.0])
    upper.fill_between(ends, ends - band, ends + band, color=SKY, alpha=0.3, linewidth=0.0)
    upper.plot(ends, ends, color=PALE, linewidth=0.7)
    lower.axhspan(-band, band, color=SKY, alpha=0.3, linewidth=0.0)
    lower.axhline(0.0, color=PALE, linewidth=0.7)
    x, part = _staircase(values)
    upper.plot(x, part, color=BLUE)
    lower.plot(x, part - x, color=BLUE, linewidth=0.7)
    reach = 1.15 * max(band, distance)
    lower.set_ylim(-reach, reach)
    chance = distance_probability(distance, count)
    upper.set_title(f"largest distance {distance:.3g}, probability {chance:.3g}", loc="left", fontsize=8)


def _staircase(ordered: Array) -> tuple[Array, Array]:
    """The empirical distribution of ordered numbers in [0, 1] as a line, both sides of its steps."""
    count = len(ordered)
    x = np.concatenate([[0.0], np.repeat(ordered, 2), [1.0]])
    part = np.concatenate([[0.0], np.repeat(np.arange(count + 1) / count, 2)[1:-1], [1.0]])
    picks = kept(part - x)
    return x[picks], part[picks]


def _density(x: Array, freedom: int) -> Array:
    """Of the chi-square distribution."""
    from scipy.special import gammaln

    half = 0.5 * freedom
    density: Array = np.exp((half - 1.0) * np.log(x) - 0.5 * x - half * np.log(2.0) - gammaln(half))
    return density
