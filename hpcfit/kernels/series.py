"""Pass 1: from expressions to recurrences for the coefficients of their Taylor series.

A node of the graph becomes one of three things: a *constant* (a literal), a *uniform* (the same during a
whole path: parameters only) or a *series* (depends on time or state). Coefficient k of a series is made of
coefficients up to k of its arguments and, where products are involved, of convolutions

    c = sum over i = 1 .. k-1 of L[i] R[k-i],

which need older coefficients only. So all convolutions of a stage k run in one loop, and the rest is
straight-line code in the order of the graph (Jorba and Zou 2005; Griewank and Walther, Evaluating
Derivatives, chapter 13).
"""

from __future__ import annotations

from collections.abc import Sequence

from hpcfit.kernels.recurrences import CONSTANT, PARTNERS, SERIES, UNIFORM, Recurrence, recurrence
from hpcfit.kernels.text import literal, plain
from hpcfit.models.graph import Graph, Node, Symbol

ROLES = {"time": SERIES, "state": SERIES, "parameter": UNIFORM, "constant": CONSTANT, "slide": SERIES}


def normalised(graph: Graph, outputs: Sequence[Symbol]) -> list[Symbol]:
    """Pass 0: the same expressions with fewer kinds of operations.

    min, max and abs become choices and signs; a power with an exponent that varies becomes exp and log;
    factors that do not vary leave products, so that (b x) y and (c x) y share the one convolution of x y.
    """
    new: dict[int, Symbol] = {}
    for index in graph.reachable(outputs):
        node = graph.nodes[index]
        arguments = [new[argument] for argument in node.arguments]
        new[index] = _normal_form(graph, node, arguments) if arguments else Symbol(graph, index)
    return [new[output.index] for output in outputs]


def _normal_form(graph: Graph, node: Node, arguments: list[Symbol]) -> Symbol:
    apply = graph.apply
    match node.operation, arguments:
        case "abs", [x]:
            return apply("multiply", x, apply("sign", x))
        case "min", [x, y]:
            return apply("where", apply("less", x, y), x, y)
        case "max", [x, y]:
            return apply("where", apply("less", y, x), x, y)
        case "power", [x, y] if not _parameters_only(graph, y):
            return apply("exp", apply("multiply", y, apply("log", x)))
        case "multiply" | "divide", [x, y] if not _parameters_only(graph, x) and not _parameters_only(
            graph, y
        ):
            (factor, x), (other, y) = _without_uniform(graph, x), _without_uniform(graph, y)
            return apply("multiply", apply(node.operation, factor, other), apply(node.operation, x, y))
    return apply(node.operation, *arguments)


def _without_uniform(graph: Graph, symbol: Symbol) -> tuple[Symbol, Symbol]:
    """A product as (what does not vary, the rest)."""
    factor = graph.symbol(1.0)
    while True:
        arguments = [Symbol(graph, argument) for argument in symbol.node.arguments]
        if symbol.node.operation == "negative":
            factor, symbol = -factor, arguments[0]
        elif symbol.node.operation == "multiply" and _parameters_only(graph, arguments[0]):
            factor, symbol = factor * arguments[0], arguments[1]
        elif symbol.node.operation == "multiply" and _parameters_only(graph, arguments[1]):
            factor, symbol = factor * arguments[1], arguments[0]
        else:
            return factor, symbol


def _parameters_only(graph: Graph, symbol: Symbol) -> bool:
    return all(graph.nodes[i].operation not in ("time", "state") for i in graph.reachable([symbol]))


def kink_of(graph: Graph, node: Node) -> tuple[Symbol, bool]:
    """The argument g whose sign decides, and whether it does so with the other sign."""
    if node.operation == "sign":
        return without_sign(Symbol(graph, node.arguments[0]))
    left, right = (Symbol(graph, argument) for argument in node.arguments)  # less: right - left > 0
    swapped = left.index > right.index
    argument, negated = without_sign(graph.apply("subtract", *((left, right) if swapped else (right, left))))
    return argument, negated != swapped


def without_sign(argument: Symbol) -> tuple[Symbol, bool]:
    """|x| and x < 0 are one kink, not x and -x."""
    negated = False
    while argument.node.operation == "negative":
        argument, negated = Symbol(argument.graph, argument.node.arguments[0]), not negated
    return argument, negated


def _ratio_of_signs(a: Symbol, b: Symbol) -> int:
    """1 if two sums have the same terms, -1 if all of them have the other sign, else 0."""
    left, right = _terms(a), _terms(b)
    if left == right:
        return 1
    return -1 if left == {index: -count for index, count in right.items()} else 0


