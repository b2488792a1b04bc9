"""Expressions as numpy programs over arrays of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hpcfit.models.define import Model
from hpcfit.models.functions import FUNCTIONS
from hpcfit.models.graph import Graph, Symbol


class Program:
    """Evaluates some expressions of a graph; each shared subexpression once."""

    def __init__(self, graph: Graph, outputs: Sequence[Symbol]) -> None:
        order = graph.reachable(outputs)
        slot = {index: k for k, index in enumerate(order)}
        self._nodes = [graph.nodes[index] for index in order]
        self._calls = [
            (k, FUNCTIONS[node.operation].numpy, tuple(slot[argument] for argument in node.arguments))
            for k, node in enumerate(self._nodes)
            if node.arguments
        ]
        self._outputs = [slot[symbol.index] for symbol in outputs]
        self._constants = [node.value if node.operation == "constant" else None for node in self._nodes]
        self._leaves = [
            (k, node.operation, int(node.value))
            for k, node in enumerate(self._nodes)
            if node.operation in ("time", "state", "parameter")
        ]

    def __call__(self, t: Any, u: Any, p: Any) -> list[Any]:
        """The outputs for time t, states u and parameters p: numbers or arrays that broadcast."""
        values = self._values(t, u, p)
        return [values[k] for k in self._outputs]

    def culprit(self, t: float, u: Sequence[float], p: Sequence[float]) -> str:
        """The first operation without a finite value, as 'log(-0.5)'; '' if all are finite."""
        values = self._values(t, u, p)
        for node, value in zip(self._nodes, values, strict=True):
            if node.arguments and not np.isfinite(value):
                slots = next(slots for k, _, slots in self._calls if self._nodes[k] is node)
                return f"{node.operation}({', '.join(f'{float(values[k]):.6g}' for k in slots)})"
        return ""

    def _values(self, t: Any, u: Any, p: Any) -> list[Any]:
        values: list[Any] = list(self._constants)
        for k, operation, number in self._leaves:
            values[k] = _plain(t if operation == "time" else u[number] if operation == "state" else p[number])
        with np.errstate(all="ignore"):
            for k, function, slots in self._calls:
                values[k] = function(*[values[slot] for slot in slots])
        return values


def _plain(value: Any) -> Any:
    """The value, an array with the usual strides: on others numpy may compute the last bit differently.

    A copy also where numpy calls the array contiguous, which it does for a single element of any stride.
    """
    return value.copy() if isinstance(value, np.ndarray) else value


def evaluate(
    model: Model, outputs: Sequence[Symbol], t: Any, u: Sequence[Any], p: Sequence[Any]
) -> list[Any]:
    """Values of expressions of a traced model."""
    assert model.graph is not None
    return Program(model.graph, outputs)(t, u, p)
