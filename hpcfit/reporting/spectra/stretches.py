"""Pictures of what happens along the trajectories: growth in stretches of time, and regular trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hpcfit.records import Array, Spectrum
from hpcfit.reporting.spectra import summary
from hpcfit.reporting.spectra.colours import of_trajectory
from hpcfit.reporting.spectra.convergence import WIDTH, draw_guide, time_label
from hpcfit.reporting.style import INK, PALE, styled

STRETCHES = 120
MOST_STEPS = 4  # trajectories that are drawn as lines
MOST_REGULAR = 12
LOW = 0.5  # of the mean: such stretches are seen against zero


def stretches(spectrum: Spectrum) -> Figure:
    """lambda_1 in stretches of time: where it is far below its mean the orbit sticks to a regular region."""
    with styled():
        figure = Figure(figsize=(WIDTH, 2.3 if _few(spectrum) else 2.9), layout="constrained")
        draw_stretches(figure, figure.subplots(), spectrum)
        return figure


def draw_stretches(figure: Any, axis: Any, spectrum: Spectrum) -> None:
    """As steps for few trajectories, as colours for many."""
    lanes = np.flatnonzero(summary.averaged(spectrum))
    edges, rates = _rates(spectrum, lanes)
    mean = float(spectrum.exponents[0])
    if _few(spectrum):
        if rates.min() < LOW * mean:
            axis.axhline(0.0, color=PALE, linewidth=0.7)
        for number, lane in enumerate(lanes):
            tint = INK if len(lanes) == 1 else of_trajectory(number)
            axis.stairs(rates[number], edges, color=tint, linewidth=0.8, baseline=None, label=f"{lane}")
        axis.axhline(mean, color=INK, linewidth=0.7, dashes=(4, 3))
        axis.set_ylabel("λ1 of each stretch")
        if len(lanes) > 1:
            axis.legend(loc="lower right", ncols=len(lanes), title="trajectory", title_fontsize=8)
    else:
        reach = max(float(np.quantile(np.abs(rates - mean), 0.98)), 1e-12)
        image = axis.pcolormesh(
            edges,
            np.arange(len(lanes) + 1) - 0.5,
            rates,
            cmap="RdBu_r",
            vmin=mean - reach,
            vmax=mean + reach,
            rasterized=True,
        )
        figure.colorbar(image, ax=axis, pad=0.02, label="λ1 of each stretch").outline.set_linewidth(0.4)
        axis.set_ylabel("trajectory in the means")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_xlabel(time_label(spectrum))


def _few(spectrum: Spectrum) -> bool:
    return int(summary.averaged(spectrum).sum()) <= MOST_STEPS


def _rates(spectrum: Spectrum, lanes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Edges (s + 1,) of stretches and the rate of the first direction in each of them (L, s)."""
    blocks = spectrum.growth.shape[1]
    edges = np.unique(np.linspace(0, blocks, min(STRETCHES, blocks) + 1).astype(int))
    sums = np.add.reduceat(spectrum.growth[lanes, :, 0], edges[:-1], axis=1)
    rates: Array = sums / (np.diff(edges) * spectrum.block)
    return edges * spectrum.block, rates


def regular_figure(spectrum: Spectrum) -> Figure:
    """lambda_1 of regular trajectories over time: it falls like ln t / t."""
    with styled():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        draw_regular(figure.subplots(), spectrum)
        return figure


def draw_regular(axis: Any, spectrum: Spectrum) -> None:
    """On logarithmic scales, with the line ln t / t."""
    lanes = np.flatnonzero(spectrum.regular)[:MOST_REGULAR]
    blocks = spectrum.growth.shape[1]
    counts = np.unique(np.rint(np.geomspace(1, blocks, 200)).astype(int))
    times = counts * spectrum.block
    for number, lane in enumerate(lanes):
        grown = np.cumsum(spectrum.growth[lane, :, 0])[counts - 1]
        size = np.abs(grown) / times
        size[size == 0.0] = np.nan
        axis.plot(times, size, color=of_trajectory(number), linewidth=0.9)
    draw_guide(axis, times)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(time_label(spectrum))
    axis.set_ylabel("|λ1| of regular trajectories")
    axis.legend(loc="lower left")
