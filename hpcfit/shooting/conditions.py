"""Conditions on the path and the parameters (2.4): their values at the nodes, with exact derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpcfit.linear.active_set import Rows, solve
from hpcfit.linear.chain import Conditions, Unknowns
from hpcfit.models.conditions import (
    Names,
    Point,
    Relation,
    Written,
    point_of,
    relations,
    written,
)
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.evaluate import Program
from hpcfit.records import Array, InputError, Mistake
from hpcfit.shooting.grid import Grid

KEY = "fit.constraints"
SAME_TIME = 1e-9  # of the duration: a time as near to one of the data, or to a node, means that one


class PathConditions:
    """Values r2 (M, c) and derivatives: = 0 for exact conditions, >= 0 for the others."""

    def __init__(self, stated: Written, nodes: Sequence[int], n: int, free: tuple[int, ...]) -> None:
        """nodes: where the points of the conditions are."""
        self.texts = tuple(str(relation) for relation in stated.relations)
        self.exact = np.array([relation.exact for relation in stated.relations])
        self.free, self.n = free, n
        self._nodes = np.array(nodes, dtype=np.int64)
        self.looks_at = _leaves_of(stated)
        graph, values = stated.graph, stated.values
        used = sorted({leaf for own in self.looks_at for leaf in own})
        self._by = [leaf for leaf in used if leaf[0] == "state" or leaf[1] in free]
        columns = [derivative(values, graph.leaf(*leaf)) for leaf in self._by]
        self.linear = np.array(
            [all(column[k].constant is not None for column in columns) for k in range(len(values))]
        )
        self._values = Program(graph, values)
        self._slopes = Program(graph, [slope for column in columns for slope in column])

    def __len__(self) -> int:
        return len(self.texts)

    def bounded(self, first: Sequence[int]) -> list[tuple[str, int] | None]:
        """The unknown that each condition alone is about, as a free parameter or e n + state; None: not one.

        first: the nodes at which experiments begin.
        """
        found: list[tuple[str, int] | None] = []
        for own in self.looks_at:
            unknowns = [leaf for leaf in own if leaf in self._by]
            found.append(self._unknown(*unknowns[0], list(first)) if len(unknowns) == 1 else None)
        return found

    def _unknown(self, kind: str, number: int, first: list[int]) -> tuple[str, int] | None:
        if kind == "parameter":
            return kind, self.free.index(number)
        point, state = divmod(number, self.n)
        node = int(self._nodes[point])
        return (kind, first.index(node) * self.n + state) if node in first else None

    def values(self, z: Unknowns, parameters: Array) -> Array:
        """r2 for parameters (M, n_p), of which some are fixed."""
        return _stacked(self._values(0.0, *self._leaves(z, parameters)), len(parameters))

    def linearised(self, z: Unknowns, parameters: Array) -> Conditions:
        members, c = len(parameters), len(self)
        nodes, place = np.unique(self._nodes, return_inverse=True)
        slopes = _stacked(self._slopes(0.0, *self._leaves(z, parameters)), members).reshape(members, -1, c)
        by_node = np.zeros((members, len(nodes), c, self.n))
        by_parameters = np.zeros((members, c, len(self.free)))
        for k, (kind, number) in enumerate(self._by):
            if kind == "parameter":
                by_parameters[:, :, self.free.index(number)] = slopes[:, k]
            else:
                point, state = divmod(number, self.n)
                by_node[:, place[point], :, state] += slopes[:, k]
        return Conditions(
            values=self.values(z, parameters),
            by_node=by_node,
            by_parameters=by_parameters,
            likely=np.zeros((members, c), dtype=bool),
            exact=self.exact,
            nodes=nodes,
            of_states=np.array([any(kind == "state" for kind, _ in own) for own in self.looks_at]),
        )

    def _leaves(self, z: Unknowns, parameters: Array) -> tuple[list[Array], list[Array]]:
        at_points = z.nodes[:, self._nodes].reshape(len(z.nodes), -1)
        return list(at_points.T), list(parameters.T)


def _leaves_of(stated: Written) -> list[list[tuple[str, int]]]:
    """The states and parameters that each condition looks at."""
    found = []
    for value in stated.values:
        nodes = (stated.graph.nodes[index] for index in stated.graph.reachable([value]))
        found.append(
            [(node.operation, int(node.value)) for node in nodes if node.operation in ("state", "parameter")]
        )
    return found


def _stacked(columns: Sequence[Any], members: int) -> Array:
    return np.stack([np.broadcast_to(column, (members,)) for column in columns], axis=-1)


def stated_relations(sources: Sequence[str], names: Names) -> list[tuple[str, Relation]]:
    """All relations of some lines, each with its line; mistakes say which line they are in."""
    found: list[tuple[str, Relation]] = []
    mistakes = []
    for source in sources:
        try:
            found += [(source, relation) for relation in relations(source, names)]
        except InputError as error:
            problem, _, remedy = str(error).partition("; ")
            mistakes.append(Mistake("", problem, remedy or "correct it", KEY, source))
    if mistakes:
        raise InputError(mistakes)
    return found


def point_times(
    found: Sequence[tuple[str, Relation]], nodes: Sequence[Array], data: Sequence[Array], kind: str
) -> dict[Point, float]:
    """When the points of relations are, by experiment: at a node or a time of the data that is as near."""
    times: dict[Point, float] = {}
    for source, relation in found:
        for point in map(point_of, relation.references.values()):
            own = nodes[point.experiment]
            if isinstance(point.when, float):
                times[point] = _near(point.when, np.concatenate([own, data[point.experiment]]))
                if not own[0] <= times[point] <= own[-1]:
                    span = f"the path goes from {own[0]:.15g} to {own[-1]:.15g}"
                    remedy = "choose a time inside, or begin and end the nodes farther out with fit.nodes"
                    raise InputError(Mistake("", f"t = {point.when:.15g}: {span}", remedy, KEY, source))
                if kind == "map" and times[point] % 1.0:
                    problem = f"t = {point.when:.15g}: a map has whole numbers as times"
                    raise InputError(Mistake("", problem, "choose one of them", KEY, source))
            else:
                times[point] = float(own[0] if point.when == "start" else own[-1])
    return times


def _near(time: float, known: Array) -> float:
    best = float(known[np.argmin(np.abs(known - time))])
    return best if abs(best - time) <= SAME_TIME * float(np.ptp(known)) else time


def with_points(nodes: Sequence[Array], times: Mapping[Point, float]) -> list[Array]:
    """The nodes of every experiment, and those where conditions look."""
    return [
        np.union1d(own, [t for point, t in times.items() if point.experiment == e])
        if any(point.experiment == e for point in times)
        else own
        for e, own in enumerate(nodes)
    ]


def path_conditions(
    found: Sequence[tuple[str, Relation]],
    model: Model,
    grid: Grid,
    times: Mapping[Point, float],
    free: tuple[int, ...],
    fixed: Array,
) -> PathConditions | None:
    """The conditions at the nodes of a grid; None without any. Plain contradictions are a mistake."""
    if not found:
        return None
    stated = written([relation for _, relation in found], model, times)
    first = np.searchsorted(grid.experiment, np.arange(grid.experiment[-1] + 1))
    nodes = []
    for point, time in times.items():
        own = grid.times[grid.experiment == point.experiment]
        nodes.append(int(first[point.experiment] + np.searchsorted(own, time)))
    conditions = PathConditions(stated, nodes, len(model.states), free)
    for (source, _), own in zip(found, conditions.looks_at, strict=True):
        if all(kind == "parameter" and number not in free for kind, number in own):
            remedy = "remove it, or let a parameter free in fit.fixed"
            raise InputError(Mistake("", "all that it names is fixed", remedy, KEY, source))
    _check_consistent(conditions, len(grid.times), fixed)
    return conditions


def _check_consistent(conditions: PathConditions, nodes: int, fixed: Array) -> None:
    """Linear conditions that contradict each other do so whatever the path is."""
    z = Unknowns(np.zeros((1, nodes, conditions.n)), np.zeros((1, len(conditions.free))))
    parameters = fixed.copy()
    parameters[list(conditions.free)] = 0.0
    at_zero = conditions.linearised(z, parameters[None])
    linear = np.flatnonzero(conditions.linear & np.isfinite(at_zero.values[0]))
    if not len(linear):
        return
    normals = np.concatenate(
        [np.moveaxis(at_zero.by_node[0], 1, 0).reshape(len(conditions), -1), at_zero.by_parameters[0]], axis=1
    )[linear]
    used = normals.any(axis=0)
    rows = Rows.of(np.ones(int(used.sum())))
    exact = conditions.exact[linear]
    found = solve(
        rows,
        np.zeros(len(rows.values)),
        normals[:, used],
        at_zero.values[0, linear],
        exact,
        np.zeros_like(exact),
    )
    if found.conflict:
        named = '" and "'.join(conditions.texts[linear[k]] for k in found.conflict)
        raise InputError(Mistake("", f'"{named}" contradict each other', "remove or change one of them", KEY))
