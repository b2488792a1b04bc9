"""Expressions as a graph in which equal subexpressions are one node.

A model function is called once with `Symbol`s; every operation on them adds a node to the `Graph`.
Nodes are numbered in the order of creation, so arguments always come before their users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from hpcfit.models.functions import FUNCTIONS, NUMPY_NAMES, evaluate_constants
from hpcfit.records import InputError

LARGEST_EXPANDED_POWER = 64  # x**3 becomes (x*x)*x: exact at x = 0, and cheaper than a general power
LONGEST_SHOWN = 200  # characters of a subexpression in messages; written out in full, shared ones multiply


class Node(NamedTuple):
    """One operation: its name, the numbers of its argument nodes, and the value of a leaf."""

    operation: str
    arguments: tuple[int, ...] = ()
    value: float | int = 0


class Graph:
    """All nodes of one model; `node` hands out an existing node where an equal one is known."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[Any, ...], int] = {}

    def leaf(self, operation: str, value: float | int = 0) -> Symbol:
        """A constant, the time, or the state or parameter with the number `value`."""
        return self._add(Node(operation, (), value))

    def symbol(self, value: Any) -> Symbol:
        """A number as a constant of this graph; a symbol as it is."""
        if isinstance(value, Symbol):
            if value.graph is not self:
                raise InputError(
                    "an expression of one model was used in another; pass the model's own symbols"
                )
            return value
        if isinstance(value, int | float | np.floating | np.integer) and type(value) is not bool:
            return self.leaf("constant", float(value))
        raise InputError(
            f"cannot use {value!r} ({type(value).__name__}) in an equation; use numbers and symbols"
        )

    def apply(self, operation: str, *arguments: Symbol | float) -> Symbol:
        """The symbol for operation(arguments), simplified where that loses nothing."""
        symbols = [self.symbol(argument) for argument in arguments]
        simpler = _simplified(self, operation, symbols)
        if simpler is not None:
            return simpler
        numbers = [symbol.index for symbol in symbols]
        if operation in ("add", "multiply"):
            numbers.sort()
        return self._add(Node(operation, tuple(numbers)))

    def reachable(self, outputs: Iterable[Symbol]) -> list[int]:
        """Numbers of the nodes that the outputs need, arguments first."""
        needed: set[int] = set()
        waiting = [symbol.index for symbol in outputs]
        while waiting:
            index = waiting.pop()
            if index not in needed:
                needed.add(index)
                waiting.extend(self.nodes[index].arguments)
        return sorted(needed)

    def _add(self, node: Node) -> Symbol:
        sign = np.copysign(1.0, node.value)  # -0.0 equals 0.0 but is another constant
        key = (*node, sign)
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
        return Symbol(self, self._known[key])


def _operator(operation: str, *, swapped: bool = False) -> Any:
    def method(self: Symbol, other: Any) -> Any:
        if isinstance(other, NDArrayOperatorsMixin) or (isinstance(other, np.ndarray) and other.ndim):
            return NotImplemented  # the vector's own operator works element by element
        pair = (_scalar(other), self) if swapped else (self, _scalar(other))
        return self.graph.apply(operation, *pair)

    return method


def _method(operation: str) -> Any:
    return lambda self: self.graph.apply(operation, self)


class Symbol:
    """A value that is not known yet: behaves like a number in formulas, and remembers them."""

    __slots__ = ("graph", "index")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

    @property
    def node(self) -> Node:
        return self.graph.nodes[self.index]

    @property
    def constant(self) -> float | None:
        """The number, if this symbol is one."""
        return float(self.node.value) if self.node.operation == "constant" else None

    def __repr__(self) -> str:
        return text(self, longest=LONGEST_SHOWN)

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", swapped=True)
    __lt__, __gt__ = _operator("less"), _operator("less", swapped=True)
    __le__, __ge__ = _operator("less_equal"), _operator("less_equal", swapped=True)
    __neg__, __abs__ = _method("negative"), _method("abs")

    def __pos__(self) -> Symbol:
        return self

    def __bool__(self) -> bool:
        raise InputError(
            f"the branch depends on {self!r}, which is not known when the model is traced; "
            "write where(condition, a, b), or declare the model with opaque=True"
        )

    def __float__(self) -> float:
        raise InputError(
            f"{self!r} has no number when the model is traced; use hpcfit.math or numpy functions, "
            "or declare the model with opaque=True"
        )

    def __eq__(self, other: object) -> Any:
        raise InputError(f"{self!r} == ...: equality of symbols is undecided; use < or > inside where()")

    __ne__ = __eq__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__" or keywords:
            return NotImplemented
        if any(isinstance(value, NDArrayOperatorsMixin) for value in inputs):
            return NotImplemented  # a vector knows how to do it element by element
        if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
            objects = [np.asarray(value, dtype=object) for value in inputs]
            return np.frompyfunc(partial(_apply_numpy, self.graph, ufunc.__name__), ufunc.nin, 1)(*objects)
        return _apply_numpy(self.graph, ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, keywords: Any) -> Any:
        if function is np.where and len(inputs) == 3:
            return self.graph.apply("where", *(_scalar(value) for value in inputs))
        return NotImplemented


for _numpy, _operation in NUMPY_NAMES.items():  # numpy calls x.sin() for the elements of an object array
    if FUNCTIONS[_operation].arity == 1:
        setattr(Symbol, _numpy, _method(_operation))


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray | np.generic) else value


