"""How long blocks are, and how often frames are orthonormalised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcfit.flow.frames import carry
from hpcfit.lyapunov.orbits import MOST_STEPS, orbit
from hpcfit.models.define import Model
from hpcfit.records import Array, Bundle

MOST_BLOCKS = 10_000
MOST_NUMBERS = 20_000_000  # of the growth that is kept: 160 MB
FEWEST_BLOCKS = 256
MODEST = 5.0  # growth of the longest against the shortest axis of a frame, as a logarithm
HALVINGS = 40  # of the duration, to the time with which the search begins
SAMPLES = 64  # intervals of a path in which frames must stay in shape


@dataclass(frozen=True)
class Rhythm:
    """`blocks` of `block` time units make the run; frames are orthonormalised every `interval`."""

    blocks: int
    block: float
    interval: float


def rhythm(
    model: Model,
    start: Array,
    parameters: Array,
    *,
    duration: float,
    trajectories: int = 1,
    directions: int | None = None,
    begin: float = 0.0,
    method: str | None = None,
    tolerance: float | None = None,
) -> Rhythm:
    """The default rhythm of a run: deterministic, from the shape that frames take along a short path.

    A map is orthonormalised after whole iterations, and takes as many as fill its last block.
    """
    numbers = trajectories * (directions or len(model.states))
    most = int(np.clip(MOST_NUMBERS // numbers, FEWEST_BLOCKS, MOST_BLOCKS))
    shape = in_shape(model, start, parameters, duration, begin=begin, method=method, tolerance=tolerance)
    if model.kind == "map":
        block = max(1, math.ceil(duration / most))
        return Rhythm(math.ceil(duration / block), float(block), float(min(shape, block)))
    interval = min(shape, duration / FEWEST_BLOCKS)
    blocks = int(np.clip(duration // interval, FEWEST_BLOCKS, most))
    return Rhythm(blocks, duration / blocks, min(interval, duration / blocks))


def in_shape(
    model: Model,
    start: Array,
    parameters: Array,
    duration: float,
    *,
    begin: float = 0.0,
    method: str | None = None,
    tolerance: float | None = None,
) -> float:
    """A time in which frames stay in shape: their axes grow apart by no more than e^5.

    It is doubled as long as this is so from the start, and then halved until it is so all along a path.
    """

    def elongation(times: Array, states: Array) -> float:
        return _elongation(_carried(model, times, states, parameters, span, method, tolerance))

    is_map = model.kind == "map"
    span = 1.0 if is_map else duration * 2.0**-HALVINGS
    while span < duration and elongation(np.array([begin]), np.atleast_2d(start)) <= MODEST:
        span *= 2.0
    least = 1.0 if is_map else duration * 2.0**-HALVINGS
    while (span := 0.5 * span) > least:
        times, states = orbit(
            model, start, parameters, begin, span, SAMPLES, method=method, tolerance=tolerance
        )
        if len(times) and elongation(times, states) <= MODEST:
            break
    return max(span, least)


def _carried(
    model: Model,
    times: Array,
    states: Array,
    parameters: Array,
    span: float,
    method: str | None,
    tolerance: float | None,
) -> Array:
    """The fundamental matrices (L, n, n) over a time, from states (L, n) at times (L,)."""
    n = states.shape[1]
    together = [slice(None)] if not model.driven else [slice(i, i + 1) for i in range(len(times))]
    found = []
    for own in together:
        count = len(states[own])
        bundle = Bundle(0, states[own], np.tile(np.eye(n), (count, 1, 1)), np.tile(parameters, (count, 1)))
        moved = carry(
            model,
            bundle,
            np.zeros(count),
            block=span,
            interval=span,
            begin=float(times[own][0]),
            method=method,
            tolerance=tolerance,
            max_steps=MOST_STEPS,
        )
        found.append(moved.bundle.frames)
    return np.concatenate(found)


def _elongation(tangents: Array) -> float:
    """The logarithm of the longest over the shortest axis, the largest of all lanes (L, n, n)."""
    good = tangents[np.isfinite(tangents).all(axis=(1, 2))]
    if not len(good):
        return float("inf")
    axes = np.linalg.svd(good, compute_uv=False)
    with np.errstate(divide="ignore"):
        return float(np.log(axes[:, 0] / axes[:, -1]).max())
