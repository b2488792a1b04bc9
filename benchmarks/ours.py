"""hpcfit, with the same face as a peer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.peers import Answer, Run, kept, ladder
from hpcfit.flow.propagate import METHODS, propagate
from hpcfit.models.define import Model
from hpcfit.records import Array, Lanes

TOLERANCES = ladder(1e-8, 1e-14)
METHOD = "taylor" if "taylor" in METHODS else "extrapolation"


def prepare(model: Model, tolerance: float, method: str = METHOD) -> Run:
    """All lanes in one call of `propagate`."""

    times = kept(lambda t0, dt: np.stack([t0, t0 + dt], axis=1))
    propagated = repeated(model, tolerance, method)

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        lanes = propagated(times(t0, dt), starts, parameters)
        return Answer(*(values[:, -1] for values in lanes))

    return run


def prepare_dense(model: Model, tolerance: float, fractions: Array, method: str = METHOD) -> Run:
    """At these fractions (T,) of the span; the answer has an axis of times after that of lanes."""
    times = kept(lambda t0, dt: t0[:, None] + dt * np.concatenate([[0.0], fractions]))
    propagated = repeated(model, tolerance, method)

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        lanes = propagated(times(t0, dt), starts, parameters)
        return Answer(*(values[:, 1:] for values in lanes))

    return run


def repeated(model: Model, tolerance: float, method: str = METHOD) -> Callable[[Array, Array, Array], Answer]:
    """`propagate` as a solver calls it: again and again, into the same memory; no lane may fail."""
    last: list[Lanes] = []

    def propagated(times: Array, starts: Array, parameters: Array) -> Answer:
        lanes = propagate(
            model,
            times,
            starts,
            parameters,
            sensitivities=True,
            tolerance=tolerance,
            method=method,
            reuse=last[0] if last else None,
        )
        if lanes.failures:
            raise ArithmeticError(f"{model.name}: {len(lanes.failures)} lanes failed: {lanes.failures[0]}")
        assert lanes.by_start is not None
        assert lanes.by_parameters is not None
        last[:] = [lanes]
        return Answer(lanes.states, lanes.by_start, lanes.by_parameters)

    return propagated
