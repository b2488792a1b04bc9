"""Equations that also hold while a path slides along a kink at which f jumps (Filippov 1988).

On g = 0 with f+ and f- both pushing back, x' = f- + a (f+ - f-) with a such that dg/dt = 0. Whether a lane
slides is a mode of it, like the sides of its kinks: one text serves lanes that slide and lanes that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpcfit.kernels.series import kink_of, normalised
from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.graph import Graph, Symbol


@dataclass(frozen=True)
class Slide:
    """A kink along which a path can slide, and dg/dt on its positive and on its negative side."""

    kink: Symbol
    drifts: tuple[Symbol, Symbol]


def with_sliding(model: Model) -> tuple[tuple[Symbol, ...], list[Slide]]:
    """The equations of a traced model with what holds on each kink along which it can slide."""
    assert model.graph is not None
    graph, equations, slides = model.graph, model.equations, list[Slide]()
    kinks = _jumping_kinks(graph, equations)
    if not kinks:
        return equations, slides
    equations = tuple(normalised(graph, equations))
    for kink in kinks:
        sides = tuple(_on_side(graph, equations, kink, side) for side in (1.0, -1.0))
        by_state = _gradient(kink, len(equations))
        jumps = [graph.apply("subtract", up, down) for up, down in zip(*sides, strict=True)]
        steering = _product(graph, by_state, jumps)
        if steering.constant is not None:
            continue  # f does not jump across the kink
        by_time = derivative([kink], graph.leaf("time"))[0]
        drifts = tuple(_product(graph, by_state, side) + by_time for side in sides)
        part = -(drifts[1] / steering)
        along = [
            down if jump.constant == 0.0 else down + part * jump
            for down, jump in zip(sides[1], jumps, strict=True)
        ]
        steered = [i for i, entry in enumerate(by_state) if entry.constant != 0.0]
        if len(steered) == 1:  # g is a function of one state: dg/dt = 0 says exactly how it moves
            along[steered[0]] = -(by_time / by_state[steered[0]])
        flag = graph.leaf("slide", len(slides))
        equations = tuple(graph.apply("where", flag, a, f) for a, f in zip(along, equations, strict=True))
        slides.append(Slide(kink, (drifts[0], drifts[1])))
    return (equations if slides else model.equations), slides


def coupled(graph: Graph, slides: Sequence[Slide]) -> list[list[bool]]:
    """Whether what keeps a path on one kink depends on the side of another."""
    return [
        [_depends(graph, a, slides, j) or _depends(graph, b, slides, i) for j, b in enumerate(slides)]
        for i, a in enumerate(slides)
    ]


def _depends(graph: Graph, slide: Slide, slides: Sequence[Slide], other: int) -> bool:
    for index in graph.reachable(slide.drifts):
        node = graph.nodes[index]
        if node.operation == "slide" and node.value == other:
            return True
        choosing = node.operation in ("sign", "less", "less_equal")
        if choosing and kink_of(graph, node)[0].index == slides[other].kink.index:
            return True
    return False


def _jumping_kinks(graph: Graph, equations: Sequence[Symbol]) -> list[Symbol]:
    """Kinks of signs and comparisons; those of abs, min and max alone leave f continuous."""
    found: dict[int, Symbol] = {}
    for index in graph.reachable(equations):
        if graph.nodes[index].operation in ("sign", "less", "less_equal"):
            (normal,) = normalised(graph, [Symbol(graph, index)])
            if normal.node.arguments:
                kink, _ = kink_of(graph, normal.node)
                found.setdefault(kink.index, kink)
    return list(found.values())


def _on_side(graph: Graph, outputs: Sequence[Symbol], kink: Symbol, side: float) -> list[Symbol]:
    """The same expressions where g has a sign once and for all."""
    new: dict[int, Symbol] = {}
    for index in graph.reachable(outputs):
        node = graph.nodes[index]
        arguments = [new[argument] for argument in node.arguments]
        if node.operation in ("sign", "less", "less_equal"):
            argument, negated = kink_of(graph, node)
            if argument.index == kink.index:
                sign = -side if negated else side
                new[index] = graph.symbol(sign if node.operation == "sign" else (1.0 + sign) / 2.0)
                continue
        new[index] = graph.apply(node.operation, *arguments) if arguments else Symbol(graph, index)
    return [new[output.index] for output in outputs]


def _gradient(kink: Symbol, n: int) -> list[Symbol]:
    return [derivative([kink], kink.graph.leaf("state", i))[0] for i in range(n)]


def _product(graph: Graph, left: Sequence[Symbol], right: Sequence[Symbol]) -> Symbol:
    total = graph.symbol(0.0)
    for a, b in zip(left, right, strict=True):
        total = total + a * b
    return total
