"""The way of a fit to its solution, and how the unknowns hang together there."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpcfit.records import Array, FitResult
from hpcfit.reporting.fits.trajectories import WIDTH, tame
from hpcfit.reporting.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, literal, styled

PHASES = {"presolve": ORANGE, "weak": SKY, "exact": GREEN}
MOST_NUMBERS = 12  # unknowns up to which the correlations are written out
MOST_LABELS = 24
MOST_UNKNOWNS = 200  # of a picture


def convergence(fit: FitResult) -> Figure:
    """Length of the step, largest discontinuity and objective by step; the phases by colour."""
    with styled():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.7, 1.0))
        draw_lengths(upper, fit)
        _draw_objective(lower, fit)
        lower.set_xlabel("step")
        return figure


def draw_lengths(axis: Any, fit: FitResult) -> None:
    """Increment and defect by step, on a logarithmic scale."""
    steps = np.arange(1, len(fit.history) + 1)
    _mark_phases(axis, fit)
    for name, mark, color in (("increment", "o", INK), ("defect", "s", BLUE)):
        values = _positive(np.array([getattr(each, name) for each in fit.history]))
        style = {"marker": mark, "markersize": 3.2, "markeredgewidth": 0, "linewidth": 0.9}
        axis.plot(steps, values, color=color, label=name, **style)
    if any(np.isfinite(line.get_ydata()).any() for line in axis.lines):
        axis.set_yscale("log")
    axis.legend(loc="lower left")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def correlations(fit: FitResult) -> Figure:
    """The correlation matrix of the unknowns as colours."""
    with styled():
        count = len(matrix_names(fit))
        size = float(np.clip(1.4 + 0.42 * count, 2.8, WIDTH))
        figure = Figure(figsize=(size + 0.7, size), layout="constrained")
        draw_correlations(figure, figure.subplots(), fit)
        return figure


def matrix_names(fit: FitResult) -> tuple[str, ...]:
    """All unknowns, or of many the parameters and the initial states of the first experiments."""
    names = fit.unknowns.names
    if len(names) <= MOST_UNKNOWNS:
        return names
    n_states = len(names) - len(fit.parameter_names)
    room = max(MOST_UNKNOWNS - len(fit.parameter_names), 0)
    return (*names[: min(n_states, room)], *fit.parameter_names)


def draw_correlations(figure: Any, axis: Any, fit: FitResult) -> None:
    """The matrix on an axis of a figure; numbers where they fit."""
    names = matrix_names(fit)
    few = len(names) < len(fit.unknowns.names)
    table = (fit.unknowns.part(names) if few else fit.unknowns).correlations
    image = axis.imshow(table, cmap="RdBu_r", vmin=-1.0, vmax=1.0, interpolation="nearest")
    places = np.unique(np.linspace(0, len(names) - 1, min(len(names), MOST_LABELS)).astype(int))
    texts = [literal(names[k], 10) for k in places]
    steep = len(names) > MOST_NUMBERS or any(len(text) > 3 for text in texts)
    small = {"fontsize": 5.5} if len(names) > MOST_NUMBERS else {}
    axis.set_xticks(places, texts, rotation=90 if steep else 0, **small)
    axis.set_yticks(places, texts, **small)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    if len(names) <= MOST_NUMBERS:
        _write_numbers(axis, table)
    figure.colorbar(image, ax=axis, pad=0.02, fraction=0.046, ticks=(-1, 0, 1)).outline.set_linewidth(0.4)


def _write_numbers(axis: Any, table: Array) -> None:
    for i, j in np.ndindex(*table.shape):
        if i != j and np.isfinite(table[i, j]):
            color = "white" if abs(table[i, j]) > 0.65 else INK
            text = f"{table[i, j]:+.2f}"
            axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color=color)


def _mark_phases(axis: Any, fit: FitResult) -> None:
    """A tint behind the steps of each phase, with its name."""
    start = 0.5
    for phase, steps in groupby(fit.history, key=lambda each: each.phase):
        end = start + len(list(steps))
        axis.axvspan(start, end, color=PHASES.get(phase, PURPLE), alpha=0.13, linewidth=0)
        style = {"transform": axis.get_xaxis_transform(), "va": "bottom", "ha": "center", "fontsize": 7.5}
        axis.text(0.5 * (start + end), 1.01, literal(phase, 12), color=INK, clip_on=False, **style)
        start = end
    axis.set_xlim(0.5, max(start, 1.5))


def _draw_objective(axis: Any, fit: FitResult) -> None:
    steps = np.arange(1, len(fit.history) + 1)
    values = _positive(np.array([each.objective for each in fit.history]))
    start = 0.5
    for phase, group in groupby(fit.history, key=lambda each: each.phase):
        end = start + len(list(group))
        axis.axvspan(start, end, color=PHASES.get(phase, PURPLE), alpha=0.13, linewidth=0)
        start = end
    axis.plot(steps, values, color=VERMILION, marker="o", markersize=3.2, markeredgewidth=0)
    if np.isfinite(values).any():
        axis.set_yscale("log")
    axis.set_ylabel("objective")


def _positive(values: Array) -> Array:
    values = tame(values)
    return np.where(values > 0.0, values, np.nan)