def _terms(symbol: Symbol) -> dict[int, int]:
    """A sum as its terms and how often each occurs."""
    counts: dict[int, int] = {}
    waiting = [(symbol, 1)]
    while waiting:
        part, sign = waiting.pop()
        arguments = [Symbol(part.graph, argument) for argument in part.node.arguments]
        if part.node.operation == "negative":
            waiting.append((arguments[0], -sign))
        elif part.node.operation in ("add", "subtract"):
            waiting += [(arguments[0], sign), (arguments[1], sign if part.node.operation == "add" else -sign)]
        else:
            counts[part.index] = counts.get(part.index, 0) + sign
    return {index: count for index, count in counts.items() if count}


class Tape:
    """The recurrences of some expressions, in order, and the uniforms and kinks that they use."""

    def __init__(self, graph: Graph, known: Tape | None = None) -> None:
        self.graph = graph
        self.role: dict[int, str] = dict(known.role) if known else {}
        self.names: dict[int, str] = dict(known.names) if known else {}
        self.uniforms: list[tuple[str, str]] = []  # name and C expression
        self.recurrences: list[Recurrence] = []
        self.kinks: list[Symbol] = known.kinks if known else []  # arguments g; their signs are the modes
        self._modes: dict[int, int] = known._modes if known else {}
        self._fixed_kinks = known is not None
        self._twins: dict[tuple[str, tuple[int, ...]], str] = dict(known._twins) if known else {}

    def add(self, outputs: Sequence[Symbol]) -> None:
        """Make sure that the tape computes these expressions."""
        for index in self.graph.reachable(outputs):
            if index in self.role:
                continue
            node = self.graph.nodes[index]
            self.role[index] = self._role(node)
            if node.operation == "slide":  # a mode of the lane, see sliding.py
                self.names[index] = "mode"
            elif node.operation in ("time", "state"):
                self.names[index] = "t_" if node.operation == "time" else f"x{int(node.value)}_"
            elif self.role[index] == UNIFORM and node.arguments:
                self.names[index] = f"u_{index}"
                values = [self.at(argument, "0") for argument in node.arguments]
                self.uniforms.append((f"u_{index}", plain(node.operation, values)))
            elif self.role[index] == SERIES and node.arguments:
                self._add_series(index, node)

    def at(self, index: int, k: str) -> str:
        """C for coefficient k of a node ('0', 'k' or a number)."""
        role, node = self.role[index], self.graph.nodes[index]
        if role == SERIES:
            return f"{self.names[index]}[{k}]"
        if k != "0":
            return "all(0)"
        if role == CONSTANT:
            return f"all({literal(float(node.value))})"
        return self.names.get(index, f"p[{int(node.value)}]")

    def value(self, symbol: Symbol, k: str) -> str:
        return self.at(symbol.index, k)

    def mode(self, node: Node) -> str:
        """C for +1 or -1: the side of the kink on which the path is.

        A comparison that only derivatives contain (a guard against 0 * log(0), say) is no kink of the path:
        its side is that of the beginning of the step.
        """
        known = self.known_mode(node)
        if known:
            return known
        if self._fixed_kinks:
            values = [self.at(argument, "0") for argument in node.arguments]
            return f"(2 * {plain(node.operation, values)} - 1)" if len(values) == 2 else plain("sign", values)
        self._modes[kink_of(self.graph, node)[0].index] = len(self.kinks)
        self.kinks.append(kink_of(self.graph, node)[0])
        return str(self.known_mode(node))

    def surface(self, symbol: Symbol) -> tuple[int, bool]:
        """The number of the kink at the roots of a function, and whether it has the other sign."""
        argument, negated = without_sign(symbol)
        for number, kink in enumerate(self.kinks):
            if argument.index == kink.index or (same := _ratio_of_signs(argument, kink)) == 1:
                return number, negated
            if same == -1:
                return number, not negated
        self._modes[argument.index] = len(self.kinks)
        self.kinks.append(argument)
        return self._modes[argument.index], negated

    def known_mode(self, node: Node) -> str | None:
        """The mode of a kink that the tape has met already."""
        argument, negated = kink_of(self.graph, node)
        if argument.index not in self._modes:
            return None
        return f"({'-' * negated}mode[{self._modes[argument.index]}])"

    def truth(self, node: Node) -> str:
        """C for 1 or 0: whether a comparison holds on this side of its kink."""
        return f"((1 + {self.mode(node)}) / 2)"

    def _role(self, node: Node) -> str:
        if not node.arguments:
            return ROLES[node.operation]
        return SERIES if any(self.role[argument] == SERIES for argument in node.arguments) else UNIFORM

    def _add_series(self, index: int, node: Node) -> None:
        twin = self._twins.get((PARTNERS.get(node.operation, ""), node.arguments))
        if twin:  # cos comes with sin, and sin with cos
            self.names[index] = f"{twin}_q"
            return
        name = f"n{index}"
        self.names[index] = name
        self._twins[node.operation, node.arguments] = name
        self.recurrences.append(recurrence(self, name, node))
