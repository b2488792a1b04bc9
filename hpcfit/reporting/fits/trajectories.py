"""Data, the trajectory that a fit began with and the fitted one (Kallrath et al. 1993, figure 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hpcfit.records import Array, FitResult, Pieces, Stretch
from hpcfit.reporting.decimate import LIMIT, bands, envelope
from hpcfit.reporting.fits import stretches, summary
from hpcfit.reporting.style import BLUE, INK, SKY, VERMILION, label, literal, styled

WIDTH = 7.2  # inches: two columns of a journal
MOST_PANELS = 8
CHOSEN = 5  # of many quantities
COLUMNS = 640  # of time, in the picture of a series that is longer than a line can be
MOST_BARS = 400
GREY = "#dddddd"  # between the edges of a band
MARGIN = 0.12  # of the range of data and fit
HUGE = 1e150  # larger values are left out: axes overflow


def trajectories(fit: FitResult, experiment: int = 0, *, stretch: Stretch | None = None) -> Figure:
    """One panel a quantity, all of the series or a stretch. A long series as a whole has no initial path."""
    with styled():
        count = len(chosen(fit, experiment))
        figure = Figure(figsize=(WIDTH, height(count)), layout="constrained")
        draw(figure, fit, stretch or stretches.whole(fit, experiment))
        return figure


def worst(fit: FitResult, experiment: int) -> Figure:
    """Around the largest residuals of a long series: a column a stretch, a ring around the residual."""
    with styled():
        names, found = chosen(fit, experiment), stretches.worst(fit, experiment)
        figure = Figure(figsize=(WIDTH, height(len(names)) + 0.2), layout="constrained")
        grid = figure.subplots(len(names), len(found), sharex="col", sharey="row", squeeze=False)
        for axes, (place, stretch) in zip(grid.T, found, strict=True):
            _draw_panels(axes, fit, stretch, names)
            _mark(axes, fit, experiment, place, names)
            axes[-1].set_xlabel(label("t", fit.units))
            axes[-1].xaxis.set_major_locator(MaxNLocator(4))
        for row, name in zip(grid, names, strict=True):
            ranges = [_range(fit, stretch, name) for _, stretch in found]
            row[0].set_ylim(min(low for low, _ in ranges), max(high for _, high in ranges))
            row[0].set_ylabel(_named(fit, experiment, name))
        figure.align_ylabels(grid[:, 0])
        _legend(figure, grid[:, 0])
        return figure


def height(count: int) -> float:
    """Inches that suit the number of panels."""
    return max(0.6 + (1.5 if count <= 4 else 1.2) * count, 2.4)


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


def draw(figure: Any, fit: FitResult, stretch: Stretch) -> None:
    """The panels of a stretch on a figure or a part of one."""
    names = chosen(fit, stretch.experiment)
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    _draw_panels(axes, fit, stretch, names)
    for axis, name in zip(axes, names, strict=True):
        axis.set_ylim(*_range(fit, stretch, name))
        axis.set_ylabel(_named(fit, stretch.experiment, name))
    axes[-1].set_xlabel(label("t", fit.units))
    figure.align_ylabels(axes)
    _legend(None, axes)


def _named(fit: FitResult, experiment: int, name: str) -> str:
    hidden = name not in fit.experiments[experiment].names
    return label(name, fit.units) + ("\nhidden" if hidden else "")


def _draw_panels(axes: Any, fit: FitResult, stretch: Stretch, names: list[str]) -> None:
    for axis, name in zip(axes, names, strict=True):
        if is_dense(stretch):
            _draw_bands(axis, fit, stretch, name)
            continue
        if name in fit.state_names:
            _draw_state(axis, fit, stretch, name)
        else:
            _draw_fitted(axis, fit, stretch, name)
        _draw_data(axis, fit, stretch, name)
    begin, end = _window(fit, stretch)
    room = 0.01 * (end - begin) or 0.5
    axes[-1].set_xlim(begin - room, end + room)


def is_dense(stretch: Stretch) -> bool:
    """Whether it has more data times than a line can show."""
    return stretch.last - stretch.first >= LIMIT


def _window(fit: FitResult, stretch: Stretch) -> tuple[float, float]:
    times = fit.experiments[stretch.experiment].times
    return float(times[stretch.first]), float(times[stretch.last])


def _mark(axes: Any, fit: FitResult, experiment: int, place: int, names: list[str]) -> None:
    """A ring around the datum with the largest residual, and its size above the panels."""
    series = fit.experiments[experiment]
    sizes = {name: float(summary.standardised(fit, experiment, name)[place]) for name in series.names}
    name = max(sizes, key=lambda each: np.nan_to_num(abs(sizes[each])))
    text = f"{literal(name, 10)}: {sizes[name]:+.1f} sigma"
    axes[0].set_title(f"{text} at t = {series.times[place]:.6g}", loc="left", fontsize=7.5)
    if name in names:
        ring = {"markersize": 8, "markerfacecolor": "none", "markeredgecolor": VERMILION, "zorder": 4}
        value = tame(series.values[place : place + 1, series.names.index(name)])
        axes[names.index(name)].plot(series.times[place : place + 1], value, "o", **ring)


def _draw_bands(axis: Any, fit: FitResult, stretch: Stretch, name: str) -> None:
    """Least and greatest value of data and fit in every column of time."""
    series, own = fit.experiments[stretch.experiment], slice(stretch.first, stretch.last + 1)
    edges = np.linspace(*_window(fit, stretch), COLUMNS + 1)
    parts = []
    if name in series.names:
        values = series.values[own, series.names.index(name)]
        parts.append((series.times[own], values, {"facecolor": SKY, "linewidth": 0, "label": "data"}))
    if name in fit.state_names:
        nodes = summary.nodes_of(fit, stretch.experiment)
        path = fit.node_times[nodes], fit.nodes[nodes, fit.state_names.index(name)]
    else:
        path = series.times[own], summary.fitted(fit, stretch.experiment, name)[own]
    style = {"facecolor": GREY, "edgecolor": INK, "linewidth": 0.3, "label": "fitted trajectory"}
    parts.append((*path, style))
    for times, values, style in parts:
        low, high = bands(times, tame(values), edges)
        axis.fill_between(edges, _held(low), _held(high), step="post", **style)


def _held(values: Array) -> Array:
    """The last value twice: steps have one edge more than columns."""
    return np.append(values, values[-1])


def _spread(names: list[str], count: int) -> list[str]:
    picks = np.linspace(0, len(names), count, endpoint=False).astype(int)
    return [names[k] for k in dict.fromkeys(picks.tolist())] if names else []


def _draw_state(axis: Any, fit: FitResult, stretch: Stretch, name: str) -> None:
    k, count = fit.state_names.index(name), stretch.last - stretch.first + 1
    whole = count > stretches.LONG
    if not whole:
        times, values = joined(fit, fit.initial, stretch, k)
        style = {"color": VERMILION, "linewidth": 0.8, "alpha": 0.85, "zorder": 1.5}
        axis.plot(*envelope(times, tame(values)), label="initial trajectory", **style)
        own = _nodes(fit, stretch)
        times, middle = fit.node_times[own], tame(fit.nodes[own, k])
        reach = 2.0 * fit.node_errors[own, k]
        band = {"color": SKY, "alpha": 0.55, "linewidth": 0, "zorder": 2.0}
        axis.fill_between(times, middle - reach, middle + reach, label="± 2 standard errors", **band)
    gaps = not (fit.converged or whole)
    times, values = _fitted_path(fit, stretch, k, gaps=gaps)
    times, values = envelope(times, tame(values))
    width = 0.8 if len(values) < 2_000 else 0.5
    axis.plot(times, values, color=INK, linewidth=width, label="fitted trajectory", zorder=3)


def _draw_fitted(axis: Any, fit: FitResult, stretch: Stretch, name: str) -> None:
    """An observed quantity that is no state: its fitted values at the times of the data."""
    own = slice(stretch.first, stretch.last + 1)
    values = tame(summary.fitted(fit, stretch.experiment, name)[own])
    times, values = envelope(fit.experiments[stretch.experiment].times[own], values)
    axis.plot(times, values, color=INK, linewidth=0.8, label="fitted trajectory", zorder=3)


def _draw_data(axis: Any, fit: FitResult, stretch: Stretch, name: str) -> None:
    series, own = fit.experiments[stretch.experiment], slice(stretch.first, stretch.last + 1)
    if name not in series.names:
        return
    times, values = series.times[own], tame(series.values[own, series.names.index(name)])
    bars = tame(summary.sigma(fit, stretch.experiment, name)[own])
    size = float(np.clip(34.0 / np.sqrt(max(len(times), 1)), 1.2, 3.0))
    style = {"color": BLUE, "markersize": size, "markeredgewidth": 0, "zorder": 2.5, "label": "data"}
    if len(times) <= MOST_BARS:
        axis.errorbar(times, values, bars, fmt="o", elinewidth=0.6, **style)
    else:
        axis.plot(times, values, "o", alpha=0.8, rasterized=True, **(style | {"zorder": 3.2}))


def _nodes(fit: FitResult, stretch: Stretch) -> slice:
    """The nodes within a stretch."""
    own, (begin, end) = summary.nodes_of(fit, stretch.experiment), _window(fit, stretch)
    first = int(np.searchsorted(fit.node_times[own], begin))
    last = int(np.searchsorted(fit.node_times[own], end, side="right"))
    return slice(own.start + first, own.start + last)


def _fitted_path(fit: FitResult, stretch: Stretch, k: int, *, gaps: bool) -> tuple[Array, Array]:
    """Times and values of a state: the pieces, or the nodes where there is not a piece for each interval."""
    times, values = joined(fit, fit.final, stretch, k, gaps=gaps)
    nodes, points = _nodes(fit, stretch), fit.final.times.shape[1] + gaps
    if len(times) < (nodes.stop - nodes.start - 1) * points:
        return fit.node_times[nodes], fit.nodes[nodes, k]
    return times, values


def joined(
    fit: FitResult, pieces: Pieces, stretch: Stretch, k: int, *, gaps: bool = True
) -> tuple[Array, Array]:
    """One line with a gap after every piece, or without: times and values of a state."""
    own, (begin, end) = summary.pieces_of(fit, pieces, stretch.experiment), _window(fit, stretch)
    first = int(np.searchsorted(pieces.times[own][:, -1], begin, side="right"))
    last = int(np.searchsorted(pieces.times[own][:, 0], end))
    times, values = pieces.times[own][first:last], pieces.states[own][first:last, :, k]
    if gaps:
        times = np.concatenate([times, times[:, -1:]], axis=1)
        values = np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1)
    return times.ravel(), values.ravel()


def tame(values: Array) -> Array:
    """The same with NaN where axes would overflow."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) < HUGE, values, np.nan)


