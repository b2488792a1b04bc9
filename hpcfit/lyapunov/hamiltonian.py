"""Which systems are Hamiltonian: those whose Jacobian says so, whether or not their energy is known."""

from __future__ import annotations

import numpy as np

from hpcfit.lyapunov.jacobians import jacobians_at, slopes, some_points
from hpcfit.lyapunov.starts import forms
from hpcfit.models.define import Model
from hpcfit.records import Array

MOST_STATES = 40
NEARBY = 0.1  # how far around an orbit the Jacobian is looked at, of the size of the orbit
LIKENESS = 1e-9  # of what must be equal, relative


def hamiltonian_form(model: Model, start: Array, parameters: Array, begin: float = 0.0) -> Array | None:
    """J (n, n) of a Hamiltonian flow or a symplectic map, in which x' = J grad H; None if the model is none.

    A flow without jumps is Hamiltonian if J f_x is symmetric, a map if F_x^T J F_x = J; looked at on an
    orbit and around it, with the states in the order q1 q2 ... p1 p2 ... or q1 p1 q2 p2 ...
    """
    n = len(model.states)
    if n % 2 or n > MOST_STATES or model.opaque or model.jumps:
        return None
    here = _matrices(model, parameters, np.array([begin]), start[None])
    likely = [form for form in forms(n // 2) if _fits(model, form, here)]
    if not likely:
        return None
    matrices = _matrices(model, parameters, *some_points(model, start, parameters, begin))
    return next((form for form in likely if _fits(model, form, matrices)), None)


def _fits(model: Model, form: Array, matrices: Array) -> bool:
    """Whether J and Jacobians (P, n, n) belong together; False where there are none."""
    if not len(matrices):
        return False
    if model.kind == "map":
        left, right = matrices.transpose(0, 2, 1) @ form @ matrices, np.broadcast_to(form, matrices.shape)
    else:
        left = form @ matrices
        right = left.transpose(0, 2, 1)
    return bool(np.abs(left - right).max() <= LIKENESS * max(float(np.abs(left).max()), LIKENESS))


def energy_slope(model: Model, form: Array, start: Array, parameters: Array) -> Array:
    """grad H (n,) of an autonomous flow at a start, from f = J grad H; zero where f is not finite."""
    with np.errstate(all="ignore"):
        slope: Array = form.T @ slopes(model, np.zeros(1), start[None], parameters)[0]
    return slope if np.isfinite(slope).all() else np.zeros_like(slope)


def _matrices(model: Model, parameters: Array, times: Array, states: Array) -> Array:
    """Jacobians at some points and around them, where they are finite."""
    size = NEARBY * np.maximum(np.abs(states).max(axis=0, initial=0.0), NEARBY)
    around = states + size * np.random.default_rng(0).uniform(-1.0, 1.0, states.shape)
    with np.errstate(all="ignore"):
        found = jacobians_at(model, np.tile(times, 2), np.concatenate([states, around]), parameters)
    return found[np.isfinite(found).all(axis=(1, 2))]
