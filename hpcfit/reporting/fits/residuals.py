"""What a fit leaves unexplained."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, FitResult
from hpcfit.reporting.fits import summary
from hpcfit.reporting.fits.density import draw_density
from hpcfit.reporting.fits.trajectories import WIDTH, tame
from hpcfit.reporting.style import BLUE, INK, PALE, PALETTE, label, literal, styled

MOST_PANELS = 6
MOST_DOTS = 5_000  # of a panel; more are shown as their density
LEAST_REACH = 3.5  # standard deviations on the axes


def residuals(fit: FitResult) -> Figure:
    """Residuals over time, a panel a quantity, and all of them as a histogram."""
    with styled():
        names = shown_names(fit)
        figure = Figure(figsize=(WIDTH, max(0.6 + 1.05 * len(names), 2.6)), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(2.1, 1.0), wspace=0.02)
        values = _all(fit)
        _draw_over_time(left, fit, names, float(np.abs(values[[0, -1]]).max()) if len(values) else 0.0)
        if len(names) < 3:
            draw_histogram(right.subplots(), fit, values)
        else:
            upper, lower = right.subplots(2, 1)
            draw_histogram(upper, fit, values)
            _draw_quantiles(lower, fit, values)
        return figure


def is_dense(fit: FitResult) -> bool:
    """Whether a panel has more residuals than dots can show."""
    return sum(len(series.times) for series in fit.experiments) > MOST_DOTS


def shown_names(fit: FitResult) -> list[str]:
    """Observed quantities that the fit considers: all, or a few of many."""
    seen = dict.fromkeys(name for series in fit.experiments for name in series.names)
    names = [name for name in seen if fit.weights.get(name, 1.0) > 0.0]
    picks = np.unique(np.linspace(0, len(names) - 1, min(len(names), MOST_PANELS)).astype(int))
    return [names[k] for k in picks]


def draw_histogram(axis: Any, fit: FitResult, values: Array | None = None) -> None:
    """All residuals in standard deviations (or `values`, sorted), against the normal density."""
    values = _all(fit) if values is None else values
    reach = max(LEAST_REACH, float(np.abs(values).max(initial=0.0)))
    outside = ""
    if reach > 8.0:
        outside = f",\n{int((np.abs(values) > 8.0).sum()):,} beyond 8"
        reach = 8.0
    edges = np.linspace(-reach, reach, int(np.clip(2.0 * len(values) ** 0.4, 8, 60)) + 1)
    counts, _ = np.histogram(values, edges)
    density = counts / max(len(values), 1) / np.diff(edges)
    axis.stairs(density, edges, fill=True, color=BLUE, alpha=0.35)
    axis.stairs(density, edges, color=BLUE, linewidth=0.7)
    x = np.linspace(-reach, reach, 201)
    axis.plot(x, np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi), color=INK, linewidth=0.9)
    axis.set_title(f"{len(values):,} residuals{outside}", loc="left", fontsize=8)
    axis.set_xlabel(unit(fit))
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(bottom=0.0)


def _all(fit: FitResult) -> Array:
    """All residuals that there are, in increasing order."""
    columns = [
        tame(summary.standardised(fit, e, name))
        for e, series in enumerate(fit.experiments)
        for name in series.names
    ]
    values = np.concatenate([column[np.isfinite(column)] for column in columns])
    values.sort()
    return values


def _draw_quantiles(axis: Any, fit: FitResult, values: Array) -> None:
    """Residuals over the quantiles of the normal distribution: a straight line if they are normal."""
    from scipy.special import ndtr, ndtri

    count = len(values)
    picks = np.unique(np.linspace(0, count - 1, min(count, 1_000)).astype(int))
    if count > 1_000:  # also the tails, where few of many are
        tails = count * ndtr(np.linspace(-6.0, 6.0, 401))
        picks = np.unique(np.concatenate([picks, np.minimum(tails.astype(int), count - 1)]))
    expected = ndtri((picks + 0.5) / max(count, 1))
    reach = max(LEAST_REACH, float(np.abs(values).max(initial=0.0)))
    axis.plot((-reach, reach), (-reach, reach), color=INK, linewidth=0.9)
    axis.plot(expected, values[picks], "o", color=BLUE, markersize=2.2, markeredgewidth=0)
    axis.set_xlabel("normal quantile")
    axis.set_ylabel(unit(fit))


def unit(fit: FitResult) -> str:
    return "residual / sigma" if fit.sigma_known else "residual / estimated sigma"


def _draw_over_time(figure: Any, fit: FitResult, names: list[str], largest: float) -> None:
    axes = figure.subplots(max(len(names), 1), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    dense = is_dense(fit)
    for axis, name in zip(axes, names, strict=False):
        if dense:
            reach, longest = (
                max(LEAST_REACH, 1.05 * largest),
                max(len(each.times) for each in fit.experiments),
            )
            draw_density(axis, *_joined(fit, name), reach=reach, most_columns=longest)
        else:
            _draw_dots(axis, fit, name)
        axis.set_ylabel(literal(name, 16))
        axis.margins(x=0.01)
    reach = max(LEAST_REACH, *(abs(edge) for edge in axes[0].get_ylim()))
    axes[0].set_ylim(-reach, reach)
    how = "density in each column; dots: beyond 4; lines: ± 2" if dense else "grey: ± 2"
    axes[0].set_title(f"{unit(fit)}; {how}", loc="left", fontsize=8)
    axes[-1].set_xlabel(label("t", fit.units))
    figure.align_ylabels(axes)


def _draw_dots(axis: Any, fit: FitResult, name: str) -> None:
    axis.axhspan(-2.0, 2.0, color=PALE, alpha=0.18, linewidth=0)
    axis.axhline(0.0, color=PALE, linewidth=0.6)
    for color, (times, values) in zip(_colors(fit), _columns(fit, name), strict=False):
        size = float(np.clip(34.0 / np.sqrt(max(len(times), 1)), 0.8, 2.6))
        crowd = len(times) > 2_000
        style = {"markersize": size, "markeredgewidth": 0, "rasterized": crowd, "color": color}
        axis.plot(times, values, "o", alpha=0.6 if crowd else 0.9, **style)


def _colors(fit: FitResult) -> list[str]:
    """One colour an experiment, in turn."""
    return [PALETTE[e % len(PALETTE)] for e in range(len(fit.experiments))]


def _columns(fit: FitResult, name: str) -> list[tuple[Array, Array]]:
    """Times and residuals of one quantity, per experiment."""
    return [
        (
            series.times,
            tame(summary.standardised(fit, e, name))
            if name in series.names
            else np.full(len(series.times), np.nan),
        )
        for e, series in enumerate(fit.experiments)
    ]


def _joined(fit: FitResult, name: str) -> tuple[Array, Array]:
    """The same, all experiments in a row."""
    columns = _columns(fit, name)
    if len(columns) == 1:
        return columns[0]
    return np.concatenate([times for times, _ in columns]), np.concatenate([values for _, values in columns])
