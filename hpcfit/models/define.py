"""What a model is, and the decorator that makes one from a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpcfit.models.functions import FUNCTIONS
from hpcfit.models.graph import Graph, Node, Symbol, text
from hpcfit.models.names import Named, checked_names, nearest
from hpcfit.records import InputError

Equations = Callable[[Any, Any, Any], Any]  # f(t, u, p): u and p by name or number
KINDS = ("flow", "map")


@dataclass(frozen=True)
class Example:
    """A documented case: where to start, with which parameters, and for how long it tells something."""

    start: Mapping[str, float]
    parameters: Mapping[str, float]
    duration: float  # the time scale for tests: tangents grow, but stay within what doubles resolve
    spacing: float  # between samples that show the motion
    source: str = ""


@dataclass(frozen=True, eq=False)
class Model:
    """x' = f(t, x, p), or x_next = f(t, x, p) for a map: mathematics, and nothing that computes."""

    name: str
    states: tuple[str, ...]
    parameters: tuple[str, ...]
    kind: str  # flow | map
    graph: Graph | None  # None: opaque, only `function` is known
    equations: tuple[Symbol, ...]
    function: Equations | None
    observables: Mapping[str, Symbol] = field(default_factory=dict)
    invariant: Symbol | None = None
    examples: tuple[Example, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def opaque(self) -> bool:
        return self.graph is None

    @property
    def smooth(self) -> bool:
        """True if no equation contains a kink (abs, sign, min, max, where); unknown counts as False."""
        if self.graph is None:
            return False
        nodes = (self.graph.nodes[index] for index in self.graph.reachable(self.equations))
        return not any(node.arguments and FUNCTIONS[node.operation].kink for node in nodes)

    @property
    def driven(self) -> bool:
        """True if an equation contains the time; unknown counts as True."""
        if self.graph is None:
            return True
        nodes = (self.graph.nodes[index] for index in self.graph.reachable(self.equations))
        return any(node.operation == "time" for node in nodes)

    def quantity(self, name: str) -> Symbol:
        """The expression of a state or an observable."""
        if self.graph is None:
            raise InputError(f"{self.name}: an opaque model has no expressions")
        if name in self.states:
            return self.graph.leaf("state", self.states.index(name))
        if name in self.observables:
            return self.observables[name]
        raise InputError(f"{self.name}: no state or observable '{name}'; {nearest(name, self.quantities)}")

    @property
    def quantities(self) -> tuple[str, ...]:
        return (*self.states, *self.observables)

    def text(self, expression: Symbol) -> str:
        """An expression in the model's own names."""
        return text(expression, self._leaf_name)

    def _leaf_name(self, node: Node) -> str:
        names = {"state": self.states, "parameter": self.parameters}.get(node.operation, ("t",))
        return names[int(node.value)]


def model(
    *,
    states: str | Sequence[str],
    parameters: str | Sequence[str] = "",
    kind: str = "flow",
    observables: Mapping[str, Equations] | None = None,
    invariant: Equations | None = None,
    examples: Example | Sequence[Example] = (),
    units: Mapping[str, str] | None = None,
    opaque: bool = False,
    name: str = "",
) -> Callable[[Equations], Model]:
    """Make a model of f(t, u, p) -> one expression per state; it is called once, with symbols.

    kind="map" makes f the next state. An opaque model is called with numbers, at every step: for
    functions with branches or look-ups that no expression can hold.
    """

    def decorate(function: Equations) -> Model:
        owner = name or function.__name__
        if kind not in KINDS:
            raise InputError(f"{owner}: kind '{kind}' is unknown; {nearest(kind, KINDS)}")
        state_names, parameter_names = checked_names(
            owner, states, parameters, tuple(observables or {}), units or {}
        )
        common: dict[str, Any] = {
            "name": owner,
            "states": state_names,
            "parameters": parameter_names,
            "kind": kind,
            "examples": (examples,) if isinstance(examples, Example) else tuple(examples),
            "units": dict(units or {}),
            "description": (function.__doc__ or "").strip(),
        }
        if opaque:
            if observables or invariant:
                raise InputError(f"{owner}: observables and invariants need a model that can be traced")
            return Model(graph=None, equations=(), function=function, **common)
        trace = Trace(owner, state_names, parameter_names)
        return Model(
            graph=trace.graph,
            equations=trace.equations(function),
            function=None,
            observables={key: trace.expression(body, key) for key, body in (observables or {}).items()},
            invariant=trace.expression(invariant, "the invariant") if invariant else None,
            **common,
        )

    return decorate


class Trace:
    """Calls functions of (t, u, p) with the symbols of one graph."""

    def __init__(self, owner: str, states: Sequence[str], parameters: Sequence[str]) -> None:
        self.owner = owner
        self.states = states
        self.graph = Graph()
        self.time = self.graph.leaf("time")
        self.u = Named(owner, "state", states, [self.graph.leaf("state", i) for i in range(len(states))])
        self.p = Named(
            owner, "parameter", parameters, [self.graph.leaf("parameter", i) for i in range(len(parameters))]
        )

    def equations(self, function: Equations) -> tuple[Symbol, ...]:
        """One symbol per state."""
        returned = self._call(function, "the equations")
        if isinstance(returned, Symbol | int | float):
            returned = (returned,)
        if not isinstance(returned, tuple | list | np.ndarray):
            raise InputError(
                f"{self.owner}: returned {type(returned).__name__}; return one expression per state"
            )
        if len(returned) != len(self.states):
            raise InputError(
                f"{self.owner}: {len(self.states)} states ({' '.join(self.states)}) "
                f"but {len(returned)} equations; "
                "return one expression per state, in their order"
            )
        return tuple(
            self._symbol(value, f"the equation of {n}")
            for value, n in zip(returned, self.states, strict=True)
        )

    def expression(self, function: Equations, what: str) -> Symbol:
        return self._symbol(self._call(function, what), what)

    def _call(self, function: Equations, what: str) -> Any:
        try:
            return function(self.time, self.u, self.p)
        except InputError as error:
            text = str(error)
            raise InputError(text if text.startswith(f"{self.owner}:") else f"{self.owner}: {text}") from None
        except Exception as error:
            raise InputError(
                f"{self.owner}: {what} cannot be traced ({type(error).__name__}: {error}); "
                "use arithmetic, numpy's and hpcfit.math's functions, or declare the model with opaque=True"
            ) from error

    def _symbol(self, value: Any, what: str) -> Symbol:
        try:
            return self.graph.symbol(value.item() if isinstance(value, np.ndarray | np.generic) else value)
        except (InputError, ValueError) as error:
            raise InputError(f"{self.owner}: {what}: {error}") from None
