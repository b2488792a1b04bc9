"""Poincaré sections: where trajectories pierce a surface, and the area that their energy permits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import propagate
from hpcfit.flow.taylor import Event
from hpcfit.lyapunov.permissible import border
from hpcfit.models.define import Model
from hpcfit.models.evaluate import evaluate
from hpcfit.models.strings import expression_of
from hpcfit.records import Array, InputError, Section

MOST_POINTS = 20_000
PIECES = 64  # of the duration, after each of which it is seen whether there are enough points


def section(
    model: Model,
    starts: Array,
    parameters: Array,
    *,
    surface: str,
    direction: int,
    axes: tuple[str, str],
    duration: float,
    begin: float = 0.0,
    most: int = MOST_POINTS,
    method: str | None = None,
    tolerance: float | None = None,
) -> Section:
    """Points of trajectories (L, n) on the surface where an expression vanishes, in `duration` time units.

    The axes are states or observables. Of a map all iterates are points, and there is no surface.
    It ends early when there are `most` points.
    """
    if model.graph is None:
        raise InputError(f"{model.name}: a section needs a model that can be traced; write its equations")
    if model.kind == "map":
        lanes, times, states = _iterates(model, starts, parameters, begin, duration, most)
    else:
        event = Event(expression_of(model, surface), direction)
        lanes, times, states = _crossings(
            model, event, starts, parameters, begin, duration, most, method, tolerance
        )
    wanted = [model.quantity(name) for name in axes]
    seen = evaluate(model, wanted, times, list(states.T), list(parameters[lanes].T))
    points = np.column_stack([np.broadcast_to(np.asarray(each, dtype=float), len(times)) for each in seen])
    edge = np.zeros((0, 2))
    if model.kind == "flow" and len(points):
        first = int(lanes[0])
        edge = border(model, surface, axes, states[0], starts[first], parameters[first])
    return Section(surface, direction, axes, points, lanes, edge, times)


def _crossings(
    model: Model,
    event: Event,
    starts: Array,
    parameters: Array,
    begin: float,
    duration: float,
    most: int,
    method: str | None,
    tolerance: float | None,
) -> tuple[NDArray[np.int64], Array, Array]:
    """Trajectories, times and states of the points, one piece of the duration after the other."""
    found: list[tuple[NDArray[np.int64], Array, Array]] = []
    alive, states, count = np.arange(len(starts)), np.array(starts), 0
    edges = begin + duration * np.arange(PIECES + 1) / PIECES
    for k in range(PIECES):
        lanes = propagate(
            model,
            edges[k : k + 2],
            states,
            parameters[alive],
            events=[event],
            method=method,
            tolerance=tolerance,
        )
        assert lanes.crossings is not None
        found.append((alive[lanes.crossings.lanes], lanes.crossings.times, lanes.crossings.states))
        count += len(lanes.crossings.times)
        good = np.isfinite(lanes.states[:, -1]).all(axis=1)
        alive, states = alive[good], lanes.states[good, -1]
        if count >= most or not len(alive):
            break
    owners, times, points = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((times, owners))
    return owners[order], times[order], points[order]


def _iterates(
    model: Model, starts: Array, parameters: Array, begin: float, duration: float, most: int
) -> tuple[NDArray[np.int64], Array, Array]:
    """All iterates of a map, trajectory by trajectory."""
    count = int(min(duration, max(most // len(starts), 1)))
    times = begin + np.arange(count + 1.0)
    states = propagate(model, times, starts, parameters).states[:, 1:]
    good = np.isfinite(states).all(axis=2)
    owners, places = np.nonzero(good)
    return owners.astype(np.int64), times[1:][places], states[owners, places]
