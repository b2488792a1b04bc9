"""Data, the trajectory that a fit began with and the fitted one (Kallrath et al. 1993, figure 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, FitResult, Pieces
from hpcfit.reporting.decimate import envelope, kept
from hpcfit.reporting.fits import summary
from hpcfit.reporting.style import BLUE, INK, SKY, VERMILION, label, styled

WIDTH = 7.2  # inches: two columns of a journal
MOST_PANELS = 8
CHOSEN = 5  # of many quantities
LONG = 400  # data times: more cannot be told apart on a page
BEGINNING = 120  # data times of the close view of a long series
MOST_BARS = 400
MARGIN = 0.12  # of the range of data and fit
HUGE = 1e150  # larger values are left out: axes overflow


def trajectories(fit: FitResult, experiment: int = 0, *, last: int | None = None) -> Figure:
    """One panel a quantity; `last`: only so many data times. A long series as a whole has no initial path."""
    with styled():
        count = len(chosen(fit, experiment))
        figure = Figure(figsize=(WIDTH, height(count)), layout="constrained")
        draw(figure, fit, experiment, last=last)
        return figure


def height(count: int) -> float:
    """Inches that suit the number of panels."""
    return max(0.6 + (1.5 if count <= 4 else 1.2) * count, 2.4)


def is_long(fit: FitResult, experiment: int) -> bool:
    return len(fit.experiments[experiment].times) > LONG


def chosen(fit: FitResult, experiment: int) -> list[str]:
    """What is drawn: all states and observed quantities, or a few of many."""
    seen = fit.experiments[experiment].names
    names = list(dict.fromkeys([*fit.state_names, *seen]))
    if len(names) <= MOST_PANELS:
        return names
    hidden = [name for name in names if name not in seen]
    n_hidden = min(len(hidden), CHOSEN // 2)
    picked = {*_spread(list(seen), CHOSEN - n_hidden), *_spread(hidden, n_hidden)}
    return [name for name in names if name in picked]


def draw(figure: Any, fit: FitResult, experiment: int, *, last: int | None = None) -> None:
    """The panels on a figure or a part of one."""
    names = chosen(fit, experiment)
    whole = last is None and is_long(fit, experiment)
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    times = fit.experiments[experiment].times
    until = times[min(last, len(times)) - 1] if last is not None else times[-1]
    for axis, name in zip(axes, names, strict=True):
        if name in fit.state_names:
            _draw_state(axis, fit, experiment, name, until=until, whole=whole)
        else:
            _draw_fitted(axis, fit, experiment, name)
        _draw_data(axis, fit, experiment, name, until)
        axis.set_ylim(*_range(fit, experiment, name, until))
        hidden = name not in fit.experiments[experiment].names
        axis.set_ylabel(label(name, fit.units) + ("\nhidden" if hidden else ""))
    room = 0.01 * (until - times[0]) or 0.5
    axes[-1].set_xlim(times[0] - room, until + room)
    axes[-1].set_xlabel(label("t", fit.units))
    figure.align_ylabels(axes)
    _legend(axes)


def _spread(names: list[str], count: int) -> list[str]:
    picks = np.linspace(0, len(names), count, endpoint=False).astype(int)
    return [names[k] for k in dict.fromkeys(picks.tolist())] if names else []


def _draw_state(axis: Any, fit: FitResult, experiment: int, name: str, *, until: float, whole: bool) -> None:
    k = fit.state_names.index(name)
    if not whole:
        times, values = joined(fit, fit.initial, experiment, k, until)
        style = {"color": VERMILION, "linewidth": 0.8, "alpha": 0.85, "zorder": 1.5}
        axis.plot(*envelope(times, tame(values)), label="initial trajectory", **style)
        own = (fit.node_experiments == experiment) & (fit.node_times <= until)
        times, middle = fit.node_times[own], tame(fit.nodes[own, k])
        reach = 2.0 * fit.node_errors[own, k]
        band = {"color": SKY, "alpha": 0.55, "linewidth": 0, "zorder": 2.0}
        axis.fill_between(times, middle - reach, middle + reach, label="± 2 standard errors", **band)
    gaps = not (fit.converged or whole)
    times, values = joined(fit, fit.final, experiment, k, until, gaps=gaps)
    times, values = envelope(times, tame(values))
    width = 0.8 if len(values) < 2_000 else 0.5
    axis.plot(times, values, color=INK, linewidth=width, label="fitted trajectory", zorder=3)


def _draw_fitted(axis: Any, fit: FitResult, experiment: int, name: str) -> None:
    """An observed quantity that is no state: its fitted values at the times of the data."""
    series = fit.experiments[experiment]
    values = tame(summary.fitted(fit, experiment)[:, series.names.index(name)])
    times, values = envelope(series.times, values)
    axis.plot(times, values, color=INK, linewidth=0.8, label="fitted trajectory", zorder=3)


def _draw_data(axis: Any, fit: FitResult, experiment: int, name: str, until: float) -> None:
    series = fit.experiments[experiment]
    if name not in series.names:
        return
    column = series.names.index(name)
    shown = series.times <= until
    times, values = series.times[shown], tame(series.values[shown, column])
    bars = tame(summary.sigma(fit, series)[shown, column])
    picks = kept(values)
    size = float(np.clip(34.0 / np.sqrt(max(len(picks), 1)), 1.2, 3.0))
    style = {"color": BLUE, "markersize": size, "markeredgewidth": 0, "zorder": 2.5, "label": "data"}
    if len(picks) <= MOST_BARS:
        axis.errorbar(times[picks], values[picks], bars[picks], fmt="o", elinewidth=0.6, **style)
    else:
        axis.plot(times[picks], values[picks], "o", alpha=0.8, rasterized=True, **(style | {"zorder": 3.2}))


def joined(
    fit: FitResult, pieces: Pieces, experiment: int, k: int, until: float, *, gaps: bool = True
) -> tuple[Array, Array]:
    """One line with a gap after every piece, or without: times and values of a state."""
    own = summary.piece_experiments(fit) == experiment
    if len(own) != len(pieces.times):
        own = np.ones(len(pieces.times), dtype=bool)
    own = own & (pieces.times[:, 0] < until)
    times, values = pieces.times[own], pieces.states[own, :, k]
    if gaps:
        times = np.concatenate([times, times[:, -1:]], axis=1)
        values = np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1)
    return times.ravel(), values.ravel()


def tame(values: Array) -> Array:
    """The same with NaN where axes would overflow."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) < HUGE, values, np.nan)


def _range(fit: FitResult, experiment: int, name: str, until: float) -> tuple[float, float]:
    """Limits that hold the data and the fit; the initial trajectory may leave them."""
    series, parts = fit.experiments[experiment], []
    if name in series.names:
        column = series.names.index(name)
        bars = np.nan_to_num(tame(summary.sigma(fit, series)[:, column]))
        values = tame(series.values[:, column])
        shown = series.times <= until
        parts += [(values - bars)[shown], (values + bars)[shown]]
    if name in fit.state_names:
        parts.append(tame(joined(fit, fit.final, experiment, fit.state_names.index(name), until)[1]))
    every = np.concatenate(parts)
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    room = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
    return low - room, high + room


def _legend(axes: Any) -> None:
    """Each kind of mark once, above the panels."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    order = ("data", "initial trajectory", "fitted trajectory", "± 2 standard errors")
    shown = [text for text in order if text in found]
    where = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    legend = axes[0].legend([found[text] for text in shown], shown, ncol=4, **where)
    if "data" in shown and hasattr(legend.legend_handles[0], "set_markersize"):
        legend.legend_handles[0].set_markersize(3.0)
