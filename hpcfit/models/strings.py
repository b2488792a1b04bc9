"""Equations written as strings: a whitelist over Python's expression syntax; nothing is ever executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hpcfit.models import math
from hpcfit.models.define import KINDS, Example, Model, Trace
from hpcfit.models.functions import FUNCTIONS
from hpcfit.models.graph import Graph, Symbol
from hpcfit.models.jumps import ROOTS, Checking, Jump
from hpcfit.models.names import checked_names, nearest, split_names
from hpcfit.records import InputError

LONGEST = 10_000  # characters of one expression
DEEPEST = 100  # levels of nesting
LARGEST_NUMBER = 1e300

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTION_NAMES = [name for name, function in FUNCTIONS.items() if function.by_name]


def parse(source: str, names: Mapping[str, Symbol], graph: Graph) -> Symbol:
    """The expression that a string means, in the symbols of a graph."""
    if not isinstance(source, str):
        raise InputError(f"an expression must be a string, not {type(source).__name__}")
    if len(source) > LONGEST:
        raise InputError(f"the expression has {len(source)} characters; at most {LONGEST} are allowed")
    if "^" in source:
        raise InputError(f"'^' in '{_shorten(source)}' is not a power; write **")
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        position = f" at character {error.offset}" if error.offset else ""
        problem = f"'{_shorten(source)}' is not an expression{position}: {error.msg}"
        raise InputError(f"{problem}; check its operators and brackets") from None
    except (MemoryError, RecursionError):
        raise InputError(f"'{_shorten(source)}' is too long or nested too deep; split it") from None
    except ValueError as error:
        raise InputError(f"'{_shorten(source)}' is not an expression: {error}") from None
    return _build(tree, names, graph, 0)


def _shorten(source: str) -> str:
    printable = source.encode("utf-8", "backslashreplace").decode("utf-8")
    return printable if len(printable) <= 60 else printable[:57] + "..."


def _written(node: ast.expr) -> str:
    try:
        return _shorten(ast.unparse(node))
    except (RecursionError, ValueError):  # nested deep, or a number with thousands of digits
        return "..."


def _build(node: ast.expr, names: Mapping[str, Symbol], graph: Graph, depth: int) -> Symbol:
    if depth > DEEPEST:
        raise InputError(f"the expression is nested more than {DEEPEST} levels deep; split it")

    def build(part: ast.expr) -> Symbol:
        return _build(part, names, graph, depth + 1)

    match node:
        case ast.Constant(value=bool()):
            raise InputError(f"{node.value!r} is not a number")
        case ast.Constant(value=int() | float() as value):
            if not abs(value) <= LARGEST_NUMBER:
                raise InputError(f"the number {_written(node)} is larger than {LARGEST_NUMBER:g}")
            return graph.symbol(float(value))
        case ast.Name(id=name):
            if name in names:
                return names[name]
            if name in _FUNCTION_NAMES:
                raise InputError(f"'{name}' is a function; call it as {name}(...)")
            raise InputError(f"unknown name '{name}'; {nearest(name, names)}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -build(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return build(operand)
        case ast.BinOp(op=sign) if type(sign) in _BINARY:
            return _chain(node, build, graph)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, arguments, build, graph)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if (
            type(comparison) in _COMPARISONS
        ):
            return _COMPARISONS[type(comparison)](build(left), build(right))
    raise InputError(
        f"'{_written(node)}' is not allowed in an expression; "
        "use numbers, names, + - * / **, comparisons inside where(), and functions"
    )


def _chain(node: ast.expr, build: Callable[[ast.expr], Symbol], graph: Graph) -> Symbol:
    """Operations from left to right: a sum of many terms is long, but not deep."""
    waiting: list[tuple[str, ast.expr]] = []
    while isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        waiting.append((_BINARY[type(node.op)], node.right))
        node = node.left
    value = build(node)
    for operation, right in reversed(waiting):
        value = graph.apply(operation, value, build(right))
    return value


def _call(
    name: str, arguments: Sequence[ast.expr], build: Callable[[ast.expr], Symbol], graph: Graph
) -> Symbol:
    if name not in _FUNCTION_NAMES:
        raise InputError(f"unknown function '{name}'; {nearest(name, _FUNCTION_NAMES)}")
    arity = FUNCTIONS[name].arity
    if len(arguments) != arity:
        count = f"{arity} argument{'s' * (arity != 1)}, {len(arguments)} given"
        raise InputError(f"{name}() takes {count}; write {name}({', '.join('xyz'[:arity])})")
    return graph.apply(name, *(build(argument) for argument in arguments))


def number(value: float | str) -> float:
    """A number, or a constant expression such as "sqrt(0.1275)" or "8/3"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{value!r} is not a number")
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            raise InputError(f"a number is larger than {LARGEST_NUMBER:g}") from None
    graph = Graph()
    constant = parse(value, {"pi": graph.symbol(math.pi)}, graph).constant
    if constant is None:
        raise InputError(f"'{_shorten(value)}' has no finite value")
    return constant


