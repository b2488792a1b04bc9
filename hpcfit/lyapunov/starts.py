"""Where trajectories and their tangent frames begin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcfit.flow.propagate import propagate
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.evaluate import evaluate
from hpcfit.models.graph import Symbol
from hpcfit.records import Array, InputError

PROBES = 8  # states at which a model must be Hamiltonian to count as such
AROUND = 0.1  # of the largest component of the start
SAME = 1e-9


def start_frames(
    model: Model, starts: Array, parameters: Array, *, directions: int | None = None, seed: int = 0
) -> Array:
    """Orthonormal columns (L, n, k) for starts (L, n): symplectic where the model is Hamiltonian.

    The frame of a trajectory depends on the seed and on its start, not on the others.
    """
    k = directions or len(model.states)
    form = symplectic_form(model, starts[0], parameters[0])
    if form is None:
        frame = orthonormal_frame(len(model.states), seed)
        return np.repeat(frame[None, :, :k], len(starts), axis=0)
    slopes = gradients(model, starts, parameters)
    frames = np.array([symplectic_frame(form, slope, seed) for slope in slopes])
    return frames[..., :k]


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


def symplectic_form(model: Model, start: Array, parameters: Array) -> Array | None:
    """J with x' = J grad H, H the invariant of the model: pairs (q, p) as halves, or beside each other.

    None if the model has no such form; it is tried at some states around the start.
    """
    n = len(model.states)
    if model.kind != "flow" or model.graph is None or model.invariant is None or n % 2:
        return None
    size = np.abs(start).max() or 1.0
    draws = np.random.default_rng(n).standard_normal((PROBES, n))
    probes = np.vstack([start, start + AROUND * size * draws])
    values = np.repeat(parameters[None], len(probes), axis=0)
    speeds, slopes = _values(model, model.equations, probes, values), gradients(model, probes, values)
    for form in _forms(n // 2):
        if _same(slopes @ form.T, speeds):
            return form
    return None


def gradients(model: Model, states: Array, parameters: Array) -> Array:
    """The gradient of the invariant (L, n) at states (L, n) with parameters (L, n_p)."""
    if model.graph is None or model.invariant is None:
        raise InputError(f"{model.name}: no invariant; declare it with the model")
    places = range(len(model.states))
    slopes = [derivative([model.invariant], model.graph.leaf("state", i))[0] for i in places]
    return _values(model, slopes, states, parameters)


def _values(model: Model, outputs: Sequence[Symbol], states: Array, parameters: Array) -> Array:
    """Expressions (L, n_outputs) at states (L, n)."""
    found = evaluate(model, outputs, 0.0, list(states.T), list(parameters.T))
    return np.column_stack([np.broadcast_to(np.asarray(each, dtype=float), len(states)) for each in found])


def along_the_orbit(
    model: Model,
    start: Array,
    parameters: Array,
    count: int,
    *,
    apart: float,
    begin: float = 0.0,
    method: str | None = None,
    tolerance: float | None = None,
) -> Array:
    """`count` points (count, n) of the orbit of the start, `apart` time units from each other.

    The first is the start itself. NaN where the orbit cannot be continued.
    """
    times = begin + apart * np.arange(count)
    if count == 1:
        return np.array(start, dtype=float)[None]
    lanes = propagate(model, times, start, parameters, method=method, tolerance=tolerance)
    points: Array = lanes.states[0]
    return points


def _forms(half: int) -> list[Array]:
    """J for states (q1 ... qm, p1 ... pm) and for (q1, p1, q2, p2, ...)."""
    unit, pair = np.eye(half), np.array([[0.0, 1.0], [-1.0, 0.0]])
    return [np.kron(pair, unit), np.kron(unit, pair)]


def _same(ours: Array, theirs: Array) -> bool:
    """Whether the rows (L, n) are the same vectors; a model may be undefined at some of the probes."""
    good = np.isfinite(ours).all(axis=1) & np.isfinite(theirs).all(axis=1)
    size = np.abs(theirs[good]).max(initial=0.0)
    return bool(good.any() and np.abs(ours[good] - theirs[good]).max() <= SAME * size)


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
