"""The result of a fit: estimates and what follows from them, by ranks that have all of it or a part each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Numbers
from hpcfit.leastsq.statistics import (
    Spread,
    common_factor,
    fisher_factor,
    involved,
    single_factor,
    squared,
)
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.inverse import first_nodes
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.evaluate import Program
from hpcfit.models.graph import Symbol
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import gathered
from hpcfit.records import Array, Estimates, FitResult, Outcome, Series
from hpcfit.shooting.pose import Posed
from hpcfit.shooting.problem import Problem
from hpcfit.shooting.slices import Slice
from hpcfit.studies.conditions import constraints_at, not_met
from hpcfit.studies.pictures import drawn_pieces, path_pieces


@dataclass(frozen=True)
class Asked:
    """What a result tells again of the question, and what is to be derived from the answer."""

    weights: Mapping[str, float]
    guess: Mapping[str, float]
    fixed: Mapping[str, float]
    truth: Mapping[str, float]
    expressions: Mapping[str, Symbol]
    solver: str


@dataclass(frozen=True)
class Solved:
    """All members at their ends."""

    course: Course
    degrees_of_freedom: Numbers  # (M,)
    seconds: float  # from the start to the covariance
    log: str = ""  # of the solver


def unknown_names(model: Model, posed: Posed) -> tuple[str, ...]:
    """x, x@2, ... of every experiment, and what is shared; k@1 is a parameter of the first one alone."""
    states = [
        f"{name}@{e + 1}" if e or name in posed.local else name
        for e in range(len(posed.experiments))
        for name in model.states
    ]
    return (*states, *(model.parameters[k] for k in posed.problem.free))


def unknown_values(
    posed: Posed, z: Unknowns, spread: Spread, freedom: Numbers, comm: Any = SERIAL
) -> tuple[Array, Array]:
    """Estimates (M, k) and covariance factors, the common factor included (M, k, f)."""
    members, width = len(freedom), spread.parameters.shape[-1]
    first = _begins(comm, posed, z).reshape(members, -1)
    values = np.concatenate([first, z.parameters], axis=1)
    factors = np.concatenate([spread.nodes.reshape(members, -1, width), spread.parameters], axis=1)
    beta2 = common_factor(spread.objective, freedom)
    return values, factors * np.sqrt(beta2)[:, None, None]


def _begins(comm: Any, posed: Posed, z: Unknowns) -> Array:
    """The nodes at which experiments begin (M, e, n)."""
    if not isinstance(posed.problem, Slice):
        return z.nodes[:, first_nodes(posed.problem.grid.linked)]
    segments = posed.problem.segments
    return gathered(comm, z.nodes[:, segments.first[segments.number == 0]], axis=1)


def fit_result(comm: Any, model: Model, posed: Posed, solved: Solved, asked: Asked) -> FitResult:
    """The result of member 0; where nodes are spread over ranks, each has those of its own."""
    course, spread = solved.course, solved.course.spread
    problem = posed.problem.inner if posed.extent else posed.problem
    count = course.z.nodes.shape[1]
    values, factors = unknown_values(posed, course.z, spread, solved.degrees_of_freedom, comm)
    unknowns = Estimates(unknown_names(model, posed), values[0], squared(factors[0]))
    freedom = int(solved.degrees_of_freedom[0])
    outcome, cause = _outcome(comm, model, posed, solved)
    beta2 = common_factor(spread.objective, solved.degrees_of_freedom)
    residuals, shifts = _residuals(comm, posed, problem, course.z.take(np.array([0])))
    begins = drawn_pieces(comm, problem.grid, residuals, posed.extent)
    start_time = float(comm.bcast(problem.grid.times[0]))
    return FitResult(
        model=model.name,
        state_names=model.states,
        parameter_names=tuple(model.parameters[k] for k in problem.free),
        fixed=dict(asked.fixed),
        outcome=outcome,
        cause=cause,
        unknowns=unknowns,
        derived=_derived(model, posed, unknowns, asked.expressions, start_time),
        experiments=posed.experiments,
        weights=dict(asked.weights),
        residuals=residuals,
        node_times=problem.grid.times[:count],
        node_experiments=problem.grid.experiment[:count],
        nodes=course.z.nodes[0],
        node_errors=spread.node_errors[0] * np.sqrt(beta2[0]),
        guess=dict(asked.guess),
        initial=path_pieces(comm, problem, posed.start, begins, posed.extent),
        final=path_pieces(comm, problem, course.z, begins, posed.extent),
        objective=float(spread.objective[0]),
        degrees_of_freedom=freedom,
        sigma_known=posed.sigma_known,
        gamma=fisher_factor(len(unknowns.names) - int(np.nan_to_num(spread.pinned[0])), freedom),
        t95=single_factor(freedom),
        iterations=int(course.iterations[0]),
        linearisations=int(course.linearisations[0]),
        history=tuple(course.history[0]) if course.history else (),
        solver=asked.solver,
        solver_log=solved.log,
        seconds=solved.seconds,
        truth=_truth(model, posed, asked, start_time),
        units=model.units,
        strategy=tuple(course.attempts[0]) if course.attempts else (),
        extent=posed.extent,
        constraints=constraints_at(posed, course.z, spread, unknowns.names, beta2[0]),
        time_shifts=shifts,
    )


def _outcome(comm: Any, model: Model, posed: Posed, solved: Solved) -> tuple[Outcome, str]:
    """How it ended; a deficient rank at the end is named even if the steps became small."""
    outcome, spread = solved.course.outcomes[0], solved.course.spread
    parts = np.concatenate([spread.blind_states[0], spread.blind_parameters[0]])
    names = involved(unknown_names(model, posed), parts)
    if names and outcome in (Outcome.CONVERGED, Outcome.RANK_DEFICIENT):
        return Outcome.RANK_DEFICIENT, f"not determined: {', '.join(names)}"
    if outcome is Outcome.CONTRADICTORY:
        apart = np.flatnonzero(spread.contradictory[0] > 0.0)
        return outcome, "; ".join(posed.problem.conditions.texts[k] for k in apart)
    if outcome is Outcome.NOT_INTEGRABLE:
        found = comm.allgather(posed.problem.failures(solved.course.z))
        return outcome, next((each for each in found if each), "")
    if outcome in (Outcome.STALLED, Outcome.UNFINISHED):
        unmet = not_met(posed, solved.course.z)
        return outcome, f"not met: {unmet}" if unmet else ""
    return outcome, ""


def _derived(
    model: Model, posed: Posed, unknowns: Estimates, expressions: Mapping[str, Symbol], time: float
) -> Estimates:
    """Values at the begin of the first experiment, and their covariance by propagation."""
    if not expressions:
        return Estimates((), np.zeros(0), np.zeros((0, 0)))
    values, slopes = _evaluated(
        model, posed, expressions, dict(zip(unknowns.names, unknowns.values, strict=True)), time
    )
    states = len(model.states)
    table = np.zeros((len(values), len(unknowns.names)))
    table[:, :states] = slopes[:, :states]
    table[:, len(unknowns.names) - len(posed.problem.free) :] = slopes[:, states:][:, posed.problem.free]
    return Estimates(tuple(expressions), values, table @ unknowns.covariance @ table.T)


def _evaluated(
    model: Model, posed: Posed, expressions: Mapping[str, Symbol], at: Mapping[str, float], time: float
) -> tuple[Array, Array]:
    """Values (k,) and derivatives by all states and parameters (k, n + n_p) of expressions at a time."""
    graph, outputs = model.graph, list(expressions.values())
    assert graph is not None
    leaves = [graph.leaf("state", i) for i in range(len(model.states))]
    leaves += [graph.leaf("parameter", i) for i in range(len(model.parameters))]
    columns = [derivative(outputs, leaf) for leaf in leaves]
    program = Program(graph, [*outputs, *(slope for column in columns for slope in column)])
    fixed = (posed.problem.inner if posed.extent else posed.problem).fixed
    states = [float(at[f"{name}@1" if name in posed.local else name]) for name in model.states]
    parameters = [
        float(at[name]) if name in at else float(fixed[k]) for k, name in enumerate(model.parameters)
    ]
    flat = np.array(program(time, states, parameters), dtype=float)
    return flat[: len(outputs)], flat[len(outputs) :].reshape(len(leaves), len(outputs)).T


def _truth(model: Model, posed: Posed, asked: Asked, time: float) -> dict[str, float]:
    """What is known of the truth, with the derived quantities that follow from it."""
    known = {name: float(value) for name, value in asked.truth.items()}
    needed = [f"{name}@1" if name in posed.local else name for name in (*model.states, *model.parameters)]
    if asked.expressions and all(name in known for name in needed):
        values, _ = _evaluated(model, posed, asked.expressions, known, time)
        known |= {name: float(value) for name, value in zip(asked.expressions, values, strict=True)}
    return known


def _residuals(
    comm: Any, posed: Posed, problem: Problem, z: Unknowns
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """(observed - fitted) / sigma for every value, also of those with weight 0; how far off times were."""
    comm, off = comm if posed.extent else SERIAL, None
    if problem.timed is not None:
        read, off = posed.problem.read(comm, z)
        rows = (read - problem.data[:, : read.shape[1]])[0]
    else:
        plain = replace(problem, weights=np.ones_like(problem.weights))
        asked = replace(posed.problem, inner=plain) if posed.extent else plain
        rows = asked.residuals(comm, z).rows
    count = rows.shape[0] if off is not None else rows.shape[1]
    data = problem.data[0, :count]
    rows = np.where(np.isfinite(data), -rows.reshape(data.shape), np.nan)
    names, grid = problem.readings.names, problem.grid
    found = [np.zeros((0, len(series.names))) for series in posed.experiments]
    shifts = [np.zeros(0) for _ in posed.experiments]
    for i, (node_of, output_of) in enumerate(zip(grid.node_of, grid.output_of, strict=True)):
        e = int(grid.experiment[0]) + i
        series = posed.experiments[e]
        columns, own = [names.index(name) for name in series.names], slice(0, series.count)
        distance = rows[node_of[own, None], output_of[own, None], columns]
        found[e] = distance / (1.0 if series.sigma is None else series.sigma)
        if off is not None:
            shifts[e] = off[0, node_of[own], output_of[own]]
    return tuple(found), () if off is None else tuple(shifts)


def whole(comm: Any, result: FitResult) -> FitResult:
    """A result that is spread over ranks, on all of them."""
    if result.extent is None:
        return result
    shifts = result.time_shifts or tuple(np.zeros(0) for _ in result.experiments)
    own = [
        (e, (series, result.residuals[e], shifts[e]))
        for e, series in enumerate(result.experiments)
        if series.count
    ]
    parts: list[list[tuple[Series, Array, Array]]] = [[] for _ in result.experiments]
    for told in comm.allgather(own):
        for e, part in told:
            parts[e].append(part)
    return replace(
        result,
        experiments=tuple(_joined([series for series, _, _ in each]) for each in parts),
        residuals=tuple(np.concatenate([residuals for _, residuals, _ in each]) for each in parts),
        time_shifts=tuple(np.concatenate([off for *_, off in each]) for each in parts)
        if result.time_shifts
        else (),
        node_times=gathered(comm, result.node_times),
        node_experiments=gathered(comm, result.node_experiments),
        nodes=gathered(comm, result.nodes),
        node_errors=gathered(comm, result.node_errors),
        extent=None,
    )


def _joined(parts: Sequence[Series]) -> Series:
    if len(parts) == 1:
        return parts[0]
    times = np.concatenate([part.times for part in parts])
    sigma = [part.sigma for part in parts if part.sigma is not None]
    sigma_t = [part.sigma_t for part in parts if part.sigma_t is not None]
    values = np.concatenate([part.values for part in parts])
    return Series(
        parts[0].names,
        times,
        values,
        np.concatenate(sigma) if sigma else None,
        np.concatenate(sigma_t) if sigma_t else None,
    )
