"""Fit: parameters and initial states of a model from noisy, incomplete data."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Numbers, Watch
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE
from hpcfit.leastsq.levels import LEVELS
from hpcfit.leastsq.statistics import Spread
from hpcfit.leastsq.strategy import PHASES, Options, plausible_objective, solve
from hpcfit.linear.segments import Segments
from hpcfit.linear.solvers import SOLVERS
from hpcfit.models.define import Model
from hpcfit.models.graph import Symbol
from hpcfit.models.names import nearest
from hpcfit.models.strings import expression_of
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import everywhere, gathered, on_few, on_root
from hpcfit.records import FitResult, InputError, Mistake, Series, Source
from hpcfit.shooting.experiments import Experiment, check_names, of_experiment
from hpcfit.shooting.grid import NodeChoice
from hpcfit.shooting.parts import Whole, pose_part
from hpcfit.shooting.pose import Posed, Settled, each_choice, pose, settle
from hpcfit.studies.local import with_local_parameters
from hpcfit.studies.long import all_rows, chosen_solver, cuts_of, segments_of, solver_log
from hpcfit.studies.noise_levels import check_levels, with_levels
from hpcfit.studies.result import Asked, Solved, fit_result, whole


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
    constraints: str | Sequence[str] = (),
    times: str = "measured",
    unknown_sigma: str | Sequence[str] = (),
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
    experiment has its own value, k@1, k@2, ... constraints: equalities and inequalities between states at
    any times, parameters and experiments, as in ["x@end = x@start", "x@2:start = x@1:end", "k >= 0"]. times:
    "exact" takes no notice of the errors of times. unknown_sigma: quantities whose noise level is found from
    the residuals, each for itself (where sigma is stated, as a factor of it). truth is only shown beside the
    estimates, by their names.
    """
    several = [experiments] if isinstance(experiments, Experiment | Series) else list(experiments)
    result = fit_in_parts(
        model,
        [each.series if isinstance(each, Experiment) else each for each in several],
        guess=guess,
        fixed=fixed,
        nodes=nodes,
        start=start,
        weights=weights,
        derived=derived,
        local=local,
        constraints=constraints,
        times=times,
        unknown_sigma=unknown_sigma,
        tolerance=tolerance,
        max_iterations=max_iterations,
        level=level,
        phases=phases,
        solver=solver,
        method=method,
        truth=truth,
        comm=comm,
        watch=watch,
    )
    return whole(comm, result)


