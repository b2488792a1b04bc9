"""Where the trajectories of a spectrum begin: at given values, an example, a fit, draws around a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hpcfit.lyapunov.hamiltonian import energy_slope
from hpcfit.lyapunov.orbits import orbits
from hpcfit.lyapunov.starts import orthonormal_frame, symplectic_frame
from hpcfit.models.define import Model
from hpcfit.records import Array, Failure, FitResult, InputError, Mistake
from hpcfit.studies.simulate import in_order

NUDGE = 2.0**-46  # of later starts, relative: chance takes over from it within some 30 / lambda

Values = Mapping[str, float] | Sequence[float]


def given_or_usual(model: Model, start: Values | None, parameters: Values | None) -> tuple[Array, Array]:
    """Start (1, n) and parameters (1, n_p) as they are given, or those of the model's first example."""
    if not model.examples:
        lacking = [("start", start is None), ("parameters", parameters is None and model.parameters)]
        for key, absent in lacking:
            if absent:
                remedy = f"give it: {model.name} has no example to take it from"
                raise InputError(Mistake("", "is missing", remedy, key))
        usual_start, usual_values = {}, {}
    else:
        usual_start, usual_values = dict(model.examples[0].start), dict(model.examples[0].parameters)
    first = in_order(model.name, "start", usual_start if start is None else start, model.states)
    values = usual_values if parameters is None else parameters
    return first[None], in_order(model.name, "parameters", values, model.parameters)[None]


def fitted(model: Model, fit: FitResult, draws: int, seed: int) -> tuple[Array, Array]:
    """Starts (D + 1, n) and parameters (D + 1, n_p): the estimates, and draws of all unknowns together.

    A draw depends on seed and number alone.
    """
    if fit.state_names != model.states:
        problem = f"the fit is of {fit.model} with the states {' '.join(fit.state_names)}"
        raise InputError(Mistake("", problem, f"give a fit of {model.name}", "from"))
    names = (*model.states, *model.parameters)
    known = {**fit.fixed, **fit.unknowns.by_name()}
    if lacking := [name for name in names if name not in known]:
        problem = f"the fit tells no {', '.join(lacking[:8])}"
        raise InputError(Mistake("", problem, "give a fit in which all experiments share it", "from"))
    rows = [fit.unknowns.values]
    if draws:
        if not np.isfinite(fit.unknowns.covariance).all():
            raise InputError(Mistake("", "the fit has no covariance", "give no draws", "draws", draws))
        variances, axes = np.linalg.eigh(fit.unknowns.covariance)
        root = axes * np.sqrt(np.maximum(variances, 0.0))
        for draw in range(1, draws + 1):
            random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(draw, 0)))
            rows.append(fit.unknowns.values + root @ random.normal(size=len(variances)))
    places = {name: k for k, name in enumerate(fit.unknowns.names)}
    table = np.array([[row[places[n]] if n in places else known[n] for n in names] for row in rows])
    n_states = len(model.states)
    return np.ascontiguousarray(table[:, :n_states]), np.ascontiguousarray(table[:, n_states:])


def points_on_orbits(
    model: Model,
    firsts: Array,
    values: Array,
    begin: float,
    spacing: float,
    count: int,
    method: str | None,
    tolerance: float | None,
) -> tuple[Array, tuple[Failure, ...]]:
    """Starts (D * count, n) along the orbit of each draw, and those that its end prevents.

    Later ones are a nudge away from it: a trajectory that came, bit by bit, to where the next one began
    would tell the same again, as it would with every map.
    """
    states, ended = orbits(model, firsts, values, begin, spacing, count, method=method, tolerance=tolerance)
    states[:, 1:] *= 1.0 + NUDGE
    failures = tuple(
        Failure(each.lane * count + j, each.time, each.outcome, f"the orbit of starts: {each.cause}")
        for each in ended
        for j in np.flatnonzero(~np.isfinite(states[each.lane]).all(axis=1)).tolist()
    )
    return states.reshape(-1, firsts.shape[1]), failures


def first_frames(
    model: Model, form: Array | None, starts: Array, parameters: Array, *, columns: int, seed: int
) -> Array:
    """Orthonormal tangents (L, n, k), by seed and start alone; conjugate where J is given.

    In an autonomous flow they are tangent to the energy surface, and its direction is one of them.
    """
    if form is None:
        frame = orthonormal_frame(len(model.states), seed)[:, :columns]
        return np.repeat(frame[None], len(starts), axis=0)
    if model.kind == "map" or model.driven:
        slopes = np.zeros_like(starts)
    else:
        both = zip(starts, parameters, strict=True)
        slopes = np.stack([energy_slope(model, form, start, values) for start, values in both])
    return np.stack([symplectic_frame(form, slope, seed)[:, :columns] for slope in slopes])
