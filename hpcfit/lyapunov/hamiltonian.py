"""Which systems are Hamiltonian, and tangent frames that keep their exponents in pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.lyapunov.jacobians import jacobians_at, orbit
from hpcfit.models.define import Model
from hpcfit.records import Array

Pairs = NDArray[np.int64]  # (m, 2): places of a coordinate and its momentum
NEARBY = 0.1  # how far around an orbit the Jacobian is looked at, of the size of the orbit
LIKENESS = 1e-9  # of what must be equal, relative


def canonical_pairs(model: Model, start: Array, parameters: Array, begin: float = 0.0) -> Pairs | None:
    """Coordinates and momenta of a Hamiltonian system; None if the states are none.

    A flow is Hamiltonian if J f_x is symmetric, a map is symplectic if F_x^T J F_x = J; looked at around
    an orbit, with the states in the order q1 q2 ... p1 p2 ... or q1 p1 q2 p2 ...
    """
    n = len(model.states)
    if n % 2 or n > 40 or model.opaque:
        return None
    matrices = _matrices(model, start, parameters, begin)
    numbers = np.arange(n)
    for pairs in (numbers.reshape(2, -1).T, numbers.reshape(-1, 2)):
        form = _form(pairs)
        if model.kind == "map":
            left, right = matrices.transpose(0, 2, 1) @ form @ matrices, np.broadcast_to(form, matrices.shape)
        else:
            left = form @ matrices
            right = left.transpose(0, 2, 1)
        size = max(1.0, float(np.abs(left).max(initial=0.0)))
        if len(matrices) and np.abs(left - right).max() <= LIKENESS * size:
            return pairs
    return None


def _matrices(model: Model, start: Array, parameters: Array, begin: float) -> Array:
    """Jacobians on an orbit and around it, where they are finite."""
    times, states = orbit(model, start, parameters, begin)
    size = NEARBY * np.maximum(np.abs(states).max(axis=0, initial=0.0), NEARBY)
    around = states + size * np.random.default_rng(0).uniform(-1.0, 1.0, states.shape)
    with np.errstate(all="ignore"):
        found = jacobians_at(model, np.tile(times, 2), np.concatenate([states, around]), parameters)
    return found[np.isfinite(found).all(axis=(1, 2))]


def _form(pairs: Pairs) -> Array:
    """J, with J[q, p] = 1 and J[p, q] = -1."""
    form = np.zeros((pairs.size, pairs.size))
    form[pairs[:, 0], pairs[:, 1]], form[pairs[:, 1], pairs[:, 0]] = 1.0, -1.0
    return form


def symplectic_frame(pairs: Pairs, slope: Array | None, random: np.random.Generator) -> Array:
    """An orthonormal frame (n, n) whose column n + 1 - i is conjugate to column i.

    The first half spans a Lagrangian plane that contains the slope, as its last column, and is thus tangent
    to the energy surface. Such planes are the unitary frames of q + i p (Arnold 1967).
    """
    m = len(pairs)
    columns = random.normal(size=(m, m)) + 1j * random.normal(size=(m, m))
    if slope is not None:
        columns[:, 0] = slope[pairs[:, 0]] + 1j * slope[pairs[:, 1]]
    unitary, _ = np.linalg.qr(columns)
    if slope is not None:
        unitary[:, 0] = columns[:, 0] / np.linalg.norm(columns[:, 0])  # QR may have turned its phase
    first = unitary[:, ::-1]
    frame = np.empty((2 * m, 2 * m))
    for half, own in ((frame[:, :m], first), (frame[:, m:], 1j * first[:, ::-1])):
        half[pairs[:, 0]], half[pairs[:, 1]] = own.real, own.imag
    return frame


def random_frame(states: int, columns: int, random: np.random.Generator) -> Array:
    """Orthonormal columns in any direction (n, k)."""
    frame, _ = np.linalg.qr(random.normal(size=(states, columns)))
    return np.ascontiguousarray(frame)
