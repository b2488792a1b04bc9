"""Pieces of C that several passes write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpcfit.models.graph import Graph, Node, Symbol

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


def function(signature: str, lines: Sequence[str]) -> str:
    return "\n".join([signature, "{", *lines, "}"])


def minor(name: str, n: int, rows: tuple[int, ...], columns: tuple[int, ...]) -> str:
    """C for the determinant of some rows and columns of the n x n matrix `name`, by cofactors."""
    if not rows:
        return "all(1)"
    signs = ("-" if k % 2 else "+" for k in range(len(columns)))
    rests = (minor(name, n, rows[1:], columns[:k] + columns[k + 1 :]) for k in range(len(columns)))
    terms = [
        f"{sign} {name}[{rows[0] * n + c}] * ({rest})"
        for sign, c, rest in zip(signs, columns, rests, strict=True)
    ]
    return " ".join(terms).removeprefix("+ ")


def plain_lines(
    graph: Graph,
    outputs: Sequence[tuple[str, Symbol]],
    known_mode: Callable[[Node], str | None] | None = None,
) -> list[str]:
    """C that evaluates expressions at numbers: one local variable per shared subexpression."""
    names: dict[int, str] = {}
    lines = []
    for index in graph.reachable([symbol for _, symbol in outputs]):
        node = graph.nodes[index]
        choosing = node.operation in ("sign", "less", "less_equal")
        mode = known_mode(node) if choosing and known_mode else None
        if mode:
            names[index] = mode if node.operation == "sign" else f"((1 + {mode}) / 2)"
        elif node.arguments:
            values = [names[argument] for argument in node.arguments]
            names[index] = f"w{index}"
            lines.append(f"    const v w{index} = {plain(node.operation, values)};")
        elif node.operation == "slide":
            names[index] = f"((1 + mode[KINKS + {int(node.value)}]) / 2)"
        elif node.operation == "constant":
            names[index] = f"all({literal(float(node.value))})"
        else:
            letter = {"time": "t", "state": "x", "parameter": "p"}[node.operation]
            names[index] = letter if letter == "t" else f"{letter}[{int(node.value)}]"
    return lines + [f"    {target} = {names[symbol.index]};" for target, symbol in outputs]
