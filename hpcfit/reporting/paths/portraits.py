"""States against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from hpcfit.records import Array, Path
from hpcfit.reporting.decimate import kept
from hpcfit.reporting.paths import summary
from hpcfit.reporting.style import BLUE, INK, PALE, VERMILION, label

LONGEST_LINE = 20_000  # points; a longer path is a cloud with its beginning as a line
MOST_DOTS = 60_000
HUGE = 1e150


def pairs(n_states: int) -> list[tuple[int, int]]:
    """The planes to show; positions and velocities meet when there are four states."""
    if n_states <= 1:
        return [(0, 0)]
    if n_states == 2:
        return [(0, 1)]
    if n_states == 3:
        return [(0, 1), (0, 2), (1, 2)]
    if n_states == 4:
        return [(0, 1), (2, 3), (0, 2), (1, 3)]
    if n_states <= 6:
        return [(k, k + 1) for k in range(4)]
    return [(0, 1), (0, 2), (0, n_states // 4), (0, n_states // 2)]


def grid(path: Path) -> tuple[int, int]:
    """Columns and rows of panels."""
    return (1, 1) if len(path.state_names) <= 2 else (2, 2)


def draw(figure: Any, path: Path, *, points: bool, square: bool = True) -> None:
    """All panels on a figure or a part of one."""
    columns, rows = grid(path)
    planes = pairs(len(path.state_names))
    for k, (i, j) in enumerate(planes):
        axis = figure.add_subplot(rows, columns, k + 1)
        draw_plane(axis, path, i, j, points=points)
        if square:
            axis.set_box_aspect(1)
        if k == 0 and axis.lines and len(axis.lines[-1].get_xdata()):
            _name_start(axis)
    if len(planes) == 3:
        draw_space(figure.add_subplot(2, 2, 4, projection="3d"), path, points=points)


def draw_plane(axis: Any, path: Path, i: int, j: int, *, points: bool) -> None:
    """State j over state i; a state over itself is shown as its next value over the present one."""
    values = _shown(path)
    if i == j:
        across, up = values[:-1, i], values[1:, i]
        axis.set_xlabel(label(path.state_names[i], path.units) + ", now")
        axis.set_ylabel(label(path.state_names[i], path.units) + ", at the next time")
    else:
        across, up = values[:, i], values[:, j]
        axis.set_xlabel(label(path.state_names[i], path.units))
        axis.set_ylabel(label(path.state_names[j], path.units))
    _draw(axis, (across, up), points=points)
    axis.locator_params(nbins=5)


def draw_space(axis: Any, path: Path, *, points: bool) -> None:
    """The first three states in space."""
    values = _shown(path)
    _draw(axis, (values[:, 0], values[:, 1], values[:, 2]), points=points)
    for name, side in zip(path.state_names, (axis.xaxis, axis.yaxis, axis.zaxis), strict=False):
        side.set_label_text(label(name, path.units))
        side.set_tick_params(label1On=False)  # the planes beside it have the numbers
        side.labelpad = -12
        side.pane.set_facecolor((1.0, 1.0, 1.0, 0.0))
        side.pane.set_edgecolor("#cccccc")
    axis.grid(False)
    axis.view_init(elev=22, azim=-60)
    axis.set_box_aspect(None, zoom=0.92)
    axis.set_in_layout(False)


def _shown(path: Path) -> Array:
    """The finite beginning; of a solution that blew up, without its last great leap."""
    values = path.states[: summary.reached(path)]
    values = values[np.abs(values).max(axis=1, initial=0.0) < HUGE]
    if path.converged or len(values) < 10:
        return values
    size = np.abs(values - np.median(values, axis=0)).max(axis=1)
    usual = 6.0 * np.quantile(size, 0.8)
    beyond = np.flatnonzero(size > usual)
    return values[: beyond[0]] if len(beyond) else values


def _draw(axis: Any, curves: tuple[Array, ...], *, points: bool) -> None:
    count = len(curves[0])
    if points or count > LONGEST_LINE:
        dots = _dots(curves)
        size = float(np.clip(60.0 / np.sqrt(max(count, 1)), 0.5, 3.0))
        color = BLUE if points else PALE
        style = {"linestyle": "none", "marker": "o", "markeredgewidth": 0, "rasterized": len(dots) > 2_000}
        axis.plot(*(curve[dots] for curve in curves), color=color, markersize=size, **style)
    if not points:
        part = [curve[:LONGEST_LINE] for curve in curves]
        width = float(np.clip(30.0 / np.sqrt(max(count, 1)), 0.25, 0.9))
        axis.plot(*part, color=INK, linewidth=width, rasterized=count > 5_000)
    if count:
        axis.plot(
            *(curve[:1] for curve in curves), color=VERMILION, marker="o", markersize=3.5, linestyle="none"
        )


def _dots(curves: tuple[Array, ...]) -> NDArray[np.intp]:
    """Indices of so many points as a picture can show, the extremes among them."""
    count = len(curves[0])
    if count <= MOST_DOTS:
        return np.arange(count)
    spread = np.linspace(0, count - 1, MOST_DOTS // 2).astype(int)
    return np.unique(np.concatenate([spread, *(kept(curve) for curve in curves)]))


def _name_start(axis: Any) -> None:
    place = tuple(data[0] for data in axis.lines[-1].get_data())
    offset = {"xytext": (4, 4), "textcoords": "offset points"}
    halo = [withStroke(linewidth=2.0, foreground="white")]
    axis.annotate("start", place, **offset, color=VERMILION, fontsize=7, path_effects=halo, zorder=5)
