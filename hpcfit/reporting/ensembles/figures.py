"""Pictures of an ensemble: how the estimates scatter, and how long the way to them is."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.members import column, good
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
    columns, picked = min(COLUMNS, max(len(names), 1)), good(ensemble)
    for k, name in enumerate(names):
        axis = figure.add_subplot(-(-len(names) // columns), columns, k + 1)
        values, _, deviations = column(ensemble, name, picked)
        if name in ensemble.truth or name in ensemble.cell_truth:
            _draw_deviations(axis, deviations)
            axis.set_title(literal(name, 24), loc="left")
        else:
            _draw_values(axis, values)
            axis.set_title(label(name, ensemble.units), loc="left")


def iterations(axis: Any, ensemble: EnsembleResult) -> None:
    """How many linearisations the converged members took."""
    values = ensemble.linearisations[good(ensemble)]
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
    bars(axis, values, -REACH, REACH)
    x = np.linspace(-REACH, REACH, 201)
    axis.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi), color=INK, linewidth=0.9)
    if len(values):
        axis.axvline(values.mean(), color=VERMILION, linewidth=0.8)
    beyond = int((np.abs(values) > REACH).sum())
    axis.set_xlabel("(estimate − truth) / error" + (f", {beyond:,} beyond" if beyond else ""))
    bare(axis)


def _draw_values(axis: Any, values: Array) -> None:
    values = values[np.isfinite(values) & (np.abs(values) < 1e150)]
    if len(values):
        low, high = np.quantile(values, (0.005, 0.995))
        room = 0.15 * (high - low) or abs(high) * 1e-6 or 1e-6
        bars(axis, values, low - room, high + room)
        axis.axvline(values.mean(), color=VERMILION, linewidth=0.8)
    axis.set_xlabel("estimate")
    axis.locator_params(axis="x", nbins=4)
    bare(axis)


def bars(axis: Any, values: Array, low: float, high: float) -> None:
    """A histogram as a density over all values, those outside included."""
    edges = np.linspace(low, high, int(np.clip(2.5 * max(len(values), 1) ** 0.4, 8, 60)) + 1)
    density = np.histogram(values, edges)[0] / max(len(values), 1) / np.diff(edges)
    axis.stairs(density, edges, fill=True, color=BLUE, alpha=0.35)
    axis.stairs(density, edges, color=BLUE, linewidth=0.7)


def bare(axis: Any) -> None:
    """No scale of densities: their areas are 1."""
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(bottom=0.0)
