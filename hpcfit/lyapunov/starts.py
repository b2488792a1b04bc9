"""The tangent frames with which trajectories begin."""

from __future__ import annotations

import numpy as np

from hpcfit.records import Array


def orthonormal_frame(n: int, seed: int = 0) -> Array:
    """An orthonormal frame (n, n) in no special direction."""
    return _orthonormal(_draws(n, seed))


def symplectic_frame(form: Array, slope: Array, seed: int = 0) -> Array:
    """Orthonormal columns (n, n), the second half conjugate to the first: column n-1-i is J times column i.

    The first half is tangent to the energy surface, of which `slope` is the gradient; its last column is
    the direction of the flow. Frames of this form keep it, so that exponents come in pairs of opposite
    sign, exactly (Benettin et al. 1980; the order of the columns is that of their growth).
    """
    n = len(slope)
    size = np.linalg.norm(slope)
    draws = _draws(n, seed)
    flow = form @ slope / size if size > 0.0 else _orthonormal(draws)[:, 0]
    taken = [flow, form @ flow]
    halves: list[Array] = []
    for draw in draws.T[: n // 2 - 1]:
        column = _unit(_apart(_apart(draw, taken), taken))
        halves.append(column)
        taken += [column, form @ column]
    first = np.column_stack([*halves, flow])
    return np.column_stack([first, (form @ first)[:, ::-1]])


def forms(half: int) -> list[Array]:
    """J for states (q1 ... qm, p1 ... pm) and for (q1, p1, q2, p2, ...)."""
    unit, pair = np.eye(half), np.array([[0.0, 1.0], [-1.0, 0.0]])
    return [np.kron(pair, unit), np.kron(unit, pair)]


def _draws(n: int, seed: int) -> Array:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,))).standard_normal((n, n))


def _orthonormal(columns: Array) -> Array:
    """Gram-Schmidt, twice, in a fixed order of operations: the same bits on every machine."""
    taken: list[Array] = []
    for column in columns.T:
        taken.append(_unit(_apart(_apart(column, taken), taken)))
    return np.column_stack(taken)


def _apart(vector: Array, others: list[Array]) -> Array:
    """What is left of a vector perpendicular to orthonormal others."""
    for other in others:
        vector = vector - (other * vector).sum() * other
    return vector


def _unit(vector: Array) -> Array:
    return vector / np.sqrt((vector * vector).sum())