def fit_in_parts(
    model: Model,
    sources: Sequence[Source],
    *,
    guess: Mapping[str, float],
    fixed: Mapping[str, float] | None = None,
    nodes: NodeChoice | Sequence[NodeChoice] = "data",
    start: Mapping[str, float | str] | None = None,
    weights: Mapping[str, float] | None = None,
    derived: Mapping[str, str] | None = None,
    local: str | Sequence[str] = (),
    constraints: str | Sequence[str] = (),
    times: str = "measured",
    unknown_sigma: str | Sequence[str] = (),
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
    """As `fit`; of a long fit each rank reads the rows and returns the nodes that are its own (`extent`)."""

    def begin() -> tuple[Settled, list[NodeChoice], Options, dict[str, Symbol]]:
        for e, source in enumerate(sources):
            with of_experiment(e, len(sources)):
                check_names(model, source.names)
        what = settle(
            model,
            [source.names for source in sources],
            guess=guess,
            fixed=fixed,
            start=start,
            weights=weights,
            local=local,
            times=times,
            method=method,
        )
        options = chosen_options(
            tolerance=tolerance, max_iterations=max_iterations, level=level, phases=phases, solver=solver
        )
        choices = each_choice(nodes, len(sources))
        return what, choices, options, _derived_expressions(what.model, derived or {})

    what, choices, options, expressions = everywhere(comm, begin)
    if not all(isinstance(choice, str | int | np.integer) for choice in choices):
        sources = all_rows(comm, sources)
    cuts = everywhere(comm, lambda: cuts_of(sources, choices))
    problem = Whole(what, sources, cuts)
    segments = everywhere(
        comm,
        lambda: segments_of(
            what.model,
            problem.lengths,
            method=method,
            level=level,
            solver=solver,
            constrained=bool(constraints),
            levels=bool(unknown_sigma),
        ),
    )
    asked = Asked(
        weights or {}, guess, fixed or {}, truth or {}, expressions, chosen_solver(solver, segments)
    )
    if segments is not None:
        options = replace(options, solver=SOLVERS[asked.solver])
        result = on_few(
            comm, len(segments), lambda few: _fit_long(comm, few, problem, segments, options, asked, watch)
        )
        return with_local_parameters(result, what.local)
    series = all_rows(comm, sources)
    posed = everywhere(
        comm,
        lambda: pose(
            model,
            series,
            guess=guess,
            fixed=fixed,
            nodes=nodes,
            start=start,
            weights=weights,
            local=local,
            constraints=constraints,
            times=times,
            method=method,
        ),
    )
    on_root(comm, lambda: check_start(posed))  # and compiles, for all ranks
    if unknown_sigma:
        names = unknown_sigma.split() if isinstance(unknown_sigma, str) else unknown_sigma
        everywhere(comm, lambda: check_levels(posed, names))
        solve = partial(solve_posed, watch=watch)
        posed, solved, levels = with_levels(comm, posed, names, solve, options)
        result = fit_result(SERIAL, what.model, posed, solved, asked)
        result = replace(result, noise_levels=levels.values, noise_level_errors=levels.errors)
        return with_local_parameters(result, what.local)
    solved = solve_posed(comm, posed, options, watch)
    return with_local_parameters(fit_result(SERIAL, what.model, posed, solved, asked), what.local)


def _fit_long(
    comm: Any,
    few: Any,
    problem: Whole,
    segments: Segments,
    options: Options,
    asked: Asked,
    watch: Watch | None,
) -> FitResult:
    """By parts; where not all ranks take part, those that do have the whole result."""
    posed, solved = solve_long(few, problem, segments, options, watch)
    result = fit_result(few, problem.what.model, posed, solved, asked)
    return result if few is comm else whole(few, result)


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
    course = Course.begin(
        posed.start, watch, experiments=len(posed.experiments), conditions=len(posed.problem.conditions or ())
    )
    freedom = degrees_of_freedom(posed) if freedom is None else freedom
    largest = plausible_objective(freedom, posed.sigma_known)
    clock = time.perf_counter()
    with np.errstate(all="ignore"):  # what is not finite is found and reported member by member
        for _ in solve(comm, posed.problem, course, posed.precision, largest, options, posed.rough):
            pass
    freedom = constrained_freedom(posed, course.spread, freedom)
    return Solved(course, freedom, time.perf_counter() - clock)


def solve_long(
    comm: Any, problem: Whole, segments: Segments, options: Options, watch: Watch | None = None
) -> tuple[Posed, Solved]:
    """The same for a problem whose nodes are spread over ranks: this rank's part."""
    part = pose_part(comm, problem, segments)
    on_root(comm, lambda: check_start(part))  # and compiles, for all ranks
    everywhere(comm, lambda: check_start(part))
    if comm.size > 1:
        part = pose_part(comm, problem, segments, gathered(comm, part.problem.cost(part.start)))
    values = gathered(comm, part.problem.observed()).sum(keepdims=True)
    solved = solve_posed(comm, part, options, watch, values - n_unknowns(part))
    return part, replace(solved, log=solver_log(comm, options))


def n_unknowns(posed: Posed) -> int:
    """The initial states of every experiment, and the parameters."""
    return len(posed.experiments) * posed.start.nodes.shape[2] + posed.start.parameters.shape[1]


def degrees_of_freedom(posed: Posed) -> Numbers:
    """Values less unknowns (M,); an exact condition counts as a value."""
    conditions = posed.problem.conditions
    exact = 0 if conditions is None else int(conditions.exact.sum())
    return posed.problem.observed() - n_unknowns(posed) + exact


def constrained_freedom(posed: Posed, spread: Spread, freedom: Numbers) -> Numbers:
    """The degrees of freedom (M,): every condition that is held, and not implied by others, is a value."""
    conditions = posed.problem.conditions
    if conditions is None:
        return freedom
    exact = int(conditions.exact.sum())
    return freedom - exact + np.where(np.isfinite(spread.pinned), spread.pinned, exact).astype(np.int64)


def check_fit_data(model: Model, experiments: Sequence[Series], **asked: Any) -> None:
    """Raise what is wrong with a fit and can be found before anything is integrated; `asked` as in `pose`."""
    pose(model, experiments, **asked)


def check_start(posed: Posed) -> None:
    """A guess that cannot be integrated from the first nodes is a mistake of the input."""
    where = posed.problem.failures(posed.start)
    if where:
        remedy = "give another guess, closer nodes, or another start of the nodes"
        raise InputError(Mistake("", f"the first path cannot be integrated {where}", remedy, "guess"))


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
