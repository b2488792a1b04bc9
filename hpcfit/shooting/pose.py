"""From experiments and guesses to a problem and the point where its solution begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcfit.linear.chain import Unknowns
from hpcfit.models.conditions import Names
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.models.graph import Graph
from hpcfit.models.names import nearest
from hpcfit.models.promote import with_states
from hpcfit.models.strings import parse
from hpcfit.records import TIMES, Array, Extent, InputError, Mistake, Series
from hpcfit.shooting.conditions import path_conditions, point_times, stated_relations, with_points
from hpcfit.shooting.experiments import LARGEST, check_names, check_timing, checked, of_experiment
from hpcfit.shooting.grid import Grid, NodeChoice, make_grid, node_times
from hpcfit.shooting.problem import Problem
from hpcfit.shooting.readings import Readings
from hpcfit.shooting.summary import Summary


@dataclass(frozen=True)
class Posed:
    """A problem, its start, and what is known of the start."""

    problem: Any  # Problem, or a Slice of it
    start: Unknowns
    precision: Array  # (n,) 1 / sigma of the nodes; 0 for a state that is not taken from data
    rough: float  # relative errors of the path that do not matter beside those of the data
    sigma_known: bool
    experiments: tuple[Series, ...]  # of a part: what this rank has of each
    given: Mapping[int, Array]  # where the nodes of a state (its number) begin (N,), if not at the data
    local: tuple[str, ...] = ()  # states of the problem's model that are parameters of each experiment
    extent: Extent | None = None  # where this part of a problem that is spread over ranks stands

    @property
    def hidden(self) -> bool:
        """True if some states at the nodes are not taken from data."""
        return bool((self.precision == 0.0).any())

    def with_values(self, values: Sequence[Array]) -> Posed:
        """The same fit to other values (M, n_times, n_names) per experiment, one member each."""
        data = _data(self.problem.grid, self.experiments, values, self.problem.readings.names)
        problem = replace(self.problem, data=data)
        times = [problem.grid.times[problem.grid.experiment == e] for e in range(len(self.experiments))]
        nodes = start_nodes(problem.model, times, self.experiments, values, self.given)
        first = np.repeat(self.start.parameters[:1], len(data), axis=0)
        return replace(self, problem=problem, start=Unknowns(nodes, first))


def pose(
    model: Model,
    experiments: Sequence[Series],
    *,
    guess: Mapping[str, float],
    fixed: Mapping[str, float] | None = None,
    nodes: NodeChoice | Sequence[NodeChoice] = "data",
    start: Mapping[str, float | str] | None = None,
    weights: Mapping[str, float] | None = None,
    local: str | Sequence[str] = (),
    constraints: str | Sequence[str] = (),
    times: str = "measured",
    tolerance: float | None = None,
    method: str | None = None,
) -> Posed:
    """The fit of a model to experiments, a single member.

    start: where nodes of a state begin, a number or an expression in t; without it at the data, interpolated
    between them, or at zero for a state that is not observed. local: parameters of which each experiment has
    its own value; they become states that do not change. constraints: conditions (2.4) as
    `models.conditions` reads them; where they look at the path there is a node. times: "exact" takes no
    notice of their sigma_t.
    """
    for e, series in enumerate(experiments):
        with of_experiment(e, len(experiments)):
            check_names(model, checked(series).names)
            if series.sigma_t is not None and times != "exact":
                check_timing(model)
    what = settle(
        model,
        [series.names for series in experiments],
        guess=guess,
        fixed=fixed,
        start=start,
        weights=weights,
        local=local,
        times=times,
        tolerance=tolerance,
        method=method,
    )
    chosen = []
    for e, choice in enumerate(each_choice(nodes, len(experiments))):
        with of_experiment(e, len(experiments)):
            chosen.append(node_times(experiments[e].times, choice))
    lines = [constraints] if isinstance(constraints, str) else constraints
    stated = stated_relations(lines, _names(model, what.local, len(experiments)))
    points = point_times(stated, chosen, [series.times for series in experiments], model.kind)
    chosen = with_points(chosen, points)
    if model.kind == "map":
        check_whole([series.times for series in experiments], chosen)
    grid = make_grid([series.times for series in experiments], chosen)
    values = [series.values[None] for series in experiments]
    conditions = path_conditions(stated, what.model, grid, points, what.free, what.fixed)
    problem = replace(what.problem(grid, experiments), conditions=conditions)
    exact = 0 if conditions is None else int(conditions.exact.sum())
    check_count(int(problem.observed().min()) + exact, what, len(experiments))
    given = what.given(grid.times)
    summary = Summary.of(experiments, what.names)
    return Posed(
        problem=problem,
        start=Unknowns(start_nodes(what.model, chosen, experiments, values, given), what.parameters),
        precision=summary.precision(what, [series.names for series in experiments]),
        rough=summary.rough(),
        sigma_known=bool(summary.has_sigma.all()),
        experiments=tuple(experiments),
        given=given,
        local=what.local,
    )


@dataclass(frozen=True)
class Settled:
    """What is fitted to which quantities, apart from the data."""

    model: Model
    names: tuple[str, ...]  # observed
    free: tuple[int, ...]  # which parameters are unknown
    fixed: Array  # (n_p,) values of the others
    parameters: Array  # (1, q) where the free ones begin
    start: Mapping[str, float | str]
    weights: Mapping[str, float]
    local: tuple[str, ...]
    times: str  # measured | exact
    tolerance: float | None
    method: str | None

    def problem(self, grid: Grid, experiments: Sequence[Series]) -> Problem:
        return Problem(
            model=self.model,
            grid=grid,
            readings=Readings(self.model, self.names),
            data=_data(grid, experiments, [series.values[None] for series in experiments], self.names),
            weights=_weights(grid, experiments, self.names, self.weights),
            free=self.free,
            fixed=self.fixed,
            tolerance=self.tolerance,
            method=self.method,
            sigma_t=None if self.times == "exact" else _sigma_t(grid, experiments),
        )

    def given(self, times: Array) -> dict[int, Array]:
        """Where the nodes of some states begin (N,), by the number of the state."""
        return {self.model.states.index(name): _along(name, it, times) for name, it in self.start.items()}


def settle(
    model: Model,
    names: Sequence[tuple[str, ...]],
    *,
    guess: Mapping[str, float],
    fixed: Mapping[str, float] | None = None,
    start: Mapping[str, float | str] | None = None,
    weights: Mapping[str, float] | None = None,
    local: str | Sequence[str] = (),
    times: str = "measured",
    tolerance: float | None = None,
    method: str | None = None,
) -> Settled:
    """What a fit to experiments with these quantities is, as in `pose`."""
    _parameters(model, guess, fixed or {})
    if times not in TIMES:
        raise InputError(Mistake("", "is unknown", nearest(times, TIMES), "fit.times", times))
    local = local.split() if isinstance(local, str) else local
    model, guess, start = _localised(model, local, guess, fixed or {}, start or {})
    free, held = _parameters(model, guess, fixed or {})
    observed = tuple(dict.fromkeys(name for own in names for name in own))
    _check_weights(observed, weights or {})
    for name, along in start.items():
        if name not in model.states:
            problem = f"{model.name} has no state '{name}'"
            raise InputError(Mistake("", problem, nearest(name, model.states), f"nodes.{name}", along))
    return Settled(
        model=model,
        names=observed,
        free=free,
        fixed=held,
        parameters=np.array([[float(guess[model.parameters[k]]) for k in free]]),
        start=start,
        weights=weights or {},
        local=tuple(name for name in model.states if name in local),
        times=times,
        tolerance=tolerance,
        method=method,
    )


def _localised(
    model: Model,
    local: Sequence[str],
    guess: Mapping[str, float],
    fixed: Mapping[str, float],
    start: Mapping[str, float | str],
) -> tuple[Model, Mapping[str, float], Mapping[str, float | str]]:
    """The model with the local parameters as states, whose nodes begin at the guess."""
    for name in local:
        if name not in model.parameters:
            problem = f"{model.name} has no parameter '{name}'"
            raise InputError(Mistake("", problem, nearest(name, model.parameters), "fit.local", list(local)))
        if name in fixed:
            problem = f"the parameter {name} is fixed"
            raise InputError(Mistake("", problem, "remove it here or in fit.fixed", "fit.local", list(local)))
        if name in start:
            remedy = f"give guess.{name} instead"
            raise InputError(Mistake("", "is a local parameter", remedy, f"nodes.{name}", start[name]))
    if not local:
        return model, guess, start
    shared = {name: value for name, value in guess.items() if name not in local}
    return with_states(model, local), shared, {**start, **{name: guess[name] for name in local}}


def _names(model: Model, local: Sequence[str], experiments: int) -> Names:
    """What conditions may name."""
    shared = tuple(name for name in model.parameters if name not in local)
    return Names(model.states, tuple(model.observables), shared, tuple(local), experiments)


def each_choice(nodes: Any, count: int) -> list[NodeChoice]:
    """One choice for each experiment; a list of numbers alone is a list of times for all of them."""
    several = isinstance(nodes, list | tuple) and not all(
        isinstance(k, int | float | np.number) for k in nodes
    )
    if several and len(nodes) != count:
        problem = f"{len(nodes)} choices for {count} experiments"
        raise InputError(Mistake("", problem, "give one to each", "fit.nodes"))
    return list(nodes) if several else [nodes] * count


def _parameters(
    model: Model, guess: Mapping[str, float], fixed: Mapping[str, float]
) -> tuple[tuple[int, ...], Array]:
    """Which parameters are free, and the values of the others (n_p,)."""
    for what, given in (("guess", guess), ("fit.fixed", fixed)):
        for name, value in given.items():
            if name not in model.parameters:
                problem = f"{model.name} has no parameter '{name}'"
                remedy = nearest(name, model.parameters)
                raise InputError(Mistake("", problem, remedy, f"{what}.{name}", value))
            if not abs(value) <= LARGEST:
                problem = "is not finite" if not np.isfinite(value) else "is too large"
                remedy = f"give a number below {LARGEST:g}"
                raise InputError(Mistake("", problem, remedy, f"{what}.{name}", value))
    for name in model.parameters:
        if (name in guess) == (name in fixed):
            both = "both a guess and a fixed value" if name in guess else "neither a guess nor a fixed value"
            raise InputError(Mistake("", f"the parameter {name} has {both}", "give one of them", "guess"))
    free = tuple(k for k, name in enumerate(model.parameters) if name in guess)
    return free, np.array([float(fixed.get(name, 0.0)) for name in model.parameters])


def check_whole(times: Sequence[Array], nodes: Sequence[Array]) -> None:
    """Of a map: times are numbers of iterations."""
    for key, grids in (("data.time", times), ("fit.nodes", nodes)):
        for grid in grids:
            if (broken := grid != np.round(grid)).any():
                problem = f"a map has whole numbers as times, not {grid[int(np.argmax(broken))]:.15g}"
                raise InputError(Mistake("", problem, "number the iterations 0, 1, 2, ...", key))


def _check_weights(names: Sequence[str], weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        if name not in names:
            problem = f"'{name}' is not observed"
            raise InputError(Mistake("", problem, nearest(name, names), f"fit.weights.{name}", weight))
        if not 0.0 <= weight <= LARGEST:
            problem = "must not be negative" if weight < 0.0 else "is not finite, or too large"
            raise InputError(Mistake("", problem, "give 0 or 1", f"fit.weights.{name}", weight))


def check_count(fewest: int, what: Settled, n_experiments: int) -> None:
    """So many values with weight, and exact conditions, must determine the unknowns."""
    unknowns = len(what.model.states) * n_experiments + len(what.free)
    if fewest < unknowns:
        lacking = f"{fewest} values with weight for {unknowns} unknowns (initial states and parameters)"
        raise InputError(Mistake("", lacking, "give more data, or fix parameters in fit.fixed", "data"))


def _places(grid: Grid, e: int, series: Series, names: Sequence[str]) -> tuple[Any, ...]:
    """Node, output and column of every value of an experiment."""
    columns = [names.index(name) for name in series.names]
    return grid.node_of[e][:, None], grid.output_of[e][:, None], columns


def _shape(grid: Grid, names: Sequence[str]) -> tuple[int, int, int]:
    return len(grid.times), grid.outputs.shape[1] - 1, len(names)


def _data(grid: Grid, experiments: Sequence[Series], values: Sequence[Array], names: Sequence[str]) -> Array:
    """Values (M, N, outputs, o) by node and output: NaN = missing, 0 = nobody looks there."""
    data = np.zeros((len(values[0]), *_shape(grid, names)))
    for e, series in enumerate(experiments):
        data[(slice(None), *_places(grid, e, series, names))] = values[e]
    return data


def _weights(
    grid: Grid, experiments: Sequence[Series], names: Sequence[str], weights: Mapping[str, float]
) -> Array:
    """1 / sigma times weight (1, N, outputs, o), by node and output."""
    table = np.zeros((1, *_shape(grid, names)))
    for e, series in enumerate(experiments):
        sigma = np.ones_like(series.values) if series.sigma is None else series.sigma
        factor = [weights.get(name, 1.0) for name in series.names]
        table[(0, *_places(grid, e, series, names))] = np.where(np.isfinite(sigma), factor / sigma, 0.0)
    return table


def _sigma_t(grid: Grid, experiments: Sequence[Series]) -> Array | None:
    """Standard deviations of the times (N, outputs), by node and output; None if all are exact."""
    table = np.zeros(_shape(grid, ())[:2])
    for e, series in enumerate(experiments):
        if series.sigma_t is not None:
            table[grid.node_of[e], grid.output_of[e]] = series.sigma_t
    return table if table.any() else None


def start_nodes(
    model: Model,
    times: Sequence[Array],
    experiments: Sequence[Series],
    values: Sequence[Array],
    given: Mapping[int, Array],
) -> Array:
    """Nodes (M, N, n) at these times of each experiment: as given, at the data, else at zero."""
    bounds = np.cumsum([0, *(len(own) for own in times)])
    nodes = np.zeros((len(values[0]), bounds[-1], len(model.states)))
    for i, along in given.items():
        nodes[:, :, i] = along
    for e, series in enumerate(experiments):
        for i, name in enumerate(model.states):
            if i not in given and name in series.names:
                column = values[e][:, :, series.names.index(name)]
                nodes[:, bounds[e] : bounds[e + 1], i] = _interpolated(series.times, column, times[e])
    return nodes


def _interpolated(times: Array, values: Array, at: Array) -> Array:
    """Values (M, n_times) at other times, linear between those that are there; zero without any."""
    if np.array_equal(times, at) and np.isfinite(values).all():
        return values
    rows = []
    for row in values:
        there = np.isfinite(row)
        rows.append(np.interp(at, times[there], row[there]) if there.any() else np.zeros(len(at)))
    return np.stack(rows)


def _along(name: str, given: float | str, times: Array) -> Array:
    """A number, or an expression in t, at the given times."""
    graph = Graph()
    time = graph.leaf("time")
    symbols = {"t": time, "pi": graph.symbol(np.pi)}
    symbol = parse(given, symbols, graph) if isinstance(given, str) else graph.symbol(float(given))
    (value,) = Program(graph, [symbol])(times, (), ())
    along = np.broadcast_to(value, times.shape)
    usable = np.abs(along) <= LARGEST
    if not usable.all():
        k = int(np.argmin(usable))
        problem = f"is {'too large' if np.isfinite(along[k]) else 'not finite'} at t = {times[k]:g}"
        raise InputError(Mistake("", problem, "change the expression", f"nodes.{name}", given))
    return along