def _range(fit: FitResult, stretch: Stretch, name: str) -> tuple[float, float]:
    """Limits that hold the data and the fit; the initial trajectory may leave them."""
    series, own, parts = fit.experiments[stretch.experiment], slice(stretch.first, stretch.last + 1), []
    if name in series.names:
        values = tame(series.values[own, series.names.index(name)])
        bars = np.nan_to_num(tame(summary.sigma(fit, stretch.experiment, name)[own]))
        parts += [values - bars, values + bars]
    if name in fit.state_names:
        k = fit.state_names.index(name)
        dense = is_dense(stretch)
        path = fit.nodes[_nodes(fit, stretch), k] if dense else _fitted_path(fit, stretch, k, gaps=False)[1]
        parts.append(tame(path))
    every = [part[np.isfinite(part)] for part in parts]
    low = min((float(part.min()) for part in every if len(part)), default=0.0)
    high = max((float(part.max()) for part in every if len(part)), default=1.0)
    room = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
    return low - room, high + room


def _legend(figure: Any, axes: Any) -> None:
    """Each kind of mark once, above the panels; of a figure with several columns above them all."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    order = ("data", "initial trajectory", "fitted trajectory", "± 2 standard errors")
    shown = [text for text in order if text in found]
    handles = [found[text] for text in shown]
    if figure is not None:
        figure.legend(handles, shown, ncol=4, loc="outside upper right")
        return
    where = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    legend = axes[0].legend(handles, shown, ncol=4, **where)
    if "data" in shown and hasattr(legend.legend_handles[0], "set_markersize"):
        legend.legend_handles[0].set_markersize(3.0)
