"""Pictures of a path: over time, in phase space, of its sensitivities and of its invariant."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, Path
from hpcfit.reporting.decimate import envelope
from hpcfit.reporting.paths import portraits, summary
from hpcfit.reporting.style import BLUE, INK, PALE, PALETTE, VERMILION, label, literal, styled

WIDTH = 7.2  # inches: two columns of a journal
MOST_PANELS = 8
CHOSEN = 4  # of many states
HUGE = 1e150  # larger values are left out: axes overflow


def trajectories(path: Path, *, points: bool = False) -> Figure:
    """One panel a component: trajectory (a line, or `points`), noisy data (dots), a recording (crosses)."""
    with styled():
        figure = Figure(figsize=(WIDTH, trajectories_height(path)), layout="constrained")
        draw_trajectories(figure, path, points=points)
        return figure


def phase_portraits(path: Path, *, points: bool = False) -> Figure:
    """States against each other: a line for a flow, `points` for a map."""
    with styled():
        columns, rows = portraits.grid(path)
        figure = Figure(figsize=(min(WIDTH, 3.4 * columns + 0.4), 3.2 * rows), layout="constrained")
        portraits.draw(figure, path, points=points)
        return figure


def sensitivities(path: Path) -> Figure:
    """Norm of each column of the sensitivities over time, on a logarithmic scale."""
    blocks = [
        (word, names, block)
        for word, names, block in (
            ("start value", path.state_names, path.by_start),
            ("parameter", path.parameter_names, path.by_parameters),
        )
        if block is not None and block.size
    ]
    with styled():
        if not blocks:
            return _note("no sensitivities in this result")
        figure = Figure(figsize=(WIDTH, 0.4 + 2.2 * len(blocks)), layout="constrained")
        axes = figure.subplots(len(blocks), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (word, names, block) in zip(axes, blocks, strict=True):
            _draw_norms(axis, path, word, names, block)
        axes[-1].set_xlabel(label("t", path.units))
        return figure


def invariant(path: Path) -> Figure:
    """Drift of the conserved quantity over time."""
    with styled():
        if path.invariant is None or not len(path.invariant):
            return _note("no invariant in this result")
        figure = Figure(figsize=(WIDTH, 2.2), layout="constrained")
        axis = figure.subplots()
        drift = tame(summary.difference(path.invariant, path.invariant[0]))
        axis.axhline(0.0, color=PALE, linewidth=0.6)
        _line(axis, path, drift)
        _limit_times(axis, path)
        axis.ticklabel_format(axis="y", scilimits=(-2, 3))
        axis.set_xlabel(label("t", path.units))
        axis.set_ylabel("I(t) − I(0)")
        axis.set_title(f"invariant I(0) = {path.invariant[0]:.8g}", loc="left")
        return figure


def trajectories_height(path: Path) -> float:
    """Inches that suit the number of panels."""
    names = _quantities(path)
    if len(names) > MOST_PANELS:
        return 1.05 * CHOSEN + 3.0
    return max(0.5 + (1.45 if len(names) <= 4 else 1.15) * len(names), 2.4)


def draw_trajectories(figure: Any, path: Path, *, points: bool) -> None:
    """The panels of `trajectories` on a figure or a part of one; `points` for a map."""
    names = _quantities(path)
    many = len(names) > MOST_PANELS
    shown = _choice(path, names) if many else names
    ratios = [1.0] * len(shown) + ([2.6] if many else [])
    axes = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": ratios})[
        :, 0
    ]
    for axis, name in zip(axes, shown, strict=False):
        _draw_component(axis, path, name, points)
    if many:
        _draw_image(figure, axes[-1], path)
    _limit_times(axes[-1], path)
    _mark_stop(figure, path)
    axes[-1].set_xlabel(label("t", path.units))
    figure.align_ylabels(axes)
    handles, labels = _legend(axes)
    if len(handles) > 1:
        where = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
        legend = axes[0].legend(handles, labels, ncol=len(handles), **where)
        for handle, text in zip(legend.legend_handles, labels, strict=True):
            handle.set(markersize=5 if text == "recording" else 3.5, alpha=1.0)


def tame(values: Array) -> Array:
    """The same with NaN where axes would overflow."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) < HUGE, values, np.nan)


def _quantities(path: Path) -> list[str]:
    names = [*path.state_names, *summary.extra_names(path)]
    others = [n for series in (path.observed, path.data) if series is not None for n in series.names]
    return list(dict.fromkeys([*names, *others]))


def _choice(path: Path, names: list[str]) -> list[str]:
    """A few of many: evenly spread, among the measured ones if there are."""
    measured = path.observed or path.data
    pool = list(measured.names) if measured and len(measured.names) >= CHOSEN else names
    picks = np.linspace(0, len(pool), CHOSEN, endpoint=False).astype(int)
    return [pool[k] for k in dict.fromkeys(picks.tolist())]


def _draw_component(axis: Any, path: Path, name: str, points: bool) -> None:
    axis.set_ylabel(label(name, path.units))
    for series, style in (
        (path.observed, {"marker": "o", "color": BLUE, "label": "with noise", "markeredgewidth": 0}),
        (path.data, {"marker": "x", "color": VERMILION, "label": "recording", "markeredgewidth": 0.7}),
    ):
        values = summary.column(series, name, path.times)
        if values is not None:
            times, values = envelope(path.times, tame(values))
            size = float(np.clip(48.0 / np.sqrt(max(len(values), 1)), 1.2, 3.4))
            axis.plot(
                times,
                values,
                linestyle="none",
                markersize=size,
                alpha=0.75,
                rasterized=len(values) > 2_000,
                **style,
            )
    dots = {"linestyle": "none", "marker": ".", "markersize": 2.5} if points else {}
    _line(axis, path, tame(summary.trajectory(path, name, path.times)), label="trajectory", zorder=3, **dots)
    _limit_values(axis, path, name)
    axis.margins(x=0.01)


