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
from dataclasses import dataclass, field

from hpcfit.models.graph import Graph, Node, Symbol

CONSTANT, UNIFORM, SERIES = "constant", "uniform", "series"
PARTNERS = {"sin": "cos", "cos": "sin", "sinh": "cosh", "cosh": "sinh"}
ROLES = {"time": SERIES, "state": SERIES, "parameter": UNIFORM, "constant": CONSTANT}


@dataclass
class Recurrence:
    """How one series is computed, as C: coefficient 0, convolutions, coefficient k."""

    name: str
    comment: str
    zero: str
    convolutions: list[tuple[str, str]] = field(default_factory=list)
    finish: str = ""  # with {c[0]}, {c[1]} for the convolutions
    arrays: list[str] = field(default_factory=list)  # further series that it fills


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
            if node.operation in ("time", "state"):
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
        argument, _ = self._kink(node)
        self._modes[argument.index] = len(self.kinks)
        self.kinks.append(argument)
        return str(self.known_mode(node))

    def known_mode(self, node: Node) -> str | None:
        """The mode of a kink that the tape has met already."""
        argument, negated = self._kink(node)
        if argument.index not in self._modes:
            return None
        return f"({'-' * negated}mode[{self._modes[argument.index]}])"

    def _kink(self, node: Node) -> tuple[Symbol, bool]:
        """The argument g whose sign decides, and whether it does so with the other sign."""
        if node.operation == "sign":
            argument, negated = Symbol(self.graph, node.arguments[0]), False
        else:
            left, right = (
                Symbol(self.graph, argument) for argument in node.arguments
            )  # less: right - left > 0
            negated = left.index > right.index
            argument = self.graph.apply("subtract", *((left, right) if negated else (right, left)))
        while argument.node.operation == "negative":  # |x| and x < 0 are one kink, not x and -x
            argument, negated = Symbol(self.graph, argument.node.arguments[0]), not negated
        return argument, negated

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


def recurrence(tape: Tape, name: str, node: Node) -> Recurrence:
    """The recurrence of one operation with at least one series among its arguments."""
    a, b = (*node.arguments, *node.arguments)[:2]
    series = [tape.role[argument] == SERIES for argument in node.arguments]
    a0, b0, ak, bk = tape.at(a, "0"), tape.at(b, "0"), tape.at(a, "k"), tape.at(b, "k")
    A, B, w = tape.names.get(a, ""), tape.names.get(b, ""), name
    r = Recurrence(name, node.operation, plain(node.operation, [tape.at(arg, "0") for arg in node.arguments]))
    match node.operation, series:
        case "add" | "subtract", _:
            sign = "+" if node.operation == "add" else "-"
            r.finish = (
                f"{w}[k] = {ak} {sign} {bk};"
                if all(series)
                else f"{w}[k] = {ak if series[0] else sign + bk};"
            )
        case "negative", _:
            r.finish = f"{w}[k] = -{ak};"
        case "multiply", [True, True] if a == b:
            r.convolutions = [(A, A)]
            r.finish = f"{w}[k] = FMA(2 * {a0}, {ak}, {{c[0]}});"
        case "multiply", [True, True]:
            r.convolutions = [(A, B)]
            r.finish = f"{w}[k] = FMA({a0}, {bk}, FMA({ak}, {b0}, {{c[0]}}));"
        case "multiply", _:
            r.finish = f"{w}[k] = {ak if series[0] else a0} * {bk if series[1] else b0};"
        case "divide", [True, False]:
            r.finish = f"{w}[k] = {ak} / {b0};"
        case "divide", _:
            r.convolutions = [(B, w)]
            numerator = f"{ak} - " if series[0] else "-"
            r.finish = f"{w}[k] = ({numerator}FMA({bk}, {w}[0], {{c[0]}})) / {b0};"
        case "power", _:
            r = _power(r, A, b0)
        case "less" | "less_equal", _:
            r.zero, r.finish = tape.truth(node), f"{w}[k] = all(0);"
        case "sign", _:
            r.zero, r.finish = tape.mode(node), f"{w}[k] = all(0);"
        case "where", _:
            r = _choice(tape, r, node)
        case _:
            r = _function(r, node.operation, A)
    return r


def _choice(tape: Tape, r: Recurrence, node: Node) -> Recurrence:
    """One of two series, by the mode of the condition."""
    condition, yes, no = node.arguments
    comparison = tape.graph.nodes[condition]
    if tape.role[condition] == SERIES and comparison.operation in ("less", "less_equal"):
        mode = tape.mode(comparison)
    else:
        mode = f"({tape.at(condition, '0')} * {tape.at(condition, '0')})"  # anything but zero is true
    for attribute, k in (("zero", "0"), ("finish", "k")):
        setattr(r, attribute, f"pick({mode}, {tape.at(yes, k)}, {tape.at(no, k)})")
    r.finish = f"{r.name}[k] = {r.finish};"
    return r


