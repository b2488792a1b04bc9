"""f and its Jacobian f_x at given points, and points of an orbit to look at them."""

from __future__ import annotations

import numpy as np

from hpcfit.flow.tangents import DISPLACEMENT, NumericField
from hpcfit.lyapunov.orbits import orbit
from hpcfit.models.define import Model
from hpcfit.models.derivatives import jacobians
from hpcfit.models.evaluate import Program
from hpcfit.records import Array

POINTS = 64  # of an orbit, at which its Jacobians are looked at


def slopes(model: Model, times: Array, states: Array, parameters: Array) -> Array:
    """f at some points (P, n), for times (P,), states (P, n) and parameters (n_p,)."""
    if model.graph is not None:
        values = Program(model.graph, model.equations)(times, states.T, parameters)
        return np.stack([np.broadcast_to(value, times.shape) for value in values], axis=1)
    column = np.broadcast_to(parameters[:, None, None], (len(parameters), 1, len(times)))
    return NumericField(model)(times, states.T[:, None], column)[:, 0].T


def jacobians_at(model: Model, times: Array, states: Array, parameters: Array) -> Array:
    """f_x at some points (P, n, n); of opaque models by central differences."""
    n = states.shape[1]
    if model.graph is None:
        columns = []
        for j in range(n):
            size = DISPLACEMENT * np.maximum(np.abs(states[:, j]), 1.0)
            step = np.zeros_like(states)
            step[:, j] = size
            ahead, behind = (slopes(model, times, states + sign * step, parameters) for sign in (1.0, -1.0))
            columns.append((ahead - behind) / (2.0 * size[:, None]))
        return np.stack(columns, axis=2)
    by_state, _ = jacobians(model)
    entries = [entry for row in by_state for entry in row]
    values = Program(model.graph, entries)(times, states.T, parameters)
    flat = np.stack([np.broadcast_to(value, times.shape) for value in values], axis=1)
    return flat.reshape(len(times), n, n)


def some_points(model: Model, start: Array, parameters: Array, begin: float) -> tuple[Array, Array]:
    """Times (P,) and states (P, n) of an orbit, spaced as its Jacobian is fast."""
    spacing = 1.0
    if model.kind == "flow":
        first = jacobians_at(model, np.array([begin]), start[None], parameters)[0]
        speed = float(np.linalg.norm(first, 2)) if np.isfinite(first).all() else 0.0
        spacing = 1.0 / speed if speed > 0.0 else 1.0
    return orbit(model, start, parameters, begin, spacing, POINTS)
