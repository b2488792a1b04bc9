"""Expression graphs evaluated by mpmath, node by node: an independent meaning of every operation."""

from __future__ import annotations

import mpmath as mp

FUNCTIONS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": mp.power,
    "negative": lambda x: -x,
    "exp": mp.exp,
    "log": mp.log,
    "sqrt": mp.sqrt,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "abs": abs,
    "sign": mp.sign,
    "min": min,
    "max": max,
    "where": lambda condition, x, y: x if condition != 0 else y,
    "less": lambda x, y: mp.mpf(x < y),
    "less_equal": lambda x, y: mp.mpf(x <= y),
}


def values(graph, outputs, t, u, p):
    """{node number: value} of all nodes that the outputs need."""
    known = {}
    for index in graph.reachable(outputs):
        operation, arguments, value = graph.nodes[index]
        match operation:
            case "constant":
                known[index] = mp.mpf(value)
            case "time":
                known[index] = mp.mpf(t)
            case "state":
                known[index] = mp.mpf(u[value])
            case "parameter":
                known[index] = mp.mpf(p[value])
            case _:
                known[index] = FUNCTIONS[operation](*(known[argument] for argument in arguments))
    return known


def distance_to_kink(graph, outputs, t, u, p):
    """How far the arguments of abs, sign, min, max and comparisons are from where they switch."""
    known = values(graph, outputs, t, u, p)
    distances = [mp.inf]
    for index in known:
        operation, arguments, _ = graph.nodes[index]
        if operation in ("abs", "sign"):
            distances.append(abs(known[arguments[0]]))
        elif operation in ("min", "max", "less", "less_equal"):
            distances.append(abs(known[arguments[0]] - known[arguments[1]]))
    return min(distances)