def model_from_strings(
    name: str,
    *,
    states: Sequence[str],
    parameters: Sequence[str],
    equations: Mapping[str, str],
    kind: str = "flow",
    observables: Mapping[str, str] | None = None,
    invariant: str | None = None,
    switches: Mapping[str, str] | None = None,
    jumps: Mapping[str, Mapping[str, Any]] | None = None,
    units: Mapping[str, str] | None = None,
    examples: Sequence[Example] = (),
) -> Model:
    """A model whose right-hand sides are strings: {"x": "sigma*(y - x)", ...}.

    The name of a switch stands for its sign; jumps are tables such as {"falls": "y", "to": {"v": "-v"}}.
    """
    named = (*(observables or {}), *(switches or {}))
    state_names, parameter_names = checked_names(name, states, parameters, named, units or {})
    split_names(tuple(jumps or {}), name, "jump")
    if kind == "map" and (jumps or switches):
        raise InputError(f"{name}: a map has no switches and jumps; write where(...) in its equations")
    if kind not in KINDS:
        raise InputError(f"{name}: kind '{kind}' is unknown; {nearest(kind, KINDS)}")
    for key in equations:
        if key not in state_names:
            raise InputError(f"{name}: equation for '{key}', which is no state; {nearest(key, state_names)}")
    for key in state_names:
        if key not in equations:
            raise InputError(f"{name}: no equation for the state '{key}'; give one for each state")
    trace = Trace(name, state_names, parameter_names)
    symbols = {"t": trace.time, "pi": trace.graph.symbol(math.pi)}
    symbols |= dict(zip(state_names, trace.u, strict=True)) | dict(zip(parameter_names, trace.p, strict=True))

    def expression(what: str, source: str) -> Symbol:
        try:
            return parse(source, symbols, trace.graph)
        except InputError as error:
            raise InputError(f"{name}: {what}: {error}") from None

    checking = trace.checking(())
    signs = {
        key: checking.switch(key, expression(f"switch {key}", body)) for key, body in (switches or {}).items()
    }
    symbols |= {key: trace.graph.apply("sign", symbol) for key, symbol in signs.items()}
    slopes = tuple(expression(f"equation of {key}", equations[key]) for key in state_names)
    return Model(
        name=name,
        states=state_names,
        parameters=parameter_names,
        kind=kind,
        graph=trace.graph,
        equations=slopes,
        function=None,
        switches=signs,
        jumps=_jumps(trace.checking(slopes), jumps or {}, expression),
        observables={key: expression(f"observable {key}", body) for key, body in (observables or {}).items()},
        invariant=expression("invariant", invariant) if invariant else None,
        examples=tuple(examples),
        units=dict(units or {}),
    )


def _jumps(
    checking: Checking, tables: Mapping[str, Mapping[str, Any]], expression: Callable[[str, str], Symbol]
) -> tuple[Jump, ...]:
    """Jumps from tables whose entries are expressions; numbers are welcome, too."""

    def each(what: str, given: Any) -> Symbol:
        return expression(what, given if isinstance(given, str) else repr(float(given)))

    found = []
    for name, table in tables.items():
        places: dict[str, Any] = {
            word: each(f"jump {name}: {word}", table[word])
            for word in (*ROOTS, "at", "every")
            if table.get(word) is not None
        }
        to = {state: each(f"jump {name}: {state}", body) for state, body in table.get("to", {}).items()}
        found.append(checking.jump(name, Jump(to, **places, count=table.get("count"))))
    return tuple(found)


def expression_of(model: Model, source: str) -> Symbol:
    """An expression in the names of a traced model."""
    if model.graph is None:
        raise InputError(f"{model.name}: an opaque model has no expressions")
    names = {"t": model.graph.leaf("time"), "pi": model.graph.symbol(math.pi)}
    names |= {name: model.graph.leaf("state", i) for i, name in enumerate(model.states)}
    names |= {name: model.graph.leaf("parameter", i) for i, name in enumerate(model.parameters)}
    return parse(source, names, model.graph)
