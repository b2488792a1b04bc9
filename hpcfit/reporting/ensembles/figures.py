"""Pictures of an ensemble: how the estimates scatter, and how well the fits fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.style import BLUE, GREEN, INK, VERMILION, label, literal, styled

WIDTH = 7.2  # inches: two columns of a journal
MOST_PANELS = 12
COLUMNS = 3
REACH = 5.0  # standard errors on the axes


def estimates(ensemble: EnsembleResult, *, parameters: bool = True) -> Figure:
    """A histogram for each parameter, or for each initial state."""
    names = shown_names(ensemble, parameters=parameters)
    with styled():
        rows = -(-max(len(names), 1) // COLUMNS)
        figure = Figure(figsize=(WIDTH, 0.3 + 1.9 * rows), layout="constrained")
        draw_estimates(figure, ensemble, names)
        return figure


def shown_names(ensemble: EnsembleResult, *, parameters: bool) -> list[str]:
    """All parameters or all initial states, or a few of many."""
    names = [name for name in ensemble.names if (name in ensemble.parameter_names) == parameters]
    picks = np.unique(np.linspace(0, len(names) - 1, min(len(names), MOST_PANELS)).astype(int))
    return [names[k] for k in picks]


def draw_estimates(figure: Any, ensemble: EnsembleResult, names: list[str]) -> None:
    """The histograms on a figure or a part of one."""
    columns = min(COLUMNS, max(len(names), 1))
    for k, name in enumerate(names):
        axis = figure.add_subplot(-(-len(names) // columns), columns, k + 1)
        values, _, deviations = summary.column(ensemble, name)
        if name in ensemble.truth:
            _draw_deviations(axis, deviations)
            axis.set_title(literal(name, 24), loc="left")
        else:
            _draw_values(axis, values)
            axis.set_title(label(name, ensemble.units), loc="left")


def chi_square(ensemble: EnsembleResult) -> Figure:
    """The objective of the converged members against the chi-square density."""
    with styled():
        figure = Figure(figsize=(0.6 * WIDTH, 2.6), layout="constrained")
        draw_chi_square(figure.subplots(), ensemble)
        return figure


def draw_chi_square(axis: Any, ensemble: EnsembleResult) -> None:
    """Objectives as a histogram; the density for the commonest number of degrees of freedom."""
    picked = summary.good(ensemble)
    values = ensemble.objective[picked]
    values = values[np.isfinite(values)]
    freedom = ensemble.degrees_of_freedom[picked]
    axis.set_xlabel("objective")
    if not len(values):
        return
    common = int(np.bincount(freedom).argmax()) if len(freedom) else 0
    wide = 4.0 * np.sqrt(2.0 * max(common, 1))
    low, high = min(values.min(), max(common - wide, 0.0)), max(values.max(), common + wide)
    high = min(high, max(float(np.quantile(values, 0.98)) * 1.5, common + wide))  # a stray one is left out
    _bars(axis, values, low, high)
    if common > 0:
        x = np.linspace(max(low, 1e-9), high, 301)
        axis.plot(x, _chi_square_density(x, common), color=INK, linewidth=0.9)
        axis.set_title(f"line: chi-square, {common:,} degrees of freedom", loc="left", fontsize=8)
    _bare(axis)


def iterations(axis: Any, ensemble: EnsembleResult) -> None:
    """How many linearisations the converged members took."""
    values = ensemble.linearisations[summary.good(ensemble)]
    if len(values):
        low, high = int(values.min()), int(values.max())
        width = max(1, -(-(high - low + 1) // 60))
        edges = np.arange(low, high + width + 1, width) - 0.5
        counts, _ = np.histogram(values, edges)
        axis.stairs(counts, edges, fill=True, color=GREEN, alpha=0.35)
        axis.stairs(counts, edges, color=GREEN, linewidth=0.7)
    axis.set_xlabel("linearisations")
    axis.set_ylabel("members")


def _draw_deviations(axis: Any, deviations: Array) -> None:
    """(estimate - truth) / error against the normal density."""
    values = deviations[np.isfinite(deviations)]
    _bars(axis, values, -REACH, REACH)
    x = np.linspace(-REACH, REACH, 201)
    axis.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi), color=INK, linewidth=0.9)
    if len(values):
        axis.axvline(values.mean(), color=VERMILION, linewidth=0.8)
    beyond = int((np.abs(values) > REACH).sum())
    axis.set_xlabel("(estimate − truth) / error" + (f", {beyond:,} beyond" if beyond else ""))
    _bare(axis)


def _draw_values(axis: Any, values: Array) -> None:
    values = values[np.isfinite(values) & (np.abs(values) < 1e150)]
    if len(values):
        low, high = np.quantile(values, (0.005, 0.995))
        room = 0.15 * (high - low) or abs(high) * 1e-6 or 1e-6
        _bars(axis, values, low - room, high + room)
        axis.axvline(values.mean(), color=VERMILION, linewidth=0.8)
    axis.set_xlabel("estimate")
    axis.locator_params(axis="x", nbins=4)
    _bare(axis)


def _bars(axis: Any, values: Array, low: float, high: float) -> None:
    """A histogram as a density over all values, those outside included."""
    edges = np.linspace(low, high, int(np.clip(2.5 * max(len(values), 1) ** 0.4, 8, 60)) + 1)
    density = np.histogram(values, edges)[0] / max(len(values), 1) / np.diff(edges)
    axis.stairs(density, edges, fill=True, color=BLUE, alpha=0.35)
    axis.stairs(density, edges, color=BLUE, linewidth=0.7)


def _bare(axis: Any) -> None:
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(bottom=0.0)


def _chi_square_density(x: Array, freedom: int) -> Array:
    from scipy.special import gammaln

    half = 0.5 * freedom
    density: Array = np.exp((half - 1.0) * np.log(x) - 0.5 * x - half * np.log(2.0) - gammaln(half))
    return density
