"""Parameters as states that do not change: what each experiment has for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.models.define import Equations, Model
from hpcfit.models.graph import Graph, Node, Symbol
from hpcfit.models.names import Named, nearest
from hpcfit.records import InputError


def with_states(model: Model, names: Sequence[str]) -> Model:
    """The same model with some parameters k as further states, k' = 0, in the order of the parameters.

    A path has its own value of a state, so that nothing else has to know of parameters that are not shared.
    """
    for name in names:
        if name not in model.parameters:
            raise InputError(f"{model.name}: no parameter '{name}'; {nearest(name, model.parameters)}")
    moved = tuple(name for name in model.parameters if name in names)
    kept = tuple(name for name in model.parameters if name not in names)
    common: dict[str, Any] = {"states": (*model.states, *moved), "parameters": kept, "examples": ()}
    if model.graph is None:
        return replace(model, function=_with_states(model, moved, kept), **common)
    graph, translated = _translation(model, moved, kept)
    still = [graph.leaf("state", len(model.states) + i) for i in range(len(moved))]
    rest = still if model.kind == "map" else [graph.symbol(0.0) for _ in moved]
    return replace(
        model,
        graph=graph,
        equations=(*(translated[equation.index] for equation in model.equations), *rest),
        observables={name: translated[symbol.index] for name, symbol in model.observables.items()},
        invariant=None if model.invariant is None else translated[model.invariant.index],
        switches={name: translated[symbol.index] for name, symbol in model.switches.items()},
        jumps=tuple(jump.translated(lambda symbol: translated[symbol.index]) for jump in model.jumps),
        **common,
    )


def _translation(model: Model, moved: Sequence[str], kept: Sequence[str]) -> tuple[Graph, dict[int, Symbol]]:
    """A new graph with all that the model needs, and its symbols by their numbers in the old one."""
    assert model.graph is not None
    graph = Graph()
    translated: dict[int, Symbol] = {}
    for index in model.graph.reachable(model.expressions):
        node = model.graph.nodes[index]
        if node.arguments:
            translated[index] = graph.apply(node.operation, *(translated[k] for k in node.arguments))
        else:
            translated[index] = _leaf(graph, node, model, moved, kept)
    return graph, translated


def _leaf(graph: Graph, node: Node, model: Model, moved: Sequence[str], kept: Sequence[str]) -> Symbol:
    if node.operation != "parameter":
        return graph.leaf(node.operation, node.value)
    name = model.parameters[int(node.value)]
    if name in moved:
        return graph.leaf("state", len(model.states) + moved.index(name))
    return graph.leaf("parameter", kept.index(name))


def _with_states(model: Model, moved: Sequence[str], kept: Sequence[str]) -> Equations:
    """An opaque function of more states and fewer parameters."""
    assert model.function is not None
    function, n = model.function, len(model.states)

    def extended(t: Any, u: Any, p: Any) -> Any:
        own = dict(zip(moved, u[n:], strict=True)) | dict(zip(kept, p, strict=True))
        states = Named(model.name, "state", model.states, u[:n])
        parameters = Named(model.name, "parameter", model.parameters, [own[k] for k in model.parameters])
        moving = np.atleast_1d(np.asarray(function(t, states, parameters)))
        return [*moving, *(u[n:] if model.kind == "map" else [0.0] * len(moved))]

    return extended
