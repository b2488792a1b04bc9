"""Pictures of how exponents come to their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hpcfit.records import Array, Convergence, Spectrum
from hpcfit.reporting.layout import matched, number
from hpcfit.reporting.spectra import summary
from hpcfit.reporting.spectra.colours import MOST_HUES, colour
from hpcfit.reporting.style import INK, PALE, styled

WIDTH = 7.2  # inches: two columns of a journal
MOST_PANELS = 4  # of exponents with errors
MOST_LINES = 24
DECADES = 3.5  # of time that are shown
LATE = 1.5  # decades before the end that an axis has to hold
ROOM = 1.15


def convergence(spectrum: Spectrum) -> Figure:
    """Running exponents with their 95 % bands over the logarithm of time, one panel each."""
    with styled():
        figure = Figure(figsize=(WIDTH, height(spectrum)), layout="constrained")
        draw_convergence(figure, spectrum)
        return figure


def height(spectrum: Spectrum) -> float:
    """Inches of the picture."""
    if len(spectrum.exponents) > MOST_HUES:
        return 3.6
    return 0.5 + 1.25 * len(_panels(spectrum)) + (1.9 if spectrum.zeros else 0.0)


def draw_convergence(figure: Any, spectrum: Spectrum) -> None:
    """The panels on a figure or a part of one: exponents with errors, then those that vanish."""
    assert spectrum.history is not None
    if len(spectrum.exponents) > MOST_HUES:
        _draw_many(figure.subplots(), spectrum, spectrum.history)
        return
    shown, zeros = _panels(spectrum), [row for row in summary.rows(spectrum) if row.vanishes]
    ratios = [1.25] * len(shown) + ([1.9] if zeros else [])
    axes = np.atleast_1d(figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios))
    for axis, row in zip(axes, shown, strict=False):
        _draw_band(axis, spectrum, spectrum.history, row)
    if zeros:
        _draw_zeros(axes[-1], spectrum, spectrum.history, zeros)
    axes[-1].set_xlabel(time_label(spectrum))


def time_label(spectrum: Spectrum) -> str:
    return "iterations" if spectrum.kind == "map" else "time of each trajectory"


def _panels(spectrum: Spectrum) -> list[summary.Row]:
    """The first exponents with errors, and the last one; of pairs of opposite sign the first half."""
    rows = [row for row in summary.rows(spectrum) if not row.vanishes]
    if spectrum.hamiltonian and summary.whole(spectrum):
        rows = [row for row in rows if row.number <= len(spectrum.exponents) // 2]
    return rows if len(rows) <= MOST_PANELS else [*rows[: MOST_PANELS - 1], rows[-1]]


def _draw_band(axis: Any, spectrum: Spectrum, history: Convergence, row: summary.Row) -> None:
    k = row.number - 1
    values, half = history.exponents[:, k], history.half_widths[:, k]
    tint = colour(k, len(spectrum.exponents))
    axis.axhline(row.exponent, color=PALE, linewidth=0.7)
    axis.fill_between(history.times, values - half, values + half, color=tint, alpha=0.2, linewidth=0)
    axis.plot(history.times, values, color=tint, linewidth=1.2)
    axis.set_xscale("log")
    low, high = _limits(history.times, values, half, row)
    axis.set_ylim(low, high)
    axis.set_xlim(*_span(history.times))
    axis.set_ylabel(f"λ{row.number}")
    axis.locator_params(axis="y", nbins=4)
    text = f"{matched(row.exponent, row.error)} ± {number(row.half_width, 2)}"
    axis.text(0.995, 1.01, text, transform=axis.transAxes, ha="right", va="bottom", color=tint, fontsize=8.5)


def _limits(times: Array, values: Array, half: Array, row: summary.Row) -> tuple[float, float]:
    """All of the late estimates and most of their bands."""
    late = (times >= times[-1] * 10.0**-LATE) & np.isfinite(values)
    spread = np.abs(values[late] - row.exponent).max(initial=0.0)
    wide = half[late][np.isfinite(half[late])]
    typical = float(np.median(wide)) if len(wide) else 0.0
    reach = ROOM * max(spread, typical, 2.0 * np.nan_to_num(row.half_width), 1e-12 * abs(row.exponent), 1e-15)
    return row.exponent - reach, row.exponent + reach


def _draw_zeros(axis: Any, spectrum: Spectrum, history: Convergence, zeros: list[summary.Row]) -> None:
    """Moduli on logarithmic scales, with the line ln t / t that conserved quantities follow."""
    for row in zeros:
        k = row.number - 1
        tint = colour(k, len(spectrum.exponents))
        size = np.abs(history.exponents[:, k])
        size[size == 0.0] = np.nan
        dashes = {} if row is zeros[0] else {"dashes": (3, 2)}  # pairs lie upon each other
        axis.plot(history.times, size, color=tint, linewidth=1.2, label=f"|λ{row.number}|", **dashes)
    draw_guide(axis, history.times)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(*_span(history.times))
    axis.set_ylabel("exponents that vanish")
    axis.legend(loc="lower left", ncols=min(len(zeros) + 1, 4))


def draw_guide(axis: Any, times: Array) -> None:
    """ln t / t."""
    good = times > 2.0
    axis.plot(
        times[good],
        np.log(times[good]) / times[good],
        color=INK,
        linewidth=0.8,
        dashes=(4, 3),
        label="ln t / t",
    )


def _draw_many(axis: Any, spectrum: Spectrum, history: Convergence) -> None:
    """Lines without bands, coloured from the first to the last."""
    count = len(spectrum.exponents)
    for k in np.unique(np.linspace(0, count - 1, min(count, MOST_LINES)).astype(int)):
        axis.plot(history.times, history.exponents[:, k], color=colour(int(k), count), linewidth=0.9)
    axis.axhline(0.0, color=PALE, linewidth=0.7)
    late = history.exponents[history.times >= history.times[-1] * 10.0**-LATE]
    low, high = np.nanmin(late), np.nanmax(late)
    room = 0.08 * (high - low) or 1e-3
    axis.set_ylim(low - room, high + room)
    axis.set_xscale("log")
    axis.set_xlim(*_span(history.times))
    axis.set_xlabel(time_label(spectrum))
    axis.set_ylabel("running exponents")


def _span(times: Array) -> tuple[float, float]:
    last = float(times[-1])
    first = max(float(times[0]), last * 10.0**-DECADES)
    return (first, last) if last > first else (0.5 * last, 2.0 * last)
