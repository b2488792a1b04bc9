"""Exact derivatives of expressions: new expressions of the same graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpcfit.models.define import Model
from hpcfit.models.functions import FUNCTIONS
from hpcfit.models.graph import Graph, Node, Symbol

Matrix = tuple[tuple[Symbol, ...], ...]


def derivative(outputs: Sequence[Symbol], by: Symbol) -> tuple[Symbol, ...]:
    """d outputs / d by, by the chain rule from the leaves up (forward mode).

    At kinks the one-sided derivative of the branch that is evaluated; jumps are the flow's concern.
    """
    graph = by.graph
    zero = graph.symbol(0.0)
    slopes: dict[int, Symbol] = {by.index: graph.symbol(1.0)}
    for index in graph.reachable(outputs):
        node = graph.nodes[index]
        if index == by.index or not any(argument in slopes for argument in node.arguments):
            continue
        total = _slope(graph, node, slopes)
        if total.constant != 0.0:
            slopes[index] = total
    return tuple(slopes.get(output.index, zero) for output in outputs)


def _slope(graph: Graph, node: Node, slopes: Mapping[int, Symbol]) -> Symbol:
    """The derivative of one node, from those of its arguments; absent = zero."""
    zero = graph.symbol(0.0)
    function = FUNCTIONS[node.operation]
    arguments = [Symbol(graph, argument) for argument in node.arguments]
    if function.choice is not None:
        # Chosen like the value, not weighted by 1 and 0: the other branch may not be finite.
        condition, yes, no = function.choice(*arguments)
        return graph.apply("where", condition, slopes.get(yes.index, zero), slopes.get(no.index, zero))
    assert function.partials is not None
    total = zero
    for argument, partial in zip(node.arguments, function.partials(*arguments), strict=True):
        if argument in slopes:
            total = total + partial * slopes[argument]
    return total


def jacobians(model: Model) -> tuple[Matrix, Matrix]:
    """f_x (n x n) and f_p (n x n_p) of a traced model, as expressions (6 of Baake et al. 1992)."""
    assert model.graph is not None, "an opaque model has no expressions to differentiate"

    def matrix(kind: str, count: int) -> Matrix:
        assert model.graph is not None
        columns = [derivative(model.equations, model.graph.leaf(kind, j)) for j in range(count)]
        return tuple(tuple(column[i] for column in columns) for i in range(len(model.states)))

    return matrix("state", len(model.states)), matrix("parameter", len(model.parameters))