def _apply_numpy(graph: Graph, name: str, *inputs: Any) -> Symbol:
    """What numpy's function `name` does, in symbols."""
    values = [graph.symbol(_scalar(value)) for value in inputs]
    if name in NUMPY_NAMES:
        return graph.apply(NUMPY_NAMES[name], *values)
    match name, values:
        case "square", [x]:
            return x * x
        case "reciprocal", [x]:
            return 1.0 / x
        case "positive", [x]:
            return x
        case "greater", [x, y]:
            return x > y
        case "greater_equal", [x, y]:
            return x >= y
    raise InputError(f"numpy.{name} cannot be traced; use one of {' '.join(sorted(NUMPY_NAMES))}")


def _simplified(graph: Graph, operation: str, arguments: list[Symbol]) -> Symbol | None:
    """A simpler symbol with the same value, or None; x*0 is 0, which derivatives need to stay sparse."""
    constants = [argument.constant for argument in arguments]
    if None not in constants:
        folded = evaluate_constants(operation, constants)  # type: ignore[arg-type]
        if folded is not None:
            return graph.leaf("constant", folded)
    first, last = arguments[0], arguments[-1]
    same = first.index == last.index
    match operation, constants:
        case "add", [0.0, None]:
            return last
        case "add" | "subtract", [None, 0.0]:
            return first
        case "subtract", [0.0, None]:
            return -last
        case "subtract", [None, None] if same:
            return graph.symbol(0.0)
        case "multiply", [0.0, None] | [None, 0.0]:
            return graph.symbol(0.0)
        case "multiply", [1.0, None]:
            return last
        case ("multiply", [None, 1.0]) | ("divide", [None, 1.0]) | ("power", [None, 1.0]):
            return first
        case "multiply", [-1.0, None]:
            return -last
        case "multiply", [None, -1.0]:
            return -first
        case "divide", [0.0, None]:
            return graph.symbol(0.0)
        case "power", [None, float(exponent)]:
            return _power(graph, first, exponent)
        case "negative", [None] if first.node.operation == "negative":
            return Symbol(graph, first.node.arguments[0])
        case "min" | "max", [None, None] if same:
            return first
        case "where", [float(condition), *_]:
            return arguments[1] if condition else arguments[2]
        case "where", _ if arguments[1].index == last.index:
            return last
    return None


def _power(graph: Graph, base: Symbol, exponent: float) -> Symbol | None:
    """Small whole powers as products, half ones with a square root; other powers stay (None)."""
    if exponent == 0.0:
        return graph.symbol(1.0)
    if not (2 * exponent).is_integer() or abs(exponent) > LARGEST_EXPANDED_POWER:
        return None
    if exponent < 0.0:
        return graph.apply("divide", 1.0, graph.apply("power", base, -exponent))
    if not exponent.is_integer():
        return graph.apply("multiply", graph.apply("power", base, exponent - 0.5), graph.apply("sqrt", base))
    if exponent == 1.0:
        return base
    half, odd = divmod(int(exponent), 2)
    root = graph.apply("power", base, float(half))
    square = graph.apply("multiply", root, root)
    return graph.apply("multiply", square, base) if odd else square


_INFIX = {"add": ("+", 1), "subtract": ("-", 1), "multiply": ("*", 2), "divide": ("/", 2), "power": ("**", 4)}
_COMPARISONS = {"less": ("<", 0), "less_equal": ("<=", 0)}


def text(symbol: Symbol, names: Callable[[Node], str] | None = None, longest: float = float("inf")) -> str:
    """The expression in Python's notation; `names` gives the names of states and parameters.

    Subexpressions of more than `longest` characters become '...'.
    """
    naming = names or (lambda node: "t" if node.operation == "time" else f"{node.operation}{node.value}")
    known: dict[int, tuple[str, int]] = {}  # text and binding strength; 9 = atom

    def bracket(part: tuple[str, int], strength: int) -> str:
        return part[0] if part[1] >= strength else f"({part[0]})"

    for index in symbol.graph.reachable([symbol]):
        node = symbol.graph.nodes[index]
        parts = [known[argument] for argument in node.arguments]
        if node.operation == "constant":
            known[index] = f"{node.value:.17g}", 9 if np.copysign(1.0, node.value) > 0 else 3
        elif not parts:
            known[index] = naming(node), 9
        elif node.operation == "negative":
            known[index] = f"-{bracket(parts[0], 3)}", 2
        elif node.operation in _INFIX or node.operation in _COMPARISONS:
            sign, strength = (_INFIX | _COMPARISONS)[node.operation]
            if sign in "+*" and parts[1][1] == strength < parts[0][1]:
                parts.reverse()  # a + b + c reads better than c + (a + b), which is the same
            tighter = node.operation in ("power", *_COMPARISONS)  # a**b**c and a < b < c mean something else
            left, right = bracket(parts[0], strength + tighter), bracket(parts[1], strength + 1)
            known[index] = (f"{left}{sign}{right}" if strength > 1 else f"{left} {sign} {right}"), strength
        else:
            known[index] = f"{node.operation}({', '.join(part for part, _ in parts)})", 9
        if len(known[index][0]) > longest:
            known[index] = "...", 9
    return known[symbol.index][0]
