"""Many fits of one problem, each with its own noise: a table of estimates, one row a member."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hpcfit.ensemble.noise import add_noise
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE
from hpcfit.leastsq.strategy import Options
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import everywhere, on_root, share
from hpcfit.records import Array, EnsembleResult, Noise, Outcome, Series
from hpcfit.shooting.grid import NodeChoice
from hpcfit.shooting.pose import Posed, pose
from hpcfit.studies.fit import check_start, chosen_options, solve_posed, unknown_names, unknown_values

BATCH = 256  # members side by side

Row = tuple[Array, Array, float, int, int, int, Outcome]


def fit_ensemble(
    model: Model,
    exact: Series,
    noise: Noise,
    *,
    seed: int,
    members: Sequence[int],
    guess: Mapping[str, float],
    fixed: Mapping[str, float] | None = None,
    nodes: NodeChoice = "data",
    start: Mapping[str, float | str] | None = None,
    weights: Mapping[str, float] | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    level: str = "natural",
    phases: str = "auto",
    method: str | None = None,
    truth: Mapping[str, float] | None = None,
    comm: Any = SERIAL,
    watch: Callable[[float], None] | None = None,
) -> EnsembleResult:
    """Fit `exact` plus the noise of every member; the noise of a member depends on (seed, member) alone.

    Ranks share the members; `watch` is told the part that this rank has done.
    """
    clock = time.perf_counter()
    mine = share(comm, len(members))
    own = np.array([members[k] for k in mine], dtype=np.int64)

    def posed(batch: Sequence[int], noisy: bool = True) -> Posed:
        values, sigma = _noisy(model, exact, noise, seed, batch)
        values = values if noisy else exact.values[None]
        series = Series(exact.names, exact.times, values[0], sigma)
        return pose(
            model,
            [series],
            [values],
            guess=guess,
            fixed=fixed,
            nodes=nodes,
            start=start,
            weights=weights,
            method=method,
        )

    def fit_own() -> list[Row]:
        rows: list[Row] = []
        for first in range(0, len(own), BATCH):
            problem = posed(own[first : first + BATCH].tolist())
            rows += _rows(problem, options)
            if watch is not None:
                watch(len(rows) / len(own))
        return rows

    options = chosen_options(
        tolerance=tolerance, max_iterations=max_iterations, level=level, phases=phases, solver=None
    )
    one = everywhere(comm, lambda: posed(members[:1], noisy=False))
    on_root(comm, lambda: check_start(one))  # and compiles, for all ranks
    rows = [row for part in comm.allgather(everywhere(comm, fit_own)) for row in part]
    names = unknown_names(model, one)
    estimates, errors, objective, freedom, iterations, linearisations, outcomes = zip(*rows, strict=True)
    return EnsembleResult(
        model=model.name,
        names=names,
        parameter_names=tuple(model.parameters[k] for k in one.problem.free),
        members=np.array(members, dtype=np.int64),
        outcomes=tuple(outcomes),
        estimates=np.stack(estimates),
        errors=np.stack(errors),
        objective=np.array(objective),
        degrees_of_freedom=np.array(freedom, dtype=np.int64),
        iterations=np.array(iterations, dtype=np.int64),
        linearisations=np.array(linearisations, dtype=np.int64),
        truth={name: float(value) for name, value in (truth or {}).items() if name in names},
        seed=seed,
        seconds=time.perf_counter() - clock,
        units=model.units,
    )


def _noisy(
    model: Model, exact: Series, noise: Noise, seed: int, members: Sequence[int]
) -> tuple[Array, Array]:
    """Values of all members (M, n_times, n_names), and their standard deviations (n_times, n_names)."""
    numbers = [model.quantities.index(name) for name in exact.names]
    drawn = [add_noise(exact.values, exact.names, numbers, noise, seed, int(member)) for member in members]
    return np.stack([values for values, _ in drawn]), drawn[0][1]


def _rows(posed: Posed, options: Options) -> list[Row]:
    solved = solve_posed(SERIAL, posed, options)
    values, factors = unknown_values(posed, solved)
    errors = np.sqrt((factors**2).sum(axis=2))
    course = solved.course
    return [
        (
            values[k],
            errors[k],
            float(solved.spread.objective[k]),
            int(solved.degrees_of_freedom[k]),
            int(course.iterations[k]),
            int(course.linearisations[k]),
            outcome,
        )
        for k, outcome in enumerate(course.outcomes)
    ]