def _power(r: Recurrence, A: str, exponent: str) -> Recurrence:
    """w = a^b: k a0 w_k = b sum i a_i w_(k-i) - sum a_i (k-i) w_(k-i)."""
    w, a_slope, w_slope = r.name, f"{r.name}_a", f"{r.name}_w"
    r.arrays = [a_slope, w_slope]
    r.convolutions = [(a_slope, w), (A, w_slope)]
    r.finish = (
        f"{a_slope}[k] = {A}[k] * (real)k; "
        f"{w}[k] = ({exponent} * FMA({a_slope}[k], {w}[0], {{c[0]}}) - {{c[1]}}) / ({A}[0] * (real)k); "
        f"{w_slope}[k] = {w}[k] * (real)k;"
    )
    return r


def _function(r: Recurrence, operation: str, A: str) -> Recurrence:
    """Functions of one series; *_a holds k a_k, so that w' = F a' becomes a convolution."""
    w = r.name
    slope = f"{w}_a"
    scaled = f"{slope}[k] = {A}[k] * (real)k; "
    match operation:
        case "exp":
            r.arrays, r.convolutions = [slope], [(slope, w)]
            r.finish = scaled + f"{w}[k] = FMA({slope}[k], {w}[0], {{c[0]}}) * inverse[k];"
        case "log":
            w_slope = f"{w}_w"
            r.arrays, r.convolutions = [w_slope], [(w_slope, A)]
            r.finish = f"{w}[k] = ({A}[k] - {{c[0]}} * inverse[k]) / {A}[0]; {w_slope}[k] = {w}[k] * (real)k;"
        case "sqrt":
            r.convolutions = [(w, w)]
            r.finish = f"{w}[k] = ({A}[k] - {{c[0]}}) / (2 * {w}[0]);"
        case "sin" | "cos" | "sinh" | "cosh":
            r = _circular(r, operation, A)
        case "tan" | "tanh":
            square, sign = f"{w}_q", "" if operation == "tan" else "-"
            r.arrays, r.convolutions = [slope, square], [(slope, square), (w, w)]
            r.zero = f"{r.zero}; {square}[0] = 1 {sign or '+'} {w}[0] * {w}[0]"
            r.finish = (
                f"{scaled}{w}[k] = FMA({slope}[k], {square}[0], {{c[0]}}) * inverse[k]; "
                f"{square}[k] = {sign}FMA(2 * {w}[0], {w}[k], {{c[1]}});"
            )
        case "asin" | "acos" | "atan":
            r = _arc(r, operation, A)
        case _:
            raise NotImplementedError(f"no recurrence for {operation}")
    return r


def _circular(r: Recurrence, operation: str, A: str) -> Recurrence:
    """sin with cos, sinh with cosh: each needs the other as its partner *_q."""
    w, slope, partner = r.name, f"{r.name}_a", f"{r.name}_q"
    w_sign = "-" if operation == "cos" else ""
    partner_sign = "-" if operation == "sin" else ""
    r.arrays, r.convolutions = [slope, partner], [(slope, partner), (slope, w)]
    r.zero = f"{r.zero}; {partner}[0] = v_{PARTNERS[operation]}({A}[0])"
    r.finish = (
        f"{slope}[k] = {A}[k] * (real)k; "
        f"{w}[k] = {w_sign}FMA({slope}[k], {partner}[0], {{c[0]}}) * inverse[k]; "
        f"{partner}[k] = {partner_sign}FMA({slope}[k], {w}[0], {{c[1]}}) * inverse[k];"
    )
    return r


def _arc(r: Recurrence, operation: str, A: str) -> Recurrence:
    """w' = +-a' / q with q = sqrt(1 - a^2) (asin, acos) or 1 + a^2 (atan)."""
    w, w_slope, q = r.name, f"{r.name}_w", f"{r.name}_q"
    sign = "-" if operation == "acos" else ""
    r.arrays, r.convolutions = [w_slope, q], [(w_slope, q), (A, A)]
    square = f"FMA(2 * {A}[0], {A}[k], {{c[1]}})"
    if operation == "atan":
        r.zero = f"{r.zero}; {q}[0] = 1 + {A}[0] * {A}[0]"
        next_q = f"{q}[k] = {square};"
    else:
        r.convolutions.append((q, q))
        r.zero = f"{r.zero}; {q}[0] = v_sqrt(1 - {A}[0] * {A}[0])"
        next_q = f"{q}[k] = (-{square} - {{c[2]}}) / (2 * {q}[0]);"
    r.finish = (
        f"{w_slope}[k] = ({sign}{A}[k] * (real)k - {{c[0]}}) / {q}[0]; "
        f"{w}[k] = {w_slope}[k] * inverse[k]; {next_q}"
    )
    return r


_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


def plain(operation: str, values: Sequence[str]) -> str:
    """C for an operation on numbers."""
    if operation in _INFIX:
        return f"({values[0]} {_INFIX[operation]} {values[1]})"
    if operation == "negative":
        return f"(-{values[0]})"
    return f"v_{operation}({', '.join(values)})"


def literal(value: float) -> str:
    """A number in C with all its bits."""
    return f"(real){value.hex()}" if abs(value) > 1e15 or value != int(value) else f"(real){int(value)}"
