"""Conditions on a fit as a person writes them: "x@end = x@start", "a + b <= 1", "k >= 0", "x@2:0.5 >= 0".

A state or observable is looked at somewhere, x@start, x@end or x@12.5, and in one of several experiments,
x@2:end; without a number of an experiment, a condition holds in each of them. A parameter stands for itself;
one of which each experiment has its own is k@1, k@2, or k for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hpcfit.models import math
from hpcfit.models.define import Model
from hpcfit.models.graph import Graph, Symbol
from hpcfit.models.names import nearest
from hpcfit.models.strings import parse
from hpcfit.records import InputError

SIGNS = ("<=", ">=", "==", "=", "<", ">")
EXAMPLES = '"x@end = x@start", "a + b <= 1" or "k >= 0"'
_REFERENCE = re.compile(r"([A-Za-z_]\w*)\s*@\s*(?:([^\s:@()+*/,<>=]+):)?([-+]?[\w.]+(?:(?<=[eE])[-+]?\d+)?)?")
_NAME = re.compile(r"(?<![\w.@])[A-Za-z_]\w*")


class Reference(NamedTuple):
    """A quantity at one place of a path, or a parameter of one experiment."""

    name: str
    experiment: int | None  # from 0; None: of each
    when: str | float  # "start", "end" or a time; "" for a parameter

    def __str__(self) -> str:
        if not self.when and self.experiment is None:
            return self.name
        own = "" if self.experiment is None else str(self.experiment + 1)
        at = f"{self.when:.15g}" if isinstance(self.when, float) else self.when
        return f"{self.name}@{own}{':' if own and at else ''}{at}"


@dataclass(frozen=True)
class Names:
    """What may stand in a condition."""

    states: tuple[str, ...]  # without local parameters
    observables: tuple[str, ...]
    parameters: tuple[str, ...]  # those that all experiments share
    local: tuple[str, ...]
    experiments: int | None  # None: not known yet


@dataclass(frozen=True)
class Relation:
    """left = right, left <= right or left >= right; names of their own stand for references in both."""

    left: str
    sign: str
    right: str
    references: Mapping[str, Reference]

    def __str__(self) -> str:
        left, right = (_filled(side, self.references) for side in (self.left, self.right))
        return f"{left} {self.sign} {right}"

    @property
    def exact(self) -> bool:
        return self.sign == "="

    def of(self, experiment: int) -> Relation:
        """The same of one experiment, where it is of each."""
        own = {
            name: each if each.experiment is not None else each._replace(experiment=experiment)
            for name, each in self.references.items()
        }
        return replace(self, references=own)


def relations(source: str, names: Names) -> list[Relation]:
    """The conditions of one line, one for each sign and each experiment that it holds in."""
    references: list[Reference] = []

    def noted(found: re.Match[str]) -> str:
        references.append(_reference(found, names))
        return _placeholder(len(references) - 1)

    if not isinstance(source, str):
        raise InputError(f"a constraint must be a text, not {type(source).__name__}; write {EXAMPLES}")
    text = _REFERENCE.sub(noted, source)
    for name in dict.fromkeys(_NAME.findall(text)):
        if name in names.local:
            text = re.sub(rf"(?<![\w.@]){name}\b", _placeholder(len(references)), text)
            references.append(Reference(name, None, ""))
        elif name in (*names.states, *names.observables):
            raise InputError(f"{name} changes in time; say when: {name}@start, {name}@end or {name}@12.5")
    sides, signs = _sides(source, text)
    found = []
    for left, sign, right in zip(map(str.strip, sides), signs, map(str.strip, sides[1:]), strict=False):
        _check_side(source, left, right, references, names)
        words = set(re.findall(r"\w+", f"{left} {right}"))
        named = {_placeholder(k): each for k, each in enumerate(references) if _placeholder(k) in words}
        found.append(Relation(left, sign, right, named))
    return [each for relation in found for each in _of_experiments(relation, names)]


def _placeholder(k: int) -> str:
    return f"_ref{k}_"


def _filled(side: str, references: Mapping[str, Reference]) -> str:
    return re.sub(r"_ref\d+_", lambda found: str(references[found.group()]), side)


def _of_experiments(relation: Relation, names: Names) -> list[Relation]:
    """One for each experiment, if it is of each of several."""
    each = any(reference.experiment is None for reference in relation.references.values())
    if not each or names.experiments is None or (names.experiments == 1 and not _has_local(relation)):
        return [relation]
    return [relation.of(e) for e in range(names.experiments)]


def _has_local(relation: Relation) -> bool:
    return any(not reference.when for reference in relation.references.values())


def _reference(found: re.Match[str], names: Names) -> Reference:
    name, experiment, when = found.group(1), found.group(2), found.group(3) or ""
    written = found.group().strip()
    if name in names.local:
        if experiment is not None or not when.isdigit():
            raise InputError(
                f"{written}: {name} is a local parameter; write {name}@2 for that of experiment 2"
            )
        return Reference(name, _experiment(written, when, names), "")
    if name in names.parameters:
        raise InputError(f"{written}: {name} is a parameter, which does not change in time; write {name}")
    known = (*names.states, *names.observables)
    if name not in known:
        raise InputError(f"{written}: there is no state or observable '{name}'; {nearest(name, known)}")
    number = None if experiment is None else _experiment(written, experiment, names)
    if when not in ("start", "end"):
        try:
            time = float(when)
        except ValueError:
            time = float("nan")
        if not abs(time) < float("inf"):
            raise InputError(f"{written}: '{when}' is no time; write start, end or a number")
        if number is None and names.experiments is not None and names.experiments > 1:
            raise InputError(
                f"{written}: of which of {names.experiments} experiments; write {name}@1:{when}, "
                f"or {name}@start or {name}@end for each of them"
            )
        return Reference(name, number, time)
    return Reference(name, number, when)


def _experiment(written: str, given: str, names: Names) -> int:
    number = int(given) if given.isdigit() else 0
    if number < 1 or (names.experiments is not None and number > names.experiments):
        known = "" if names.experiments is None else f"; give 1 to {names.experiments}"
        raise InputError(f"{written}: there is no experiment {given}{known or '; count from 1'}")
    return number - 1


def _sides(source: str, text: str) -> tuple[list[str], list[str]]:
    """What stands between the signs that are in no brackets."""
    sides, signs, depth, begin, k = [], [], 0, 0, 0
    while k < len(text):
        depth += (text[k] == "(") - (text[k] == ")")
        sign = next((each for each in SIGNS if text.startswith(each, k)), None) if not depth else None
        if sign is None:
            k += 1
            continue
        if sign in "<>":
            raise InputError(f"'{sign}' leaves no nearest point; write {sign}=")
        sides.append(text[begin:k])
        signs.append("=" if sign == "==" else sign)
        begin = k = k + len(sign)
    sides.append(text[begin:])
    if not signs or not all(side.strip() for side in sides):
        raise InputError(f"is no equality or inequality; write one with =, <= or >=, as in {EXAMPLES}")
    return sides, signs


def _check_side(source: str, left: str, right: str, references: Sequence[Reference], names: Names) -> None:
    """Both sides can be read, and there is something in them that the fit can change."""
    graph = Graph()
    nameable = (*names.parameters, *names.local, *names.states, *names.observables)  # for messages, the last
    known = {name: graph.leaf("parameter", i) for i, name in enumerate(nameable)}
    known |= {_placeholder(k): graph.leaf("state", k) for k in range(len(references))}
    known["pi"] = graph.symbol(math.pi)
    difference = _parsed(left, known, graph, references) - _parsed(right, known, graph, references)
    if difference.constant is not None:
        raise InputError("contains nothing that the fit can change; name states or parameters, or remove it")


def _parsed(side: str, known: Mapping[str, Symbol], graph: Graph, references: Sequence[Reference]) -> Symbol:
    try:
        return parse(side, known, graph)
    except InputError as error:
        named = {_placeholder(k): each for k, each in enumerate(references)}
        raise InputError(_filled(str(error), named)) from None


class Point(NamedTuple):
    """Where a condition looks."""

    experiment: int
    when: str | float


@dataclass(frozen=True)
class Written:
    """Conditions as expressions in a graph of their own: value = left - right, turned so that >= 0 is met.

    The leaves of the state i at the point k are numbered k n + i.
    """

    graph: Graph
    values: tuple[Symbol, ...]
    points: tuple[Point, ...]
    relations: tuple[Relation, ...]


def written(relations: Sequence[Relation], model: Model, times: Mapping[Point, float]) -> Written:
    """The expressions of relations; `times` of the points that they look at.

    Local parameters are states of the model.
    """
    graph, n = Graph(), len(model.states)
    points = tuple(times)
    parameters = {name: graph.leaf("parameter", i) for i, name in enumerate(model.parameters)}
    common = {**parameters, "pi": graph.symbol(math.pi)}

    def at(reference: Reference) -> Symbol:
        point = point_of(reference)
        first = points.index(point) * n
        if reference.name in model.states:
            return graph.leaf("state", first + model.states.index(reference.name))
        return _translated(model, reference.name, graph, first, times[point])

    def value(relation: Relation) -> Symbol:
        names = common | {name: at(each) for name, each in relation.references.items()}
        left, right = (parse(side, names, graph) for side in (relation.left, relation.right))
        return right - left if relation.sign == "<=" else left - right

    return Written(graph, tuple(map(value, relations)), points, tuple(relations))


def point_of(reference: Reference) -> Point:
    """Where it is looked at; a local parameter is the same everywhere."""
    return Point(reference.experiment or 0, reference.when or "start")


def _translated(model: Model, name: str, graph: Graph, first: int, time: float) -> Symbol:
    """An observable in another graph, of the states numbered from `first` on, at a time."""
    symbol = model.quantity(name)
    known: dict[int, Symbol] = {}
    for index in symbol.graph.reachable([symbol]):
        node = symbol.graph.nodes[index]
        if node.arguments:
            known[index] = graph.apply(node.operation, *(known[k] for k in node.arguments))
        elif node.operation == "time":
            known[index] = graph.symbol(time)
        else:
            shift = first if node.operation == "state" else 0
            known[index] = graph.leaf(node.operation, node.value + shift)
    return known[symbol.index]
