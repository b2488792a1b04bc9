"""The one table of operations: numpy body and derivative of each.

Tracing, numpy evaluation, derivatives, the string parser, `hpcfit.math` and the kernels all read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def _pick(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(np.asarray(condition) != 0, yes, no)


def _truth(comparison: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: np.where(comparison(left, right), 1.0, 0.0)


@dataclass(frozen=True)
class Function:
    """An operation on numbers: arity, numpy body, partial derivatives as expressions of the arguments.

    `kink` marks operations that are not smooth; `by_name` those that a model calls by name. An operation
    that hands on one of its arguments has no partials but a `choice`: (condition, if true, if false).
    """

    arity: int
    numpy: Callable[..., Any]
    partials: Callable[..., Sequence[Any]] | None
    kink: bool = False
    by_name: bool = True
    choice: Callable[..., tuple[Any, Any, Any]] | None = None


def _power_partials(x: Any, y: Any) -> Sequence[Any]:
    by_base = y * x ** (y - 1.0)
    if y.constant is not None:
        return by_base, 0.0
    base = _call("where", abs(x) <= 0.0, 1.0, x)  # 0**y is 0 for all y > 0, but 0 * log(0) is not a number
    return by_base, x**y * _call("log", base)


def _call(name: str, *arguments: Any) -> Any:
    return arguments[0].graph.apply(name, *arguments)


FUNCTIONS: dict[str, Function] = {
    "add": Function(2, np.add, lambda x, y: (1.0, 1.0), by_name=False),
    "subtract": Function(2, np.subtract, lambda x, y: (1.0, -1.0), by_name=False),
    "multiply": Function(2, np.multiply, lambda x, y: (y, x), by_name=False),
    "divide": Function(2, np.divide, lambda x, y: (1.0 / y, -(x / y) / y), by_name=False),
    "power": Function(2, np.power, _power_partials, by_name=False),
    "negative": Function(1, np.negative, lambda x: (-1.0,), by_name=False),
    "exp": Function(1, np.exp, lambda x: (_call("exp", x),)),
    "log": Function(1, np.log, lambda x: (1.0 / x,)),
    "sqrt": Function(1, np.sqrt, lambda x: (0.5 / _call("sqrt", x),)),
    "sin": Function(1, np.sin, lambda x: (_call("cos", x),)),
    "cos": Function(1, np.cos, lambda x: (-_call("sin", x),)),
    "tan": Function(1, np.tan, lambda x: (1.0 + _call("tan", x) ** 2,)),
    "asin": Function(1, np.arcsin, lambda x: (1.0 / _call("sqrt", 1.0 - x * x),)),
    "acos": Function(1, np.arccos, lambda x: (-1.0 / _call("sqrt", 1.0 - x * x),)),
    "atan": Function(1, np.arctan, lambda x: (1.0 / (1.0 + x * x),)),
    "sinh": Function(1, np.sinh, lambda x: (_call("cosh", x),)),
    "cosh": Function(1, np.cosh, lambda x: (_call("sinh", x),)),
    "tanh": Function(1, np.tanh, lambda x: (1.0 - _call("tanh", x) ** 2,)),
    "abs": Function(1, np.abs, lambda x: (_call("sign", x),), kink=True),
    "sign": Function(1, np.sign, lambda x: (0.0,), kink=True),
    "min": Function(2, np.minimum, None, kink=True, choice=lambda x, y: (x < y, x, y)),
    "max": Function(2, np.maximum, None, kink=True, choice=lambda x, y: (y < x, x, y)),
    "where": Function(3, _pick, None, kink=True, choice=lambda c, x, y: (c, x, y)),
    "less": Function(2, _truth(np.less), lambda x, y: (0.0, 0.0), kink=True, by_name=False),
    "less_equal": Function(2, _truth(np.less_equal), lambda x, y: (0.0, 0.0), kink=True, by_name=False),
}

NUMPY_NAMES: dict[str, str] = {
    **{
        name: name
        for name in ("add", "subtract", "multiply", "divide", "power", "negative", "less", "less_equal")
    },
    **{name: name for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign")},
    "absolute": "abs",
    "fabs": "abs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "minimum": "min",
    "maximum": "max",
}


def evaluate_constants(operation: str, values: Sequence[float]) -> float | None:
    """The number operation(values), or None where it has none (overflow, log of a negative number)."""
    with np.errstate(all="ignore"):
        result = float(FUNCTIONS[operation].numpy(*values))
    return result if np.isfinite(result) else None
