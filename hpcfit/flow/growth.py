"""Growth of tangent frames by machine code: bundles to the kernel and back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.calling import attended
from hpcfit.flow.frames_reference import vanished
from hpcfit.flow.progress import Progress, Watch
from hpcfit.flow.taylor import FINISHED, TANGENT_SLACK, explain, order_for
from hpcfit.kernels.build import Kernel, frames_kernel
from hpcfit.kernels.source import HIGHEST_ORDER, HIGHEST_QUAD_ORDER
from hpcfit.models.define import Model
from hpcfit.records import Array, Bundle, Carried, Failure, Growth, Outcome

LANES = 8  # of the widest vectors
MOST_IN_LANES = 12  # tangents; more fill the lanes by themselves
TANGENTS_LOST = 6  # as in runtime/bundle.h
FRAME_FLOOR = 1e-9  # of the interval: f_x makes steps short like the square of the distance to a pole
ORDERS_TOGETHER = 4  # the order is a multiple of it (runtime/frames.h)


class _Work(ctypes.Structure):
    """The `work` of runtime/bundle.h."""

    _fields_ = [
        *[(name, ctypes.c_long) for name in ("n_lanes", "tangents", "first_block", "blocks")],
        *[(name, ctypes.c_double) for name in ("block", "interval", "begin")],
        ("carrying", ctypes.c_int),
        *[(name, ctypes.c_void_p) for name in ("reached", "states", "frames", "parameters")],
        *[(name, ctypes.c_void_p) for name in ("logarithms", "divergence", "last_time")],
        *[(name, ctypes.c_void_p) for name in ("done", "steps", "outcome")],
        *[(name, ctypes.c_double) for name in ("tolerance", "tangent_reach", "floor")],
        ("max_steps", ctypes.c_long),
        ("order", ctypes.c_int),
        ("stop", ctypes.c_void_p),
        ("covered", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Pace:
    """How the time of bundles is divided, and how carefully it is gone through."""

    blocks: int
    block: float
    interval: float
    begin: float
    tolerance: float
    max_steps: int


def grow_compiled(
    model: Model, bundle: Bundle, pace: Pace, *, quad: bool = False, watch: Watch | None = None
) -> Growth:
    """What `grow` does; lanes whose input is not finite are refused and do not enter the kernel."""
    good = _finite(bundle)
    arrays = _arrays(bundle, good, pace.blocks, quad)
    if good.any():
        kernel = _kernel(model, bundle, int(good.sum()), quad)
        _call(kernel, arrays, pace, first_block=bundle.blocks, watch=watch)
    part = _part(arrays, 0) if quad else arrays
    failures = _failures(model, bundle, good, part, pace)
    end = _end(bundle, bundle.blocks + pace.blocks, good, arrays, failures, quad)
    logarithms, divergence = (
        _spread(good, part[name], part["done"]) for name in ("logarithms", "divergence")
    )
    return Growth(end, logarithms, divergence, failures, _among_all(good, part["steps"]))


def carry_compiled(
    model: Model, bundle: Bundle, reached: Array, pace: Pace, *, quad: bool = False
) -> Carried:
    """What `carry` does; the kernel and so the orbit are the same whatever columns are here."""
    good = _finite(bundle) & np.isfinite(reached)
    arrays = _arrays(bundle, good, 1, quad)
    low = [np.zeros(int(good.sum()))] if quad else []
    arrays["reached"] = _packed([reached[good], *low])
    if good.any():
        tangents = bundle.frames.shape[-1] if quad or model.kind == "map" else None
        _call(frames_kernel(model, tangents, quad=quad), arrays, pace, first_block=bundle.blocks, watch=None)
    part = _part(arrays, 0) if quad else arrays
    failures = _failures(model, bundle, good, part, pace)
    end = _end(bundle, bundle.blocks, good, arrays, failures, quad)
    stopped = [failure.lane for failure in failures]
    times, divergence = np.full(len(good), np.nan), np.full(len(good), np.nan)
    times[good], divergence[good] = part["reached"], part["divergence"][:, 0]
    times[stopped], divergence[stopped] = np.nan, np.nan
    return Carried(end, times, divergence, failures, _among_all(good, part["steps"]))


def _finite(bundle: Bundle) -> NDArray[np.bool_]:
    """The lanes that can run."""
    return np.all([np.isfinite(a).reshape(len(a), -1).all(axis=1) for a in _inputs(bundle)], axis=0)


def _inputs(bundle: Bundle) -> tuple[Array, Array, Array]:
    return bundle.states, bundle.frames, bundle.parameters


def _arrays(bundle: Bundle, good: Any, blocks: int, quad: bool) -> dict[str, Any]:
    """What the kernel reads and writes, for the lanes that can run."""
    count, k = int(good.sum()), bundle.frames.shape[-1]
    low = bundle.low if bundle.low is not None else _without_low(bundle)
    inputs = zip(("states", "frames", "parameters"), _inputs(bundle), _inputs(low), strict=True)
    pair = (2,) if quad else ()
    return {
        **{name: _packed([a[good], b[good]] if quad else [a[good]]) for name, a, b in inputs},
        "logarithms": np.full((count, blocks, k, *pair), np.nan),
        "divergence": np.full((count, blocks, *pair), np.nan),
        "last_time": np.full((count, *pair), np.nan),
        "done": np.zeros(count, dtype=np.int64),
        "steps": np.zeros(count, dtype=np.int64),
        "outcome": np.zeros(count, dtype=np.int32),
    }


def _packed(parts: Sequence[Array]) -> Array:
    """An array as the kernel reads it: rows one after the other, pairs of high and low parts side by side."""
    return np.array(parts[0] if len(parts) == 1 else np.stack(parts, axis=-1), dtype=float, order="C")


def _without_low(bundle: Bundle) -> Bundle:
    states, frames, parameters = (np.zeros_like(a) for a in _inputs(bundle))
    return Bundle(bundle.blocks, states, frames, parameters)


def _part(arrays: dict[str, Any], i: int) -> dict[str, Any]:
    """High or low parts of numbers with 128 bits."""
    return {name: a[..., i] if a.dtype == float else a for name, a in arrays.items()}


def _kernel(model: Model, bundle: Bundle, lanes: int, quad: bool) -> Kernel:
    """Trajectories as lanes, or where they are few, the tangents of each; the bits are the same."""
    k = bundle.frames.shape[-1]
    one_by_one = lanes * (1 + -(-k // LANES))  # series, of states and of places
    in_crews = -(-lanes // LANES) * (1 + k)
    alone = not quad and model.kind != "map" and (one_by_one < in_crews or k > MOST_IN_LANES)
    return frames_kernel(model, None if alone else k, quad=quad)


def _call(
    kernel: Kernel, arrays: dict[str, Any], pace: Pace, *, first_block: int, watch: Watch | None
) -> None:
    stop, covered = np.zeros(1, dtype=np.int32), np.zeros(1)
    order = order_for(pace.tolerance, HIGHEST_QUAD_ORDER if kernel.quad else HIGHEST_ORDER)
    order += -order % ORDERS_TOGETHER
    slack = TANGENT_SLACK * pace.tolerance
    job = _Work(
        n_lanes=len(arrays["states"]),
        tangents=arrays["frames"].shape[2],
        first_block=first_block,
        blocks=pace.blocks,
        block=pace.block,
        interval=pace.interval,
        begin=pace.begin,
        carrying="reached" in arrays,
        **{name: array.ctypes.data for name, array in arrays.items()},
        tolerance=pace.tolerance,
        tangent_reach=math.exp((math.log(slack) + math.lgamma(order + 1)) / order),
        floor=FRAME_FLOOR * min(1.0, pace.interval / pace.block),
        max_steps=pace.max_steps,
        order=order,
        stop=stop.ctypes.data,
        covered=covered.ctypes.data if watch else None,
    )
    codes: list[int] = []
    attended(lambda: codes.append(kernel.library.grow(ctypes.byref(job))), stop, covered, watch)
    if any(codes):
        raise MemoryError(f"no memory for {job.n_lanes} frames of {job.tangents} tangents")


def _spread(good: Any, values: Array, done: Array) -> Array:
    """Results of the lanes that ran among all; NaN from the block on in which a lane stopped."""
    everything = np.full((len(good), *values.shape[1:]), np.nan)
    everything[good] = values
    for lane, blocks in zip(np.flatnonzero(good), done, strict=True):
        everything[lane, blocks:] = np.nan
    return everything


def _among_all(good: Any, steps: NDArray[np.int64]) -> NDArray[np.int64]:
    everything = np.zeros(len(good), dtype=np.int64)
    everything[good] = steps
    return everything


def _end(
    bundle: Bundle, blocks: int, good: Any, arrays: dict[str, Any], failures: Sequence[Failure], quad: bool
) -> Bundle:
    """Where the lanes are now; NaN where they have stopped."""

    def at(before: Bundle, part: dict[str, Any]) -> Bundle:
        states, frames = np.full_like(before.states, np.nan), np.full_like(before.frames, np.nan)
        states[good], frames[good] = part["states"], part["frames"]
        for failure in failures:
            states[failure.lane], frames[failure.lane] = np.nan, np.nan
        return Bundle(blocks, states, frames, before.parameters)

    if not quad:
        return at(bundle, arrays)
    low = at(bundle.low or _without_low(bundle), _part(arrays, 1))
    return replace(at(bundle, _part(arrays, 0)), low=low)


def _failures(
    model: Model, bundle: Bundle, good: Any, part: dict[str, Any], pace: Pace
) -> tuple[Failure, ...]:
    """Lanes that did not finish, each with its cause, found where the lane stopped."""
    outcomes, places = np.zeros(len(good), dtype=int), np.cumsum(good) - 1
    outcomes[good] = part["outcome"]
    failed = np.flatnonzero(outcomes != FINISHED).tolist()
    if not failed:
        return ()
    begin = pace.begin + bundle.blocks * pace.block
    times = np.tile([begin, begin + pace.blocks * pace.block], (len(failed), 1))
    progress = Progress.begin(model, times, bundle.states[failed], bundle.parameters[failed], False)
    found = []
    for i, lane in enumerate(failed):
        if good[lane]:
            at = places[lane]
            progress.t[i], progress.state[:, i] = part["last_time"][at], part["states"][at]
            if outcomes[lane] == TANGENTS_LOST:
                progress.failures[i] = vanished(i, float(progress.t[i]))
            else:
                ahead, frames = pace.block * 2.0**-50, bundle.frames.shape[-1] >= len(model.states)
                explain(model, progress, i, int(outcomes[lane]), pace.max_steps, ahead=ahead, frames=frames)
        elif i not in progress.failures:
            progress.fail(i, Outcome.BAD_INPUT, "the frame is not finite")
        found.append(replace(progress.failures[i], lane=lane))
    return tuple(found)
