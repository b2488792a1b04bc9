"""Points of an orbit, one after the other, by the machine code that carries tangents too."""

from __future__ import annotations

import numpy as np

from hpcfit.flow.frames import carry
from hpcfit.models.define import Model
from hpcfit.records import Array, Bundle, Failure

MOST_STEPS = 1_000_000  # between two points


def orbit(
    model: Model,
    start: Array,
    parameters: Array,
    begin: float,
    spacing: float,
    count: int,
    *,
    method: str | None = None,
    tolerance: float | None = None,
) -> tuple[Array, Array]:
    """Times (P,) and states (P, n) of the first points of an orbit, as far as it can be continued."""
    starts, values = start[None], parameters[None]
    states, _ = orbits(model, starts, values, begin, spacing, count, method=method, tolerance=tolerance)
    finite = np.isfinite(states[0]).all(axis=1)
    return (begin + spacing * np.arange(count))[finite], states[0][finite]


def orbits(
    model: Model,
    starts: Array,
    parameters: Array,
    begin: float,
    spacing: float,
    count: int,
    *,
    method: str | None = None,
    tolerance: float | None = None,
) -> tuple[Array, tuple[Failure, ...]]:
    """States (L, P, n) of the orbits of several starts (L, n); NaN after the time of a failure."""
    lanes, n = starts.shape
    states = np.full((lanes, count, n), np.nan)
    states[:, 0] = starts
    bundle = Bundle(0, starts, np.zeros((lanes, n, 0)), parameters)
    failures: dict[int, Failure] = {}
    for number in range(1, count):
        moved = carry(
            model,
            Bundle(number - 1, bundle.states, bundle.frames, parameters, bundle.low),
            np.zeros(lanes),
            block=spacing,
            interval=spacing,
            begin=begin,
            method=method,
            tolerance=tolerance,
            max_steps=MOST_STEPS,
        )
        bundle = moved.bundle
        for failure in moved.failures:
            failures.setdefault(failure.lane, failure)
        if len(failures) == lanes:
            break
        states[:, number] = bundle.states
    return states, tuple(failures[lane] for lane in sorted(failures))
