"""The Jacobian f_x of a model at given points, and how fast it tears tangents apart."""

from __future__ import annotations

import math

import numpy as np

from hpcfit.flow.propagate import propagate
from hpcfit.flow.tangents import DISPLACEMENT, NumericField
from hpcfit.models.define import Model
from hpcfit.models.derivatives import jacobians
from hpcfit.models.evaluate import Program
from hpcfit.records import Array

POINTS = 64  # of an orbit, at which its Jacobians are looked at
MOST_STATES = 400  # of which a whole Jacobian is looked at
ROUGH = 1e-8  # relative error of orbits that are only looked at
DECADES = 3.0  # by which tangents may differ before they are made orthonormal again


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


def orbit(model: Model, start: Array, parameters: Array, begin: float) -> tuple[Array, Array]:
    """Times (P,) and states (P, n) of the first finite points of an orbit, spaced as its Jacobian is fast."""
    if model.kind == "map":
        times = begin + np.arange(float(POINTS))
    else:
        first = jacobians_at(model, np.array([begin]), start[None], parameters)[0]
        speed = float(np.linalg.norm(first, 2)) if np.isfinite(first).all() else 0.0
        times = begin + np.arange(POINTS) / (speed if speed > 0.0 else 1.0)
    lanes = propagate(model, times, start, parameters, method="extrapolation", tolerance=ROUGH)
    states = lanes.states[0]
    finite = np.isfinite(states).all(axis=1)
    return times[finite], states[finite]


def tearing(model: Model, start: Array, parameters: Array, begin: float) -> float:
    """Mean rate at which the ratio of the longest to the shortest tangent can grow, along an orbit.

    Of flows the spread of the eigenvalues of the symmetric part of f_x, of maps that of the logarithms of
    the singular values; infinite where the Jacobian is singular, not finite, or too large to look at.
    """
    if len(model.states) > MOST_STATES:
        return np.inf
    times, states = orbit(model, start, parameters, begin)
    with np.errstate(all="ignore"):
        matrices = jacobians_at(model, times, states, parameters)
        matrices = matrices[np.isfinite(matrices).all(axis=(1, 2))]
        if not len(matrices):
            return np.inf
        if model.kind == "map":
            logs = np.log(np.linalg.svd(matrices, compute_uv=False))
            return float((logs[:, 0] - logs[:, -1]).mean())
        rates = np.linalg.eigvalsh((matrices + matrices.transpose(0, 2, 1)) / 2.0)
    return float((rates[:, -1] - rates[:, 0]).mean())


def usual_interval(model: Model, start: Array, parameters: Array, begin: float, longest: float) -> float:
    """The time in which tangents come apart by three decades, with one digit; a whole number for maps."""
    rate = tearing(model, start, parameters, begin)
    own = min(DECADES * np.log(10.0) / rate, longest) if rate > 0.0 else longest
    if model.kind == "map":
        return max(1.0, np.floor(own))
    own = own if own > 0.0 else longest / 100.0
    power = math.floor(math.log10(own))
    return min(float(f"{math.floor(own / 10.0**power)}e{power}"), longest)
