"""The one door to all integrators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.flow.extrapolation import extrapolate
from hpcfit.flow.maps import iterate
from hpcfit.flow.progress import Progress, Watch
from hpcfit.flow.taylor import Event, taylor
from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.records import Array, InputError, Lanes


@dataclass(frozen=True)
class Method:
    """What an integrator does when it is not told: its tolerance, and the steps before it gives a lane up."""

    tolerance: float
    smallest_tolerance: float
    max_steps: int


METHODS = {
    "taylor": Method(1e-16, 1e-18, 100_000_000),
    "taylor128": Method(1e-34, 1e-36, 100_000_000),
    "extrapolation": Method(1e-12, 1e-14, 100_000),
    "extrapolation-differences": Method(1e-12, 1e-14, 100_000),
}
MAP_STEPS = 10_000_000
DEFAULT_METHOD = "taylor"
COMPILED = ("taylor", "taylor128")
LARGEST_TOLERANCE = 1e-2


def propagate(
    model: Model,
    times: Any,
    starts: Any,
    parameters: Any,
    *,
    sensitivities: bool = False,
    tolerance: float | None = None,
    method: str | None = None,
    max_steps: int | None = None,
    events: Sequence[Event] = (),
    switchings: bool = False,
    reuse: Lanes | None = None,
    watch: Watch | None = None,
) -> Lanes:
    """Move lanes from their first time through all others.

    times (T,) for all lanes or (L, T); starts (n,) or (L, n); parameters (n_p,) or (L, n_p).
    A lane that fails is reported in `failures` with time and cause; the others finish. `watch` is told the
    part of the whole time that has been covered. `events` are met on the way and listed in `crossings`; with
    `switchings`, the model's own switches and jumps are listed, too.
    `reuse` gives the memory of an earlier result, which is then lost, to this one.
    """
    grid, start_lanes, parameter_lanes = _as_lanes(model, times, starts, parameters)
    _check_times(model, grid)
    method, tolerance = chosen_with_tolerance(model, method, tolerance)
    budget = max_steps or (MAP_STEPS if model.kind == "map" else METHODS[method].max_steps)
    with np.errstate(all="ignore"):  # what is not finite is found and reported lane by lane
        if method in COMPILED:
            return taylor(
                model,
                grid,
                start_lanes,
                parameter_lanes,
                sensitivities=sensitivities,
                tolerance=tolerance,
                max_steps=budget,
                quad=method == "taylor128",
                events=events,
                switchings=switchings,
                reuse=reuse,
                watch=watch,
            )
        if events:
            raise InputError(f'{model.name}: events need the compiled series; use method = "taylor"')
        if model.jumps:
            raise InputError(f'{model.name}: jumps need the compiled series; use method = "taylor"')
        progress = Progress.begin(model, grid, start_lanes, parameter_lanes, sensitivities)
        progress.watch = watch
        if model.kind == "map":
            iterate(progress, max_steps=budget)
        else:
            differences = method == "extrapolation-differences"
            extrapolate(progress, tolerance=tolerance, max_steps=budget, differences=differences)
    return progress.lanes()


def chosen_with_tolerance(model: Model, method: str | None, tolerance: float | None) -> tuple[str, float]:
    """Method and tolerance, given or usual: compiled series where the model has expressions."""
    chosen = chosen_method(model, method)
    if chosen not in METHODS:
        raise InputError(f"method '{chosen}' is unknown; {nearest(chosen, METHODS)}")
    if chosen.startswith("taylor") and model.opaque:
        raise InputError(f'{model.name}: an opaque model cannot be compiled; use method = "extrapolation"')
    usual = METHODS[chosen]
    if tolerance is None:
        return chosen, usual.tolerance
    if not usual.smallest_tolerance <= tolerance <= LARGEST_TOLERANCE:
        allowed = f"{usual.smallest_tolerance}..{LARGEST_TOLERANCE} of method {chosen}"
        raise InputError(f"tolerance {tolerance} is outside {allowed}; leave it out for the usual one")
    return chosen, tolerance


def chosen_method(model: Model, method: str | None) -> str:
    """The name of the integrator, given or usual."""
    return method or ("extrapolation" if model.opaque else DEFAULT_METHOD)


def _as_lanes(model: Model, times: Any, starts: Any, parameters: Any) -> tuple[Array, Array, Array]:
    """The three inputs with a leading lane axis of the same length."""
    arrays = [np.atleast_2d(np.asarray(values, dtype=float)) for values in (times, starts, parameters)]
    if arrays[0].ndim != 2:
        raise InputError(f"{model.name}: times have shape {arrays[0].shape}; give (T,) or (lanes, T)")
    widths: Sequence[tuple[str, int]] = (
        ("starts", len(model.states)),
        ("parameters", len(model.parameters)),
    )
    for (name, width), array in zip(widths, arrays[1:], strict=True):
        if array.ndim != 2 or array.shape[1] != width:
            raise InputError(
                f"{model.name}: {name} have shape {array.shape}, but the model has {width} of them"
            )
    n_lanes = max(len(array) for array in arrays)
    for name, array in zip(("times", "starts", "parameters"), arrays, strict=True):
        if len(array) not in (1, n_lanes):
            raise InputError(f"{model.name}: {len(array)} lanes of {name}, but {n_lanes} lanes elsewhere")
    grid, start_lanes, parameter_lanes = (
        np.ascontiguousarray(np.broadcast_to(array, (n_lanes, array.shape[1]))) for array in arrays
    )
    return grid, start_lanes, parameter_lanes


def _check_times(model: Model, grid: Array) -> None:
    if not grid.shape[1]:
        raise InputError(f"{model.name}: no times; give at least the start time")
    falls = np.argwhere(np.diff(grid, axis=1) <= 0.0)
    if len(falls):
        lane, k = falls[0]
        raise InputError(
            f"{model.name}: times must increase: "
            f"t[{k + 1}] = {grid[lane, k + 1]:.17g} after t[{k}] = {grid[lane, k]:.17g}"
        )
    if model.kind == "map" and not (np.isfinite(grid) & (grid == np.round(grid))).all():
        raise InputError(f"{model.name}: a map has whole numbers as times; use spacing = 1")
