"""The readable body of growing frames: propagate over each interval, then QR (Benettin et al. 1980)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.progress import Watch
from hpcfit.flow.propagate import propagate
from hpcfit.models.define import Model
from hpcfit.records import Array, Bundle, Carried, Failure, Growth, Outcome


def grow_by_intervals(
    model: Model,
    bundle: Bundle,
    *,
    blocks: int,
    block: float,
    interval: float,
    begin: float = 0.0,
    method: str | None = None,
    tolerance: float | None = None,
    max_steps: int | None = None,
    watch: Watch | None = None,
) -> Growth:
    """What `grow` does, with intervals that end exactly where they should; the oracle of the compiled one."""
    (n_lanes, _, k), parameters = bundle.frames.shape, bundle.parameters
    states, frames = bundle.states.copy(), bundle.frames.copy()
    logarithms, divergence = np.full((n_lanes, blocks, k), np.nan), np.full((n_lanes, blocks), np.nan)
    steps, failures = np.zeros(n_lanes, dtype=np.int64), dict[int, Failure]()
    for b in range(blocks):
        grown, spread = np.zeros((n_lanes, k)), np.zeros(n_lanes)
        for first, last in _intervals(bundle.blocks + b, block, interval, begin):
            alive = np.array([lane for lane in range(n_lanes) if lane not in failures], dtype=np.int64)
            if not alive.size:
                break
            lanes = propagate(
                model,
                [first, last],
                states[alive],
                parameters[alive],
                sensitivities=True,
                method=method,
                tolerance=tolerance,
                max_steps=max_steps,
            )
            assert lanes.by_start is not None
            for failure in lanes.failures:
                failures[int(alive[failure.lane])] = replace(failure, lane=int(alive[failure.lane]))
            steps[alive] += lanes.steps
            moved, flow = lanes.states[:, -1], lanes.by_start[:, -1]
            states[alive] = moved
            frames[alive], sizes = orthonormal(flow @ frames[alive])
            with np.errstate(divide="ignore"):
                grown[alive] += np.log(sizes)
                spread[alive] += _logarithm_of_volume(flow)
            for lane in alive[_lost(sizes) & np.isfinite(moved).all(axis=1)]:
                failures[int(lane)] = vanished(int(lane), last)
        going = np.array([lane not in failures for lane in range(n_lanes)])
        logarithms[going, b], divergence[going, b] = grown[going], spread[going]
        if watch:
            watch((b + 1) / blocks)
    for lane in failures:
        states[lane], frames[lane] = np.nan, np.nan
    end = Bundle(bundle.blocks + blocks, states, frames, parameters)
    ordered = tuple(failures[lane] for lane in sorted(failures))
    return Growth(end, logarithms, divergence, ordered, steps)


def carry_by_propagation(
    model: Model,
    bundle: Bundle,
    reached: Array,
    *,
    block: float,
    interval: float,
    begin: float = 0.0,
    method: str | None = None,
    tolerance: float | None = None,
    max_steps: int | None = None,
) -> Carried:
    """What `carry` does, with an end exactly one interval further on."""
    ends = np.minimum(reached + interval, block)
    first = begin + bundle.blocks * block
    times = first + np.stack([reached, ends], axis=1)
    lanes = propagate(
        model,
        times,
        bundle.states,
        bundle.parameters,
        sensitivities=True,
        method=method,
        tolerance=tolerance,
        max_steps=max_steps,
    )
    assert lanes.by_start is not None
    flow = lanes.by_start[:, -1]
    end = Bundle(bundle.blocks, lanes.states[:, -1], flow @ bundle.frames, bundle.parameters)
    for failure in lanes.failures:
        ends[failure.lane] = np.nan
    return Carried(end, ends, _logarithm_of_volume(flow), lanes.failures, lanes.steps)


def vanished(lane: int, time: float) -> Failure:
    """A trajectory whose tangents cannot be orthonormalised."""
    cause = "a tangent became zero or not finite; use a shorter interval between orthonormalisations"
    return Failure(lane, time, Outcome.NOT_FINITE, cause)


def orthonormal(frames: Array) -> tuple[Array, Array]:
    """Frames (L, n, k) made orthonormal in the order of their columns, and by how much each was stretched."""
    finite = np.isfinite(frames).all(axis=(1, 2))
    q, r = np.linalg.qr(np.where(finite[:, None, None], frames, 0.0))
    diagonal = np.einsum("lkk->lk", r).copy()
    signs = np.where(diagonal < 0.0, -1.0, 1.0)
    q, sizes = q * signs[:, None, :], np.abs(diagonal)
    q[~finite], sizes[~finite] = np.nan, np.nan
    return q, sizes


def _lost(sizes: Array) -> NDArray[np.bool_]:
    return ~((sizes > 0.0) & np.isfinite(sizes)).all(axis=1)


def _logarithm_of_volume(flow: Array) -> Array:
    """log |det| (Liouville: the integral of the trace); NaN where a lane has stopped."""
    finite = np.isfinite(flow).all(axis=(1, 2))
    logarithm: Array = np.linalg.slogdet(np.where(finite[:, None, None], flow, 1.0))[1]
    return np.where(finite, logarithm, np.nan)


def _intervals(number: int, block: float, interval: float, begin: float) -> list[tuple[float, float]]:
    """Begin and end of the intervals of a block."""
    first, last = begin + number * block, begin + (number + 1) * block
    count = max(1, int(np.ceil(block / interval * (1.0 - 1e-12))))
    edges = [*(first + interval * j for j in range(count)), last]
    return list(pairwise(edges))
