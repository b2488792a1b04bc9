"""A traced model in the symbols of another library."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hpcfit.models.define import Model
from hpcfit.models.derivatives import jacobians
from hpcfit.models.graph import Symbol

Table = Mapping[str, Callable[..., Any]]

ARITHMETIC: Table = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
}
ELEMENTARY = ("exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")


def table(library: Any, **others: Callable[..., Any]) -> Table:
    """Arithmetic by operators, functions by their usual names in `library`, and `others`."""
    return {**ARITHMETIC, **{name: getattr(library, name) for name in ELEMENTARY}, **others}


def translate(
    model: Model, outputs: Sequence[Symbol], functions: Table, leaf: Callable[[str, float], Any]
) -> list[Any]:
    """The outputs in other symbols; `leaf` gives those of a constant, the time, a state or a parameter."""
    assert model.graph is not None, f"{model.name} is opaque"
    known: dict[int, Any] = {}
    for index in model.graph.reachable(outputs):
        operation, arguments, value = model.graph.nodes[index]
        if not arguments:
            known[index] = leaf(operation, value)
        elif operation in functions:
            known[index] = functions[operation](*(known[argument] for argument in arguments))
        else:
            raise NotImplementedError(f"{model.name}: no {operation} in this peer's table")
    return [known[symbol.index] for symbol in outputs]


def leaves(
    time: Any, states: Sequence[Any], parameters: Sequence[Any], constant: Callable[[float], Any]
) -> Callable[[str, float], Any]:
    """The usual `leaf` of a library whose symbols stand in sequences."""

    def leaf(operation: str, value: float) -> Any:
        match operation:
            case "constant":
                return constant(float(value))
            case "time":
                return time
            case "state":
                return states[int(value)]
        return parameters[int(value)]

    return leaf


def nonzero_jacobian(model: Model) -> tuple[list[tuple[int, int]], list[Symbol]]:
    """Places (row, column) and expressions of [f_x, f_p], without the zeros."""
    by_state, by_parameter = jacobians(model)
    rows = [(*states, *parameters) for states, parameters in zip(by_state, by_parameter, strict=True)]
    places = [(i, j) for i, row in enumerate(rows) for j, entry in enumerate(row) if entry.constant != 0.0]
    return places, [rows[i][j] for i, j in places]
