"""How long blocks are, and how often frames are orthonormalised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hpcfit.flow.propagate import propagate
from hpcfit.models.define import Model
from hpcfit.records import Array

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
        spans = np.column_stack([times, times + span])
        lanes = propagate(
            model, spans, states, parameters, sensitivities=True, method=method, tolerance=tolerance
        )
        assert lanes.by_start is not None
        return _elongation(lanes.by_start[:, -1])

    is_map = model.kind == "map"
    span = 1.0 if is_map else duration * 2.0**-HALVINGS
    while span < duration and elongation(np.array([begin]), np.atleast_2d(start)) <= MODEST:
        span *= 2.0
    least = 1.0 if is_map else duration * 2.0**-HALVINGS
    while (span := 0.5 * span) > least:
        times = begin + span * np.arange(SAMPLES)
        path = propagate(model, times, start, parameters, method=method, tolerance=tolerance)
        whole = np.isfinite(path.states[0]).all(axis=1)
        if whole.any() and elongation(times[whole], path.states[0][whole]) <= MODEST:
            break
    return max(span, least)


def _elongation(tangents: Array) -> float:
    """The logarithm of the longest over the shortest axis, the largest of all lanes (L, n, n)."""
    good = tangents[np.isfinite(tangents).all(axis=(1, 2))]
    if not len(good):
        return float("inf")
    axes = np.linalg.svd(good, compute_uv=False)
    with np.errstate(divide="ignore"):
        return float(np.log(axes[:, 0] / axes[:, -1]).max())
