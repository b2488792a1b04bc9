"""Compiled Taylor lanes: arrays to the kernel and back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.calling import attended
from hpcfit.flow.progress import STEP_FLOOR, Progress, Watch
from hpcfit.flow.stops import AT_SURFACES, fail_at_surface, outcome_of
from hpcfit.kernels.build import Kernel, kernel_for
from hpcfit.kernels.source import HIGHEST_ORDER, HIGHEST_QUAD_ORDER
from hpcfit.models.define import Model
from hpcfit.models.graph import Symbol
from hpcfit.records import Array, Crossings, Failure, Lanes, Outcome

FINISHED, NOT_FINITE, FLOOR, BUDGET = 1, 2, 3, 4  # as in runtime/driver.h
TANGENT_SLACK = 100.0  # tangents may err this much more than the state
FIRST_EVENT_CAPACITY = 1024  # per lane


@dataclass(frozen=True)
class Event:
    """A traced function g(t, x, p) whose roots are wanted: where it rises (1), falls (-1) or both (0)."""

    expression: Symbol
    direction: int = 0


class _Work(ctypes.Structure):
    """The `work` of runtime/work.h."""

    _fields_ = [
        *[
            (name, ctypes.c_long)
            for name in ("n_lanes", "n_times", "time_rows", "sharing", "start_rows", "first")
        ],
        *[(name, ctypes.c_void_p) for name in ("times", "starts", "parameters")],
        *[(name, ctypes.c_void_p) for name in ("states", "by_start", "by_parameters")],
        *[(name, ctypes.c_void_p) for name in ("last_time", "last_state", "steps", "outcome")],
        *[(name, ctypes.c_double) for name in ("tolerance", "tangent_tolerance", "floor")],
        ("max_steps", ctypes.c_long),
        ("order", ctypes.c_int),
        ("event_capacity", ctypes.c_long),
        *[(name, ctypes.c_void_p) for name in ("directions", "event_counts", "event_numbers")],
        *[(name, ctypes.c_void_p) for name in ("event_times", "event_states")],
        ("switch_capacity", ctypes.c_long),
        *[(name, ctypes.c_void_p) for name in ("switch_counts", "switch_numbers")],
        *[(name, ctypes.c_void_p) for name in ("switch_times", "switch_states")],
        ("stop", ctypes.c_void_p),
        ("covered", ctypes.c_void_p),
    ]


def taylor(
    model: Model,
    times: Array,
    starts: Array,
    parameters: Array,
    *,
    sensitivities: bool,
    tolerance: float,
    max_steps: int,
    quad: bool = False,
    events: Sequence[Event] = (),
    switchings: bool = False,
    reuse: Lanes | None = None,
    watch: Watch | None = None,
) -> Lanes:
    """Propagate lanes by compiled Taylor series: times (L, T), starts (L, n), parameters (L, n_p).

    `quad` computes with 128 bits; every number is then a pair, and the low parts are returned in `low`.
    """
    good = np.all([np.isfinite(a).all(axis=1) for a in (times, starts, parameters)], axis=0)
    if not good.all():
        options: dict[str, Any] = {
            "sensitivities": sensitivities,
            "tolerance": tolerance,
            "max_steps": max_steps,
            "switchings": switchings,
        }
        part = (times[good], starts[good], parameters[good])
        able = taylor(model, *part, **options, quad=quad, events=events, watch=watch) if good.any() else None
        refused = Progress.begin(model, times, starts, parameters, sensitivities).lanes()
        return _joined(refused, able, np.flatnonzero(good))
    (n_lanes, n_times), n, n_p = times.shape, starts.shape[1], parameters.shape[1]
    pair = (2,) if quad else ()
    columns = {"by_start": n, "by_parameters": n_p} if sensitivities else {}
    arrays: dict[str, Any] = {
        **{name: _paired(a) if quad else a for name, a in _inputs(times, starts, parameters).items()},
        "states": _room(reuse, "states", (n_lanes, n_times, n, *pair)),
        **{name: _room(reuse, name, (n_lanes, n_times, n, width, *pair)) for name, width in columns.items()},
        "last_time": np.empty((n_lanes, *pair)),
        "last_state": np.empty((n_lanes, n, *pair)),
        "steps": np.zeros(n_lanes, dtype=np.int64),
        "outcome": np.zeros(n_lanes, dtype=np.int32),
    }
    kernel = kernel_for(model, quad=quad, events=[event.expression for event in events])
    kinds = [*(["event"] if events else []), *(["switch"] if switchings else [])]
    arrays |= (
        {"directions": np.array([event.direction for event in events], dtype=np.int32)} if events else {}
    )
    capacity = FIRST_EVENT_CAPACITY if kinds else 0
    while True:
        for kind in kinds:
            arrays |= _meeting_arrays(kind, n_lanes, n, capacity, pair)
        call_kernel(
            kernel,
            arrays,
            n_lanes=n_lanes,
            time_rows=n_lanes,
            tolerance=tolerance,
            max_steps=max_steps,
            event_capacity=capacity,
            switch_capacity=capacity,
            watch=watch,
        )
        needed = max((int(arrays[f"{kind}_counts"].max()) for kind in kinds), default=0)
        if needed <= capacity:
            break
        capacity = needed  # the path is the same every time, so the second time is enough
    parts = (
        [{k: a[..., i] if a.dtype == float else a for k, a in arrays.items()} for i in range(2)]
        if quad
        else [arrays]
    )
    failures = _failures(model, parts[0], max_steps)
    lanes = [
        Lanes(
            times,
            part["states"],
            part.get("by_start"),
            part.get("by_parameters"),
            failures,
            part["steps"],
            _crossings(part, "event"),
            _crossings(part, "switch"),
        )
        for part in parts
    ]
    return replace(lanes[0], low=lanes[1]) if quad else lanes[0]


def _joined(refused: Lanes, lanes: Lanes | None, numbers: NDArray[np.int64]) -> Lanes:
    """All lanes, where only those with these numbers could be run; the others are as they were refused."""
    if lanes is None:
        return refused
    for name in ("states", "by_start", "by_parameters", "steps"):
        if getattr(lanes, name) is not None:
            getattr(refused, name)[numbers] = getattr(lanes, name)
    failures = [*refused.failures, *(replace(f, lane=int(numbers[f.lane])) for f in lanes.failures)]
    crossings, switchings = (
        met and replace(met, lanes=numbers[met.lanes]) for met in (lanes.crossings, lanes.switchings)
    )
    low = (
        _joined(replace(refused, states=np.full_like(refused.states, np.nan)), lanes.low, numbers)
        if lanes.low
        else None
    )
    ordered = tuple(sorted(failures, key=lambda failure: failure.lane))
    return replace(refused, failures=ordered, crossings=crossings, switchings=switchings, low=low)


def _room(reuse: Lanes | None, name: str, shape: tuple[int, ...]) -> Array:
    """Memory for a result: that of an earlier one if it fits, as new pages cost more than their numbers."""
    old: Array | None = getattr(reuse, name, None)
    if old is not None and old.shape == shape and old.flags.c_contiguous:
        return old
    return np.empty(shape)


def _meeting_arrays(kind: str, n_lanes: int, n: int, capacity: int, pair: tuple[int, ...]) -> dict[str, Any]:
    """Room for what lanes meet: events or switches."""
    return {
        f"{kind}_counts": np.zeros(n_lanes, dtype=np.int64),
        f"{kind}_numbers": np.zeros((n_lanes, capacity), dtype=np.int32),
        f"{kind}_times": np.full((n_lanes, capacity, *pair), np.nan),
        f"{kind}_states": np.full((n_lanes, capacity, n, *pair), np.nan),
    }


def _crossings(part: dict[str, Any], kind: str) -> Crossings | None:
    """The filled places of such arrays, by lane and time."""
    if f"{kind}_counts" not in part:
        return None
    counts, times, numbers = (part[f"{kind}_{what}"] for what in ("counts", "times", "numbers"))
    lanes, places = np.nonzero(np.arange(times.shape[1]) < counts[:, None])
    order = np.lexsort((times[lanes, places], lanes))
    lanes, places = lanes[order], places[order]
    return Crossings(
        lanes,
        numbers[lanes, places].astype(np.int64),
        times[lanes, places],
        part[f"{kind}_states"][lanes, places],
    )


def _inputs(times: Array, starts: Array, parameters: Array) -> dict[str, Array]:
    return {"times": times, "starts": starts, "parameters": parameters}


def _paired(array: Array) -> Array:
    """Doubles as pairs (high, low) with nothing in the low part."""
    return np.stack([array, np.zeros_like(array)], axis=-1)


def order_for(tolerance: float, highest: int) -> int:
    """The order at which the work per unit of time is least (Jorba and Zou 2005)."""
    return min(max(math.ceil(1.0 - 0.5 * math.log(tolerance)), 4), highest)


def call_kernel(
    kernel: Kernel,
    arrays: dict[str, Any],
    *,
    n_lanes: int,
    time_rows: int,
    sharing: int = 1,
    start_rows: int = 1,
    first: int = 0,
    tolerance: float,
    max_steps: int,
    event_capacity: int = 0,
    switch_capacity: int = 0,
    watch: Watch | None = None,
) -> None:
    """Call the kernel; where somebody watches, in a thread of its own, so that it can be interrupted.

    Lane l goes through row l % time_rows of the times with row l // sharing of the parameters, which has
    start_rows starts for its lanes; outputs begin with number `first`.
    """
    stop, covered = np.zeros(1, dtype=np.int32), np.zeros(1)
    job = _Work(
        n_lanes=n_lanes,
        n_times=arrays["times"].shape[1],
        time_rows=time_rows,
        sharing=sharing,
        start_rows=start_rows,
        first=first,
        **{name: array.ctypes.data for name, array in arrays.items()},
        tolerance=tolerance,
        tangent_tolerance=TANGENT_SLACK * tolerance,
        floor=STEP_FLOOR,
        max_steps=max_steps,
        event_capacity=event_capacity,
        switch_capacity=switch_capacity,
        order=order_for(tolerance, HIGHEST_QUAD_ORDER if kernel.quad else HIGHEST_ORDER),
        stop=stop.ctypes.data,
        covered=covered.ctypes.data,
    )
    attended(lambda: kernel.library.propagate(ctypes.byref(job)), stop, covered, watch)


def _failures(model: Model, arrays: dict[str, Any], max_steps: int) -> tuple[Failure, ...]:
    """Lanes that did not finish, each with its cause, found where the lane stopped."""
    failed = np.flatnonzero(arrays["outcome"] != FINISHED)
    if not failed.size:
        return ()
    progress = Progress.begin(
        model, arrays["times"][failed], arrays["starts"][failed], arrays["parameters"][failed], False
    )
    progress.t, progress.state = arrays["last_time"][failed], arrays["last_state"][failed].T.copy()
    for i, lane in enumerate(failed):
        if i in progress.failures:
            continue
        span = float(arrays["times"][lane, -1] - arrays["times"][lane, 0])
        explain(model, progress, i, int(arrays["outcome"][lane]), max_steps, ahead=span * 2.0**-50)
    found = [progress.failures[i] for i in sorted(progress.failures)]
    return tuple(Failure(int(failed[f.lane]), f.time, f.outcome, f.cause) for f in found)


def explain(
    model: Model,
    progress: Progress,
    i: int,
    outcome: int,
    max_steps: int,
    ahead: float,
    *,
    frames: bool = False,
) -> None:
    """Why a lane stopped where it is; `ahead` is how far to look for an operation without a value.

    `frames`: the lane carried tangents in all directions.
    """
    if outcome == BUDGET:
        progress.fail_spent(i, max_steps)
    elif outcome_of(outcome) in AT_SURFACES:
        fail_at_surface(progress, i, outcome, frames=frames)
    elif model.kind == "map":
        progress.fail(i, Outcome.NOT_FINITE, progress.culprit(i))
    else:
        progress.fail_tiny(i, ahead, outcome == NOT_FINITE)
