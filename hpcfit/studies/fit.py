"""Fit: parameters and initial states of a model from noisy, incomplete data."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Numbers, Watch
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE
from hpcfit.leastsq.levels import LEVELS
from hpcfit.leastsq.statistics import (
    Spread,
    common_factor,
    fisher_factor,
    involved,
    single_factor,
    squared,
)
from hpcfit.leastsq.strategy import PHASES, Options, plausible_objective, solve
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.inverse import first_nodes
from hpcfit.linear.segments import Segments
from hpcfit.linear.solvers import SOLVERS
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.evaluate import Program
from hpcfit.models.graph import Symbol
from hpcfit.models.names import nearest
from hpcfit.models.strings import expression_of
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import everywhere, gathered, on_few, on_root
from hpcfit.records import Array, Estimates, FitResult, InputError, Mistake, Outcome, Series
from hpcfit.shooting.experiments import Experiment
from hpcfit.shooting.grid import NodeChoice
from hpcfit.shooting.pose import Posed, pose
from hpcfit.shooting.slices import sliced
from hpcfit.studies.local import with_local_parameters
from hpcfit.studies.long import all_rows, brought_together, chosen_solver, segments_of, solver_log
from hpcfit.studies.pictures import drawn_pieces, path_pieces


def fit(
    model: Model,
    experiments: Experiment | Series | Sequence[Experiment | Series],
    *,
    guess: Mapping[str, float],
    fixed: Mapping[str, float] | None = None,
    nodes: NodeChoice | Sequence[NodeChoice] = "data",
    start: Mapping[str, float | str] | None = None,
    weights: Mapping[str, float] | None = None,
    derived: Mapping[str, str] | None = None,
    local: str | Sequence[str] = (),
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    level: str = "natural",
    phases: str = "auto",
    solver: str | None = None,
    method: str | None = None,
    truth: Mapping[str, float] | None = None,
    comm: Any = SERIAL,
    watch: Watch | None = None,
) -> FitResult:
    """Fit a model to one or several experiments by multiple shooting (Bock 1981).

    guess: where the free parameters begin; fixed: values of the others. nodes: "data", every k-th data time,
    or a list of times. start: where the nodes of a state begin, a number or an expression in t (default: at
    the data; a hidden state at zero). weights: by observed name, 0 = not considered. derived: expressions of
    the initial state and the parameters (default: the model's invariant). local: parameters of which every
    experiment has its own value, k@1, k@2, ... truth is only shown beside the estimates, by their names.
    """
    several = [experiments] if isinstance(experiments, Experiment | Series) else list(experiments)
    series = [each.series if isinstance(each, Experiment) else each for each in several]

    def begin() -> tuple[Posed, Options, dict[str, Symbol]]:
        posed = pose(
            model,
            series,
            guess=guess,
            fixed=fixed,
            nodes=nodes,
            start=start,
            weights=weights,
            local=local,
            method=method,
        )
        options = chosen_options(
            tolerance=tolerance, max_iterations=max_iterations, level=level, phases=phases, solver=solver
        )
        return posed, options, _derived_expressions(posed.problem.model, derived or {})

    posed, options, expressions = everywhere(comm, begin)
    segments = everywhere(comm, lambda: segments_of(posed, level=level, solver=solver))
    if segments is None:
        on_root(comm, lambda: check_start(posed))  # and compiles, for all ranks
        solved = solve_posed(comm, posed, options, watch)
    else:
        options = replace(options, solver=SOLVERS[chosen_solver(solver, segments)])
        solved = on_few(comm, len(segments), lambda few: solve_long(few, posed, segments, options, watch))
    result = _result(
        posed.problem.model,
        posed,
        solved,
        experiments=tuple(series),
        weights=weights or {},
        guess=guess,
        fixed=fixed or {},
        expressions=expressions,
        truth=truth or {},
        solver=chosen_solver(solver, segments),
    )
    return with_local_parameters(result, posed.local)


@dataclass(frozen=True)
class Solved:
    """All members at their ends."""

    course: Course
    degrees_of_freedom: Numbers  # (M,)
    seconds: float  # from the start to the covariance
    rows: Array | None = None  # (1, N, k) read less given, of member 0, where that is known already
    log: str = ""  # of the solver


def chosen_options(
    *, tolerance: float, max_iterations: int, level: str, phases: str, solver: str | None
) -> Options:
    for what, given, known in (
        ("fit.level", level, LEVELS),
        ("fit.phases", phases, PHASES),
        ("fit.solver", solver or "dense", SOLVERS),
    ):
        if given not in known:
            raise InputError(Mistake("", "is unknown", nearest(given, known), what, given))
    return Options(tolerance, max_iterations, level, phases, SOLVERS[solver or "dense"])


def solve_posed(
    comm: Any,
    posed: Posed,
    options: Options,
    watch: Watch | None = None,
    freedom: Numbers | None = None,
) -> Solved:
    """From the start to the solution and its covariance, all members side by side.

    freedom: the degrees of freedom (M,), where `posed` is a part of the problem only.
    """
    course = Course.begin(posed.start, watch, experiments=len(posed.experiments))
    freedom = degrees_of_freedom(posed) if freedom is None else freedom
    largest = plausible_objective(freedom, posed.sigma_known)
    clock = time.perf_counter()
    with np.errstate(all="ignore"):  # what is not finite is found and reported member by member
        for _ in solve(comm, posed.problem, course, posed.precision, largest, options, posed.rough):
            pass
    return Solved(course, freedom, time.perf_counter() - clock)


def solve_long(
    comm: Any, posed: Posed, segments: Segments, options: Options, watch: Watch | None = None
) -> Solved:
    """The same for a problem whose nodes are spread over ranks; all ranks get all nodes of the solution."""
    own = sliced(comm, posed, segments)
    on_root(comm, lambda: check_start(own))  # and compiles, for all ranks
    everywhere(comm, lambda: check_start(own))
    own = sliced(comm, posed, segments, gathered(comm, own.problem.cost(own.start)))
    part = solve_posed(comm, own, options, watch, degrees_of_freedom(posed))
    rows = all_rows(comm, own.problem, part.course.z)
    return replace(part, course=brought_together(comm, part.course), rows=rows, log=solver_log(comm, options))


def degrees_of_freedom(posed: Posed) -> Numbers:
    """Values less unknowns, which are the initial states of every experiment and the parameters (M,)."""
    unknowns = len(posed.experiments) * posed.start.nodes.shape[2] + posed.start.parameters.shape[1]
    return posed.problem.observed() - unknowns


def unknown_names(model: Model, posed: Posed) -> tuple[str, ...]:
    """x, x@2, ... of every experiment, and what is shared; k@1 is a parameter of the first one alone."""
    states = [
        f"{name}@{e + 1}" if e or name in posed.local else name
        for e in range(len(posed.experiments))
        for name in model.states
    ]
    return (*states, *(model.parameters[k] for k in posed.problem.free))


def unknown_values(posed: Posed, z: Unknowns, spread: Spread, freedom: Numbers) -> tuple[Array, Array]:
    """Estimates (M, k) and covariance factors, the common factor included (M, k, f)."""
    members, width = len(freedom), spread.parameters.shape[-1]
    first = first_nodes(posed.problem.grid.linked)
    values = np.concatenate([z.nodes[:, first].reshape(members, -1), z.parameters], axis=1)
    factors = np.concatenate([spread.nodes.reshape(members, -1, width), spread.parameters], axis=1)
    beta2 = common_factor(spread.objective, freedom)
    return values, factors * np.sqrt(beta2)[:, None, None]


def check_fit_data(model: Model, experiments: Sequence[Series], **asked: Any) -> None:
    """Raise what is wrong with a fit and can be found before anything is integrated; `asked` as in `pose`."""
    pose(model, experiments, **asked)


def check_start(posed: Posed) -> None:
    """A guess that cannot be integrated from the first nodes is a mistake of the input."""
    where = posed.problem.failures(posed.start)
    if where:
        remedy = "give another guess, closer nodes, or another start of the nodes"
        raise InputError(Mistake("", f"the first path cannot be integrated {where}", remedy, "guess"))


def _result(
    model: Model,
    posed: Posed,
    solved: Solved,
    *,
    experiments: tuple[Series, ...],
    weights: Mapping[str, float],
    guess: Mapping[str, float],
    fixed: Mapping[str, float],
    expressions: Mapping[str, Symbol],
    truth: Mapping[str, float],
    solver: str,
) -> FitResult:
    course, spread, problem = solved.course, solved.course.spread, posed.problem
    values, factors = unknown_values(posed, course.z, spread, solved.degrees_of_freedom)
    unknowns = Estimates(unknown_names(model, posed), values[0], squared(factors[0]))
    freedom = int(solved.degrees_of_freedom[0])
    outcome, cause = _outcome(model, posed, solved)
    beta2 = common_factor(spread.objective, solved.degrees_of_freedom)
    residuals = _residuals(posed, solved, experiments)
    begins = drawn_pieces(problem.grid, residuals)
    return FitResult(
        model=model.name,
        state_names=model.states,
        parameter_names=tuple(model.parameters[k] for k in problem.free),
        fixed=dict(fixed),
        outcome=outcome,
        cause=cause,
        unknowns=unknowns,
        derived=_derived(model, posed, unknowns, expressions),
        experiments=experiments,
        weights=dict(weights),
        residuals=residuals,
        node_times=problem.grid.times,
        node_experiments=problem.grid.experiment,
        nodes=course.z.nodes[0],
        node_errors=spread.node_errors[0] * np.sqrt(beta2[0]),
        guess=dict(guess),
        initial=path_pieces(problem, posed.start, begins),
        final=path_pieces(problem, course.z, begins),
        objective=float(spread.objective[0]),
        degrees_of_freedom=freedom,
        sigma_known=posed.sigma_known,
        gamma=fisher_factor(len(unknowns.names), freedom),
        t95=single_factor(freedom),
        iterations=int(course.iterations[0]),
        linearisations=int(course.linearisations[0]),
        history=tuple(course.history[0]) if course.history else (),
        solver=solver,
        solver_log=solved.log,
        seconds=solved.seconds,
        truth=_truth(model, posed, expressions, truth),
        units=model.units,
        strategy=tuple(course.attempts[0]) if course.attempts else (),
    )


def _outcome(model: Model, posed: Posed, solved: Solved) -> tuple[Outcome, str]:
    """How it ended; a deficient rank at the end is named even if the steps became small."""
    outcome, spread = solved.course.outcomes[0], solved.course.spread
    parts = np.concatenate([spread.blind_states[0], spread.blind_parameters[0]])
    names = involved(unknown_names(model, posed), parts)
    if names and outcome in (Outcome.CONVERGED, Outcome.RANK_DEFICIENT):
        return Outcome.RANK_DEFICIENT, f"not determined: {', '.join(names)}"
    if outcome is Outcome.NOT_INTEGRABLE:
        return outcome, posed.problem.failures(solved.course.z)
    return outcome, ""


def _derived_expressions(model: Model, derived: Mapping[str, str]) -> dict[str, Symbol]:
    """The expressions by name; without any, the model's invariant."""
    taken = (*model.states, *model.parameters)
    for name in derived:
        if name in taken:
            problem = "has the name of an unknown"
            raise InputError(Mistake("", problem, "choose another name", f"fit.derived.{name}"))
    expressions = {}
    for name, source in derived.items():
        try:
            expressions[name] = expression_of(model, source)
        except InputError as error:
            problem, _, remedy = str(error).partition("; ")
            raise InputError(
                Mistake("", problem, remedy or "remove it", f"fit.derived.{name}", source)
            ) from None
    if not expressions and model.invariant is not None:
        return {"invariant": model.invariant}
    return expressions


def _derived(model: Model, posed: Posed, unknowns: Estimates, expressions: Mapping[str, Symbol]) -> Estimates:
    """Values at the begin of the first experiment, and their covariance by propagation."""
    if not expressions:
        return Estimates((), np.zeros(0), np.zeros((0, 0)))
    values, slopes = _evaluated(
        model, posed, expressions, dict(zip(unknowns.names, unknowns.values, strict=True))
    )
    states = len(model.states)
    table = np.zeros((len(values), len(unknowns.names)))
    table[:, :states] = slopes[:, :states]
    table[:, len(unknowns.names) - len(posed.problem.free) :] = slopes[:, states:][:, posed.problem.free]
    return Estimates(tuple(expressions), values, table @ unknowns.covariance @ table.T)


def _evaluated(
    model: Model, posed: Posed, expressions: Mapping[str, Symbol], at: Mapping[str, float]
) -> tuple[Array, Array]:
    """Values (k,) and derivatives by all states and parameters (k, n + n_p) of expressions."""
    graph, outputs = model.graph, list(expressions.values())
    assert graph is not None
    leaves = [graph.leaf("state", i) for i in range(len(model.states))]
    leaves += [graph.leaf("parameter", i) for i in range(len(model.parameters))]
    columns = [derivative(outputs, leaf) for leaf in leaves]
    program = Program(graph, [*outputs, *(slope for column in columns for slope in column)])
    states = [float(at[f"{name}@1" if name in posed.local else name]) for name in model.states]
    parameters = [
        float(at[name]) if name in at else float(posed.problem.fixed[k])
        for k, name in enumerate(model.parameters)
    ]
    flat = np.array(program(float(posed.problem.grid.times[0]), states, parameters), dtype=float)
    return flat[: len(outputs)], flat[len(outputs) :].reshape(len(leaves), len(outputs)).T


def _truth(
    model: Model, posed: Posed, expressions: Mapping[str, Symbol], truth: Mapping[str, float]
) -> dict[str, float]:
    """What is known of the truth, with the derived quantities that follow from it."""
    known = {name: float(value) for name, value in truth.items()}
    needed = [f"{name}@1" if name in posed.local else name for name in (*model.states, *model.parameters)]
    if expressions and all(name in known for name in needed):
        values, _ = _evaluated(model, posed, expressions, known)
        known |= {name: float(value) for name, value in zip(expressions, values, strict=True)}
    return known


def _residuals(posed: Posed, solved: Solved, experiments: Sequence[Series]) -> tuple[Array, ...]:
    """(observed - fitted) / sigma for every value, also of those with weight 0."""
    problem, grid, rows = posed.problem, posed.problem.grid, solved.rows
    if rows is None:
        plain = replace(problem, weights=np.ones_like(problem.weights))
        rows = plain.residuals(SERIAL, solved.course.z.take(np.array([0]))).rows
    rows = np.where(np.isfinite(problem.data[0]), -rows.reshape(problem.data.shape[1:]), np.nan)
    names, found = problem.readings.names, []
    for e, series in enumerate(experiments):
        columns = [names.index(name) for name in series.names]
        distance = rows[grid.node_of[e][:, None], grid.output_of[e][:, None], columns]
        found.append(distance / (1.0 if series.sigma is None else series.sigma))
    return tuple(found)
