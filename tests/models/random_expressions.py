"""Random expressions of t, three states and two parameters, moderate near the unit cube."""

from __future__ import annotations

import numpy as np

from hpcfit import math as m
from hpcfit.models.graph import Graph

N_STATES, N_PARAMETERS = 3, 2

_UNARY = {
    "negative": lambda x: -x,
    "exp": lambda x: m.exp(m.sin(x)),
    "log": lambda x: m.log(x * x + 0.5),
    "sqrt": lambda x: m.sqrt(x * x + 0.5),
    "sin": m.sin,
    "cos": m.cos,
    "tan": lambda x: m.tan(0.7 * m.sin(x)),
    "asin": lambda x: m.asin(0.8 * m.cos(x)),
    "acos": lambda x: m.acos(0.8 * m.sin(x)),
    "atan": m.atan,
    "sinh": lambda x: m.sinh(m.cos(x)),
    "cosh": lambda x: m.cosh(m.sin(x)),
    "tanh": m.tanh,
    "abs": m.abs,
    "sign": lambda x: m.sign(x) * (1 + x),
    "cube": lambda x: m.tanh(x) ** 3,
    "inverse square": lambda x: (x * x + 0.7) ** -2,
    "root": lambda x: (x * x + 0.5) ** 1.5,
}
_BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: m.sin(x) * y,
    "divide": lambda x, y: x / (y * y + 0.5),
    "power": lambda x, y: (x * x + 0.5) ** m.cos(y),
    "min": lambda x, y: m.min(x, y),
    "max": lambda x, y: m.max(x, y),
    "less": lambda x, y: m.where(x < y, x * y, y - x),
    "less_equal": lambda x, y: m.where(x <= 0.3 * y, m.cos(x), y),
}


def random_expression(seed, size=14):
    """A graph, its leaves (time, states, parameters), and one expression made of `size` random operations."""
    rng = np.random.default_rng(seed)
    graph = Graph()
    leaves = [graph.leaf("time")]
    leaves += [graph.leaf("state", i) for i in range(N_STATES)]
    leaves += [graph.leaf("parameter", i) for i in range(N_PARAMETERS)]
    pool = list(leaves)
    for _ in range(size):
        newest = pool[-1] if rng.random() < 0.5 else pool[rng.integers(len(pool))]
        if rng.random() < 0.45:
            made = _UNARY[list(_UNARY)[rng.integers(len(_UNARY))]](newest)
        else:
            others = [
                symbol for symbol in pool if symbol.index != newest.index
            ]  # min(x, x) has no smooth point
            other = others[rng.integers(len(others))]
            made = _BINARY[list(_BINARY)[rng.integers(len(_BINARY))]](newest, other)
        pool.append(made)
    return graph, leaves, pool[-1] + 0.1 * pool[-2] * leaves[1]
