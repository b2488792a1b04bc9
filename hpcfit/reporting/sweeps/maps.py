"""Maps over two keys of a grid: success, bias, ratio of spread and error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.figures import WIDTH
from hpcfit.reporting.style import PALE, literal, styled
from hpcfit.reporting.sweeps.groups import by_keys, shown_unknowns, value_text

MOST_UNKNOWNS = 3
MOST_ACROSS, MOST_UPWARDS = 5, 8  # labels
WRITTEN = 48  # cells up to which their numbers stand in a map


def maps(ensemble: EnsembleResult, keys: Sequence[str]) -> Figure:
    """Success in the first panel, then bias over error and spread over error of some unknowns."""
    names = shown_unknowns(ensemble, MOST_UNKNOWNS)
    with styled():
        figure = Figure(figsize=(WIDTH, map_height(names)), layout="constrained")
        draw_maps(figure, ensemble, keys, names)
        return figure


def map_height(names: Sequence[str]) -> float:
    """Inches that the maps need."""
    return 0.3 + 2.25 * -(-(3 + 2 * len(names)) // 3)


def draw_maps(figure: Any, ensemble: EnsembleResult, keys: Sequence[str], names: Sequence[str]) -> None:
    groups = by_keys(ensemble, keys, names)
    shape = tuple(len(ensemble.grid[key]) for key in keys)
    wanted: list[tuple[str, Array, dict[str, Any]]] = [
        ("converged, per cent", 100.0 * groups.success, {"cmap": "viridis", "vmin": 0.0, "vmax": 100.0}),
        ("linearisations, mean", groups.work, {"cmap": "cividis"}),
    ]
    if any(np.isfinite(each.covered).any() for each in groups.unknowns):
        covered = 100.0 * np.mean([each.covered for each in groups.unknowns], axis=0)
        wanted.append(("held by 95 % intervals, per cent", covered, _around(95.0, covered, 5.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        biases = [each.bias / each.error for each in groups.unknowns]
    for each, bias in zip(groups.unknowns, biases, strict=True):
        wanted.append((f"{each.name}: bias / error", bias, _around(0.0, bias, 0.5)))
    for each in groups.unknowns:
        wanted.append((f"{each.name}: spread / error", each.ratio, _around(1.0, each.ratio, 0.25)))
    columns = min(len(wanted), 3)
    rows = -(-len(wanted) // columns)
    for k, (title, values, colours) in enumerate(wanted):
        axis = figure.add_subplot(rows, columns, k + 1)
        _draw_map(figure, axis, ensemble, keys, values.reshape(shape), colours)
        axis.set_title(literal(title, 34), loc="left")


def _around(centre: float, values: Array, least: float) -> dict[str, Any]:
    """Colours on both sides of what should be; what is off by less than `least` stays pale."""
    known = np.abs(values[np.isfinite(values)] - centre)
    reach = max(float(np.quantile(known, 0.98)) if len(known) else 0.0, least)
    return {"cmap": "RdBu_r", "vmin": centre - reach, "vmax": centre + reach}


def _draw_map(
    figure: Any,
    axis: Any,
    ensemble: EnsembleResult,
    keys: Sequence[str],
    values: Array,
    colours: dict[str, Any],
) -> None:
    """The first key upwards, the second to the right; cells without a number are grey."""
    first, second = (ensemble.grid[key] for key in keys)
    axis.set_facecolor("#dddddd")
    image = axis.imshow(values, origin="lower", aspect="auto", interpolation="nearest", **colours)
    bar = figure.colorbar(image, ax=axis, shrink=0.9, pad=0.02, aspect=18)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    _label(axis.set_xticks, second, MOST_ACROSS)
    _label(axis.set_yticks, first, MOST_UPWARDS)
    axis.set_xlabel(literal(keys[1], 26))
    axis.set_ylabel(literal(keys[0], 26))
    axis.spines[:].set_visible(False)
    axis.tick_params(length=2, color=PALE)
    if values.size <= WRITTEN:
        _write(axis, image, values)


def _write(axis: Any, image: Any, values: Array) -> None:
    """The numbers themselves, dark on light and light on dark."""
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.55
            text = f"{value:.0f}" if abs(value) >= 10.0 else f"{value:.2f}"
            size = 7 if values.shape[1] <= 6 else 5.5
            axis.text(j, i, text, ha="center", va="center", fontsize=size, color="white" if dark else "black")


def _label(set_ticks: Any, values: Sequence[Any], most: int) -> None:
    """Some of the values at their places."""
    picks = range(0, len(values), -(-len(values) // most))
    set_ticks(picks, [literal(_short(values[k]), 12) for k in picks])


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else value_text(value)
