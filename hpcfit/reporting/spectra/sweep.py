"""Pictures of spectra over a grid of parameters: what the exponents and the dimension do along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array
from hpcfit.reporting.spectra.colours import MOST_HUES, colour
from hpcfit.reporting.spectra.convergence import WIDTH
from hpcfit.reporting.style import BLUE, PALE, SKY, VERMILION, literal, styled

MOST_MARKS = 80  # points of a line that are marked
FLAT = 1e-9


def sweep(
    name: str,
    values: Array,
    exponents: Array,
    half_widths: Array,
    dimensions: Array,
    dimension_errors: Array,
    regular: Array | None = None,
) -> Figure:
    """Exponents (P, k) with 95 % half widths, and the dimension (P,), against one key (P,).

    `regular` (P,) is the part of the trajectories that are regular; NaN everywhere else: no such point.
    """
    with styled():
        panels = [1.9, *([1.0] if _worth(dimensions) else []), *([0.8] if _some(regular) else [])]
        figure = Figure(figsize=(WIDTH, 0.7 + 1.55 * sum(panels)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(panels), 1, sharex=True, height_ratios=panels))
        order = np.argsort(values, kind="stable")
        draw_exponents(axes[0], values[order], exponents[order], half_widths[order])
        if _worth(dimensions):
            half = 1.96 * np.nan_to_num(dimension_errors[order])
            _draw_line(axes[1], values[order], dimensions[order], half, VERMILION)
            axes[1].set_ylabel("dimension")
        if regular is not None and _some(regular):
            _draw_regular(axes[-1], values[order], regular[order])
        axes[-1].set_xlabel(literal(name))
        return figure


def draw_exponents(axis: Any, values: Array, exponents: Array, half_widths: Array) -> None:
    """One line for each exponent; very negative ones are left out where they would flatten the others."""
    count = exponents.shape[1]
    shown = [k for k in range(count) if not _flattens(exponents, k)]
    axis.axhline(0.0, color=PALE, linewidth=0.7)
    for k in shown:
        tint = colour(k, count)
        _draw_line(axis, values, exponents[:, k], np.nan_to_num(half_widths[:, k]), tint, f"λ{k + 1}")
    if count <= MOST_HUES:
        axis.legend(loc="best", ncols=len(shown))
    left_out = [f"λ{k + 1}" for k in range(count) if k not in shown]
    if left_out:
        some = left_out[0] if len(left_out) == 1 else f"{left_out[0]} to {left_out[-1]}"
        axis.set_title(f"{some} below the picture", loc="right", color=PALE, fontsize=8)
    axis.set_ylabel("exponents")


def _flattens(exponents: Array, k: int) -> bool:
    """Whether an exponent lies so far below that nothing would be seen of the first."""
    first = np.nanmax(np.abs(exponents[:, 0]), initial=0.0)
    return k > 0 and first > 0.0 and bool(np.nanmax(exponents[:, k], initial=-np.inf) < -5.0 * first)


def _draw_line(
    axis: Any, values: Array, heights: Array, half: Array, tint: Any, label: str | None = None
) -> None:
    marker = "o" if len(values) <= MOST_MARKS else ""
    axis.plot(values, heights, color=tint, linewidth=0.8, alpha=0.6)
    axis.errorbar(
        values,
        heights,
        yerr=half,
        color=tint,
        linestyle="none",
        marker=marker,
        markersize=3.2,
        elinewidth=0.9,
        capsize=1.5 if marker else 0.0,
        label=label,
    )


def _draw_regular(axis: Any, values: Array, regular: Array) -> None:
    axis.fill_between(values, 0.0, 100.0 * regular, color=SKY, alpha=0.4, linewidth=0)
    axis.plot(
        values, 100.0 * regular, color=BLUE, marker="o" if len(values) <= MOST_MARKS else "", markersize=3
    )
    axis.set_ylim(0.0, 100.0)
    axis.set_ylabel("regular, %")


def _worth(dimensions: Array) -> bool:
    """A dimension that is always the same, as that of Hamiltonian systems, has no picture."""
    known = dimensions[np.isfinite(dimensions)]
    return bool(len(known) and np.ptp(known) > FLAT * np.abs(known).max())


def _some(regular: Array | None) -> bool:
    return regular is not None and bool((np.nan_to_num(regular) > 0.0).any())


def sweep_map(names: tuple[str, str], first: Array, second: Array, heights: Array, what: str) -> Figure:
    """A quantity (Q, P) over two keys, values (P,) and (Q,), as colours; white: zero, grey: not known."""
    with styled():
        figure = Figure(figsize=(WIDTH * 0.85, WIDTH * 0.62), layout="constrained")
        axis: Any = figure.subplots()
        axis.set_facecolor("#dddddd")
        reach = float(np.nanmax(np.abs(heights), initial=0.0)) or 1.0
        signed = bool(np.nanmin(heights, initial=0.0) < 0.0)
        image = axis.pcolormesh(
            _edges(first),
            _edges(second),
            np.ma.masked_invalid(heights),
            cmap="RdBu_r" if signed else "viridis",
            vmin=-reach if signed else 0.0,
            vmax=reach,
            rasterized=True,
        )
        bar: Any = figure.colorbar(image, ax=axis, pad=0.02, label=literal(what))
        bar.outline.set_linewidth(0.4)
        axis.set_xlabel(literal(names[0]))
        axis.set_ylabel(literal(names[1]))
        return figure


def _edges(values: Array | Sequence[float]) -> Array:
    """The edges of cells around increasing values."""
    places = np.asarray(values, dtype=float)
    if len(places) == 1:
        room = 0.5 * abs(places[0]) or 0.5
        return np.array([places[0] - room, places[0] + room])
    middles = 0.5 * (places[1:] + places[:-1])
    first, last = 1.5 * places[0] - 0.5 * places[1], 1.5 * places[-1] - 0.5 * places[-2]
    return np.concatenate([[first], middles, [last]])
