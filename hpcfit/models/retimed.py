"""The same motion over a time that is itself unknown: how long is a parameter, forward or backward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.graph import Graph, Symbol


@lru_cache(maxsize=32)
def retimed(model: Model) -> Model:
    """x' = d f(b + d s, x, p): from s = 0 to 1 the model moves from the time b through d, of either sign.

    Two further parameters, d and b; the derivative by d is that by the time of the end.
    """
    assert model.graph is not None
    graph, n_p = Graph(), len(model.parameters)
    duration, begin = graph.leaf("parameter", n_p), graph.leaf("parameter", n_p + 1)
    translated: dict[int, Symbol] = {}
    for index in model.graph.reachable(model.equations):
        node = model.graph.nodes[index]
        if node.arguments:
            translated[index] = graph.apply(node.operation, *(translated[k] for k in node.arguments))
        elif node.operation == "time":
            translated[index] = begin + duration * graph.leaf("time")
        else:
            translated[index] = graph.leaf(node.operation, node.value)
    return replace(
        model,
        graph=graph,
        parameters=(*model.parameters, "duration of the motion", "begin of the motion"),
        equations=tuple(duration * translated[equation.index] for equation in model.equations),
        observables={},
        invariant=None,
        switches={},
        jumps=(),
        examples=(),
    )


def rates(model: Model, names: Sequence[str]) -> tuple[Symbol, ...]:
    """dg/dt = g_t + g_x f of some quantities g along a path."""
    assert model.graph is not None
    quantities = [model.quantity(name) for name in names]
    total = list(derivative(quantities, model.graph.leaf("time")))
    for i, speed in enumerate(model.equations):
        by_state = derivative(quantities, model.graph.leaf("state", i))
        total = [sum_ + slope * speed for sum_, slope in zip(total, by_state, strict=True)]
    return tuple(total)