def _line(axis: Any, path: Path, values: Array, **style: Any) -> None:
    times, values = envelope(path.times, values)
    lonely = np.isfinite(values).sum() == 1
    usual = {"color": INK, "linewidth": 0.8 if len(values) < 2_000 else 0.5, "markersize": 3}
    axis.plot(times, values, **(usual | {"marker": "o" if lonely else "none"} | style))


def _limit_values(axis: Any, path: Path, name: str) -> None:
    """A solution that blew up is cut off where it left its usual range, so that the rest can be seen."""
    values = summary.trajectory(path, name, path.times)[: summary.reached(path)]
    if path.converged or len(values) < 10:
        return
    low, high = (
        np.quantile(values, [0.0, 0.8]) if values[-1] > np.median(values) else np.quantile(values, [0.2, 1.0])
    )
    room = max(high - low, 1e-300)
    if values.max() - values.min() > 20.0 * room and room < HUGE:
        axis.set_ylim(low - 0.8 * room, high + 0.8 * room)


def _limit_times(axis: Any, path: Path) -> None:
    rows = summary.reached(path)
    if rows > 1:
        room = 0.01 * (path.times[rows - 1] - path.times[0])
        axis.set_xlim(path.times[0] - room, path.times[rows - 1] + room)


def _mark_stop(figure: Any, path: Path) -> None:
    if path.converged:
        return
    rows = summary.reached(path)
    stopped = f"stopped after t = {path.times[rows - 1]:.5g}: " if rows else ""
    lines = textwrap.wrap(stopped + summary.status(path), 100)[:4]
    text = "\n".join(literal(line, 120) for line in lines)
    figure.suptitle(text, x=0.01, horizontalalignment="left", color=VERMILION, fontsize=8.5)


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    """Each kind of mark once."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, text in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    order: list[str] = [text for text in ("trajectory", "with noise", "recording") if text in found]
    return [found[text] for text in order], order


def _draw_image(figure: Any, axis: Any, path: Path) -> None:
    """All states over time as colours (a Hovmöller diagram)."""
    rows = max(summary.reached(path), 1)
    picks = np.unique(np.linspace(0, rows - 1, min(rows, 1_000)).astype(int))
    values = tame(path.states[picks]).T
    finite = np.abs(values[np.isfinite(values)])
    low, high = (np.nanmin(values), np.nanmax(values)) if len(finite) else (0.0, 1.0)
    signed = low < 0.0 < high
    reach = float(np.quantile(finite, 0.995)) if len(finite) else 1.0
    limits = {"vmin": -reach, "vmax": reach} if signed else {"vmin": low, "vmax": high}
    times = path.times[picks] if len(picks) > 1 else path.times[0] + np.array([0.0])
    image = axis.pcolormesh(
        times,
        np.arange(len(path.state_names)),
        values,
        shading="nearest" if len(times) > 1 else "auto",
        cmap="RdBu_r" if signed else "cividis",
        rasterized=True,
        **limits,
    )
    _name_rows(axis, path.state_names)
    figure.colorbar(image, ax=axis, pad=0.01, fraction=0.03, aspect=24).outline.set_linewidth(0.4)


def _name_rows(axis: Any, names: tuple[str, ...]) -> None:
    places = np.unique(np.linspace(0, len(names) - 1, 6).astype(int))
    axis.set_yticks(places, [literal(names[k], 12) for k in places])
    axis.set_ylabel("state")


def _draw_norms(axis: Any, path: Path, word: str, names: tuple[str, ...], block: Array) -> None:
    with np.errstate(all="ignore"):
        norms = np.sqrt((block**2).sum(axis=1))  # (n_times, n_columns)
    norms = np.where(np.isfinite(norms) & (norms > 0.0) & (norms < HUGE), norms, np.nan)
    size = np.array([summary.largest(norms[:, k]) for k in range(len(names))])
    ranked = np.argsort(-np.nan_to_num(size), kind="stable")
    named = sorted(ranked[: len(PALETTE)].tolist())
    for k in ranked[len(PALETTE) :][:200]:
        axis.plot(*envelope(path.times, norms[:, k], 1_000), color=PALE, linewidth=0.4, alpha=0.6)
    thin = len(axis.lines)
    for color, k in zip(PALETTE, named, strict=False):
        _line(axis, path, norms[:, k], color=color, linewidth=1.0)
    if np.isfinite(norms).any():
        axis.set_yscale("log")
    else:
        axis.set_yticks([])
    many = f", the {len(PALETTE)} largest of {len(names)} in colour" if len(names) > len(PALETTE) else ""
    axis.set_title(f"norm of ∂x(t) / ∂ {word}{many}", loc="left")
    texts = [literal(f" {names[k]}", 16) for k in named]  # matplotlib hides a label that begins with _
    axis.legend(axis.lines[thin:], texts, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.2)
    _limit_times(axis, path)


def _note(text: str) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.8))
    figure.text(0.5, 0.5, text, ha="center", va="center", color=PALE)
    return figure
