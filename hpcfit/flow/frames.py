"""Tangent frames carried along trajectories, block by block: what Lyapunov spectra are made of."""

from __future__ import annotations

import math

import numpy as np

from hpcfit.flow.frames_reference import carry_by_propagation, grow_by_intervals
from hpcfit.flow.growth import Pace, carry_compiled, grow_compiled
from hpcfit.flow.progress import Watch
from hpcfit.flow.propagate import COMPILED, chosen_with_tolerance
from hpcfit.models.define import Model
from hpcfit.records import Array, Bundle, Carried, Growth, InputError

UNLIMITED = 1 << 52  # steps: a path that does not get on stops at the floor of its steps


def grow(
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
    """Take every trajectory of a bundle through the next `blocks` blocks of `block` units of time.

    The frame is orthonormalised after the step that ends at or beyond `interval` since the last time, and at
    the end of each block, where time is begin + number * block and the bundle is all that is needed to go on:
    calls may divide the blocks as they like. A trajectory that fails holds NaN from that block on.
    `watch` is told the part of the work that is done. Maps: `block` and `interval` count iterations.
    """
    _check(model, bundle, blocks, block, interval, begin)
    chosen, careful = chosen_with_tolerance(model, method, tolerance)
    if chosen in COMPILED:
        pace = Pace(blocks, block, interval, begin, careful, max_steps or UNLIMITED)
        return grow_compiled(model, bundle, pace, quad=chosen == "taylor128", watch=watch)
    return grow_by_intervals(
        model,
        bundle,
        blocks=blocks,
        block=block,
        interval=interval,
        begin=begin,
        method=method,
        tolerance=tolerance,
        max_steps=max_steps,
        watch=watch,
    )


def carry(
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
    """Take some columns of frames to the next time at which whole frames should become orthonormal.

    That is after the step that ends at or beyond `interval` since `reached` (L,), the time since the begin of
    the block, or at the end of the block. The columns, any number of them, are left as they are: ranks share
    those of one trajectory, make them orthonormal together and go on. State, `reached` and steps are the same
    to the last bit whatever columns are carried.
    """
    _check(model, bundle, 1, block, interval, begin, fewest=0)
    chosen, careful = chosen_with_tolerance(model, method, tolerance)
    if chosen in COMPILED:
        pace = Pace(1, block, interval, begin, careful, max_steps or UNLIMITED)
        return carry_compiled(model, bundle, reached, pace, quad=chosen == "taylor128")
    return carry_by_propagation(
        model,
        bundle,
        reached,
        block=block,
        interval=interval,
        begin=begin,
        method=method,
        tolerance=tolerance,
        max_steps=max_steps,
    )


def start_bundle(model: Model, states: object, parameters: object, frames: object = None) -> Bundle:
    """Trajectories before their first block: states (L, n), parameters (L, n_p) or one of each for all.

    Frames (L, n, k) or (n, k) need not be orthonormal; without, all n unit vectors.
    """
    n, n_p = len(model.states), len(model.parameters)
    given_states, given_parameters = (np.atleast_2d(np.asarray(a, dtype=float)) for a in (states, parameters))
    count = max(len(given_states), len(given_parameters))
    given_frames = np.eye(n) if frames is None else np.asarray(frames, dtype=float)
    k = given_frames.shape[-1]
    try:
        return Bundle(
            0,
            np.array(np.broadcast_to(given_states, (count, n))),
            np.array(np.broadcast_to(given_frames, (count, n, k))),
            np.array(np.broadcast_to(given_parameters, (count, n_p))),
        )
    except ValueError:
        raise InputError(
            f"{model.name}: states {given_states.shape}, frames {given_frames.shape} and parameters "
            f"{given_parameters.shape} do not fit; give (L, {n}), (L, {n}, k) and (L, {n_p})"
        ) from None


def _check(
    model: Model, bundle: Bundle, blocks: int, block: float, interval: float, begin: float, fewest: int = 1
) -> None:
    """One clear message for what cannot be meant."""
    n, k = len(model.states), bundle.frames.shape[-1]
    if not fewest <= k <= n:
        raise InputError(f"{model.name}: {k} tangents; give {fewest} to {n}, the number of states")
    if blocks < 1:
        raise InputError(f"{model.name}: {blocks} blocks; give 1 or more")
    for name, value in (("block", block), ("interval", interval)):
        if not (value > 0.0 and math.isfinite(value)):
            raise InputError(f"{model.name}: {name} is {value}; give a positive time")
        if model.kind == "map" and value != round(value):
            raise InputError(f"{model.name}: {name} is {value}; a map needs a whole number of iterations")
    if not math.isfinite(begin) or (model.kind == "map" and begin != round(begin)):
        raise InputError(f"{model.name}: begin is {begin}; give a finite time, a whole number for a map")
