"""Success, bias and errors along each key of a grid, with all cells of the other keys together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, EnsembleResult
from hpcfit.reporting.ensembles.figures import WIDTH
from hpcfit.reporting.style import BLUE, INK, PALE, PALETTE, SKY, literal, styled
from hpcfit.reporting.sweeps.groups import Groups, axis_numbers, by_keys, shown_unknowns, value_text

MOST_UNKNOWNS = 6
MOST_LABELS = 12
ROW = 2.15  # inches


def curves(ensemble: EnsembleResult, keys: Sequence[str]) -> Figure:
    """A row of panels for each key: success, bias, errors."""
    with styled():
        figure = Figure(figsize=(WIDTH, 0.35 + ROW * len(keys)), layout="constrained")
        draw_curves(figure, ensemble, keys)
        return figure


def draw_curves(figure: Any, ensemble: EnsembleResult, keys: Sequence[str]) -> None:
    names = shown_unknowns(ensemble, MOST_UNKNOWNS)
    panels = figure.subplots(len(keys), 3, squeeze=False)
    for row, key in zip(panels, keys, strict=True):
        groups = by_keys(ensemble, [key], names)
        place = _axis(row, key, ensemble.grid[key])
        _draw_success(row[0], place, groups)
        _draw_bias(row[1], place, groups)
        _draw_errors(row[2], place, groups)
    for axis, title in zip(panels[0], TITLES, strict=True):
        axis.set_title(title, loc="left")
    if len(names) > 1:
        beside = {"loc": "lower right", "bbox_to_anchor": (1.02, 0.985), "borderpad": 0.0}
        tight = {"fontsize": 7, "handlelength": 1.0, "columnspacing": 0.8, "handletextpad": 0.3}
        panels[0][1].legend(**beside, **tight, ncols=3)


TITLES = ("converged", "bias / error", "spread (line), predicted error (ring)")


def _axis(row: Sequence[Any], key: str, values: Sequence[Any]) -> Array:
    """Where the values lie on the axes; logarithmic if their ratios vary less than their differences."""
    numbers = axis_numbers(values)
    place = np.arange(len(values), dtype=float) if numbers is None else numbers
    for axis in row:
        axis.set_xlabel(literal(key, 30))
        if numbers is None:
            step = -(-len(values) // MOST_LABELS)
            labels = [literal(value_text(value), 14) for value in values[::step]]
            axis.set_xticks(place[::step], labels, rotation=20, ha="right")
            axis.set_xlim(-0.5, len(values) - 0.5)
        elif is_logarithmic(numbers):
            axis.set_xscale("log")
    return place


def is_logarithmic(values: Array) -> bool:
    """Whether positive values are spaced by ratios rather than by differences."""
    if len(values) < 3 or not (values > 0.0).all():
        return False
    ordered = np.sort(values)
    steps, ratios = np.diff(ordered), np.diff(np.log(ordered))
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def _draw_success(axis: Any, place: Array, groups: Groups) -> None:
    order = np.argsort(place)
    low, high = groups.bands
    axis.fill_between(place[order], 100 * low[order], 100 * high[order], color=SKY, alpha=0.3, linewidth=0)
    axis.plot(place[order], 100.0 * groups.success[order], "o-", color=BLUE, markersize=3)
    axis.set_ylim(-4.0, 104.0)
    axis.set_ylabel("per cent")


def _draw_bias(axis: Any, place: Array, groups: Groups) -> None:
    """The bias in units of the error, with twice its standard error."""
    order = np.argsort(place)
    axis.axhline(0.0, color=PALE, linewidth=0.7)
    for each, color in zip(groups.unknowns, PALETTE, strict=False):
        with np.errstate(divide="ignore", invalid="ignore"):
            bias, chance = each.bias / each.error, 2.0 * each.chance / each.error
        style = {"color": color, "markersize": 3, "elinewidth": 0.8, "linewidth": 0.8}
        axis.errorbar(
            place[order], bias[order], chance[order], fmt="o-", label=literal(each.name, 12), **style
        )


def _draw_errors(axis: Any, place: Array, groups: Groups) -> None:
    order = np.argsort(place)
    positive = False
    for each, color in zip(groups.unknowns, PALETTE, strict=False):
        axis.plot(place[order], each.spread[order], "-", color=color, linewidth=0.9)
        ring = {"markerfacecolor": "none", "markeredgewidth": 0.8, "markersize": 4}
        axis.plot(place[order], each.error[order], "o", color=color, **ring)
        positive |= bool((each.error > 0.0).any())
    if positive:
        axis.set_yscale("log")
    axis.tick_params(axis="y", which="minor", labelsize=6, colors=INK)
