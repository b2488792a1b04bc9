"""Simulate: one trajectory, its sensitivities, and what an instrument would have seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.ensemble.noise import add_noise, time_errors
from hpcfit.flow.progress import Watch
from hpcfit.flow.propagate import COMPILED, chosen_method, propagate
from hpcfit.kernels.surfaces import surfaces
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.models.names import nearest
from hpcfit.models.retimed import retimed
from hpcfit.records import Array, Crossings, InputError, Noise, Outcome, Path, Series, Switchings
from hpcfit.shooting.experiments import check_timing
from hpcfit.shooting.readings import Readings


def simulate(
    model: Model,
    *,
    start: Mapping[str, float] | Sequence[float],
    parameters: Mapping[str, float] | Sequence[float],
    times: Any,
    sensitivities: bool = False,
    observe: Sequence[str] | None = None,
    noise: Noise | None = None,
    seed: int = 0,
    member: int = 0,
    experiment: int = 0,
    data: Series | None = None,
    tolerance: float | None = None,
    method: str | None = None,
    max_steps: int | None = None,
    watch: Watch | None = None,
) -> Path:
    """The path of a model through `times`, which begin at the start (n_times,).

    `observe` names states and observables (default: all states); `noise` makes `path.observed` from
    them, by seed, member and experiment. A path that cannot be continued holds NaN from there on;
    `path.outcome` and `path.cause` say why.
    """
    start_values = in_order(model.name, "start", start, model.states)
    values = in_order(model.name, "parameters", parameters, model.parameters)
    grid = np.atleast_1d(np.asarray(times, dtype=float))
    if grid.ndim != 1:
        raise InputError(f"{model.name}: times have shape {grid.shape}; give one list of times")
    lanes = propagate(
        model,
        grid,
        start_values,
        values,
        sensitivities=sensitivities,
        tolerance=tolerance,
        method=method,
        max_steps=max_steps,
        switchings=not model.smooth and chosen_method(model, method) in COMPILED,
        watch=watch,
    )
    states = lanes.states[0]
    exact = _quantities(model, tuple(observe or model.states), grid, states, values)
    failure = lanes.failures[0] if lanes.failures else None
    path = Path(
        model=model.name,
        state_names=model.states,
        parameter_names=model.parameters,
        kind=model.kind,
        start=start_values,
        parameters=values,
        times=grid,
        states=states,
        outcome=failure.outcome if failure else Outcome.DONE,
        cause=f"at t = {failure.time:.15g}: {failure.cause}" if failure else "",
        by_start=lanes.by_start[0] if lanes.by_start is not None else None,
        by_parameters=lanes.by_parameters[0] if lanes.by_parameters is not None else None,
        invariant=_invariant(model, grid, states, values),
        exact=exact,
        data=data,
        units=model.units,
        seed=seed if noise else None,
        steps=int(lanes.steps[0]),
        switchings=_switchings(model, lanes.switchings),
    )
    return replace(path, observed=_observed(model, path, noise, seed, member, experiment)) if noise else path


def _switchings(model: Model, met: Crossings | None) -> Switchings | None:
    """The switches and jumps of a path by name; where a jump could happen but does not, nothing does."""
    if met is None:
        return None
    known = surfaces(model)
    names = [known.passage(int(what) // 2, bool(what % 2)) for what in met.events]
    keep = [k for k, name in enumerate(names) if name]
    return Switchings(tuple(names[k] for k in keep), met.times[keep], met.states[keep])


def in_order(
    owner: str, what: str, given: Mapping[str, float] | Sequence[float], names: Sequence[str]
) -> Array:
    """Values by name, or in the order of the names, as an array."""
    if not isinstance(given, Mapping):
        values = np.asarray(given, dtype=float)
        if values.shape != (len(names),):
            raise InputError(
                f"{owner}: {what} has shape {values.shape}; give {len(names)}: {' '.join(names)}"
            )
        return values
    for name in given:
        if name not in names:
            raise InputError(f"{owner}: {what} names '{name}'; {nearest(name, names)}")
    for name in names:
        if name not in given:
            raise InputError(f"{owner}: {what} lacks '{name}'; give all of {' '.join(names)}")
    return np.array([float(given[name]) for name in names])


def _quantities(
    model: Model, names: tuple[str, ...], times: Array, states: Array, parameters: Array
) -> Series:
    """States and observables along the path, without noise."""
    for name in names:
        if name not in model.quantities:
            raise InputError(f"{model.name}: cannot observe '{name}'; {nearest(name, model.quantities)}")
    if model.graph is None:
        columns = [states[:, model.states.index(name)] for name in names]
    else:
        program = Program(model.graph, [model.quantity(name) for name in names])
        columns = [np.broadcast_to(column, times.shape) for column in program(times, states.T, parameters)]
    return Series(names, times, np.stack(columns, axis=1))


def _invariant(model: Model, times: Array, states: Array, parameters: Array) -> Array | None:
    if model.graph is None or model.invariant is None:
        return None
    (values,) = Program(model.graph, [model.invariant])(times, states.T, parameters)
    return np.broadcast_to(values, times.shape).copy()


def _observed(model: Model, path: Path, noise: Noise, seed: int, member: int, experiment: int) -> Series:
    assert path.exact is not None
    exact = path.exact
    numbers = [model.quantities.index(name) for name in exact.names]
    seen = seen_at_other_times(model, path, noise, seed, (member,), experiment)
    values, sigma = add_noise(exact.values, exact.names, numbers, noise, seed, member, experiment, seen)
    return Series(exact.names, exact.times, values, sigma, sigma_of_times(exact, noise))


def sigma_of_times(exact: Series, noise: Noise) -> Array | None:
    """Standard deviations of the times of observation (n_times,); None where they are exact."""
    return np.full(exact.count, noise.sd_t) if noise.sd_t else None


def seen_at_other_times(
    model: Model, path: Path, noise: Noise, seed: int, members: Sequence[int], experiment: int = 0
) -> Array | None:
    """What members see at their own times, without noise (M, n_times, n_names); None: times are exact."""
    if not noise.sd_t:
        return None
    assert path.exact is not None
    check_timing(model, "truth.noise.sd_t")
    off = time_errors(len(path.times), noise, seed, members, experiment)
    parameters = np.repeat(path.parameters[None], off.size, axis=0)
    lanes = propagate(
        retimed(model),
        np.array([0.0, 1.0]),
        np.tile(path.states, (len(off), 1)),
        np.column_stack([parameters, off.ravel(), np.tile(path.times, len(off))]),
    )
    states = lanes.states[:, 1].reshape(*off.shape, -1)
    return Readings(model, path.exact.names).values(path.times + off, states, path.parameters)
