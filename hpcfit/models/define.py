"""What a model is, and the decorator that makes one from a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpcfit.models.functions import FUNCTIONS
from hpcfit.models.graph import Graph, Node, Symbol, text
from hpcfit.models.jumps import Checking, Jump, needed_by, still
from hpcfit.models.names import Named, checked_names, nearest, split_names
from hpcfit.records import InputError

Equations = Callable[..., Any]  # f(t, u, p), or f(t, u, p, s): u, p and signs s by name or number
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
    switches: Mapping[str, Symbol] = field(default_factory=dict)  # Q, whose signs select f (2.1)
    jumps: tuple[Jump, ...] = ()
    examples: tuple[Example, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    @property
    def opaque(self) -> bool:
        return self.graph is None

    @property
    def smooth(self) -> bool:
        """True without jumps and kinks (abs, sign, min, max, where); unknown counts as False."""
        if self.graph is None or self.jumps:
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
    def expressions(self) -> tuple[Symbol, ...]:
        """All that a traced model is made of."""
        invariant = () if self.invariant is None else (self.invariant,)
        known = (*self.equations, *self.observables.values(), *self.switches.values(), *invariant)
        return (*known, *needed_by(self.jumps))

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
    switches: Mapping[str, Equations] | None = None,
    jumps: Mapping[str, Equations] | None = None,
    examples: Example | Sequence[Example] = (),
    units: Mapping[str, str] | None = None,
    opaque: bool = False,
    name: str = "",
) -> Callable[[Equations], Model]:
    """Make a model of f(t, u, p) -> one expression per state; it is called once, with symbols.

    `switches` are functions Q(t, u, p) by name; f(t, u, p, s) then gets their signs s, +1 or -1. `jumps` are
    functions that return a Jump. kind="map" makes f the next state. An opaque model is called with numbers,
    at every step: for functions with branches or look-ups that no expression can hold.
    """

    def decorate(function: Equations) -> Model:
        owner = name or function.__name__
        if kind not in KINDS:
            raise InputError(f"{owner}: kind '{kind}' is unknown; {nearest(kind, KINDS)}")
        named = (*(observables or {}), *(switches or {}))
        state_names, parameter_names = checked_names(owner, states, parameters, named, units or {})
        split_names(tuple(jumps or {}), owner, "jump")
        if kind == "map" and (jumps or switches):
            raise InputError(f"{owner}: a map has no switches and jumps; write where(...) in its equations")
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
            if observables or invariant or switches or jumps:
                what = "observables, invariants, switches and jumps"
                raise InputError(f"{owner}: {what} need a model that can be traced")
            return Model(graph=None, equations=(), function=function, **common)
        trace = Trace(owner, state_names, parameter_names)
        signs = trace.switches(switches or {})
        equations = trace.equations(function)
        return Model(
            graph=trace.graph,
            equations=equations,
            function=None,
            switches=signs,
            jumps=trace.jumps(jumps or {}, equations),
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
        self.signs: Named | None = None

    def switches(self, functions: Mapping[str, Equations]) -> dict[str, Symbol]:
        """The switching functions Q; the equations get their signs."""
        checking = self.checking(())
        found = {
            name: checking.switch(name, self.expression(body, f"switch {name}"))
            for name, body in functions.items()
        }
        if found:
            values = [self.graph.apply("sign", symbol) for symbol in found.values()]
            self.signs = Named(self.owner, "switch", tuple(found), values)
        return found

    def jumps(self, functions: Mapping[str, Equations], equations: Sequence[Symbol]) -> tuple[Jump, ...]:
        """The jumps that functions of (t, u, p) describe."""
        checking = self.checking(equations)
        return tuple(
            checking.jump(name, self._call(body, f"jump {name}")) for name, body in functions.items()
        )

    def checking(self, equations: Sequence[Symbol]) -> Checking:
        return Checking(self.owner, self.states, self._symbol, lambda symbol: still(equations, symbol))

    def equations(self, function: Equations) -> tuple[Symbol, ...]:
        """One symbol per state."""
        signs = () if self.signs is None else (self.signs,)
        returned = self._call(function, "the equations", *signs)
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

    def _call(self, function: Equations, what: str, *signs: Named) -> Any:
        try:
            return function(self.time, self.u, self.p, *signs)
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
