"""Jumps of the state, x+ = h(t, x-, p), where a function passes through zero or at given times (2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcfit.models.graph import Symbol
from hpcfit.models.names import nearest
from hpcfit.records import InputError

ROOTS = {"falls": -1, "rises": 1, "crosses": 0}  # directions in which Q passes through zero
PASSING = "write an expression of t, states and parameters that passes through zero"


@dataclass(frozen=True, eq=False)
class Jump:
    """What some states become where `falls`, `rises` or `crosses` passes through zero, or at a time.

    `at` is the first time, `every` the distance of further ones, `count` how many there are in all (absent:
    without end). An output at the very time of a jump is the state before it.

        Jump(falls=u.height, to={"speed": -p.restitution * u.speed})
        Jump(at=p.lag, every=24.0, count=7, to={"gut": u.gut + p.dose})
    """

    to: Mapping[str, Any]
    falls: Any = None
    rises: Any = None
    crosses: Any = None
    at: Any = None
    every: Any = None
    count: int | None = None
    name: str = ""

    @property
    def timed(self) -> bool:
        return self.at is not None

    @property
    def root(self) -> tuple[Symbol, int]:
        """Q and the direction in which it passes through zero."""
        word = next(word for word in ROOTS if getattr(self, word) is not None)
        return getattr(self, word), ROOTS[word]

    @property
    def expressions(self) -> tuple[Symbol, ...]:
        """All expressions of a jump that has been checked."""
        where = (self.falls, self.rises, self.crosses, self.at, self.every)
        return tuple(each for each in (*where, *self.to.values()) if each is not None)

    def translated(self, new: Callable[[Symbol], Symbol]) -> Jump:
        """The same jump with other symbols."""

        def each(symbol: Any) -> Any:
            return None if symbol is None else new(symbol)

        places = {word: each(getattr(self, word)) for word in (*ROOTS, "at", "every")}
        return Jump(
            {key: new(value) for key, value in self.to.items()}, **places, count=self.count, name=self.name
        )

    def text(self, written: Callable[[Symbol], str]) -> str:
        """The jump for a person: where it happens, and what it does."""
        if self.timed:
            where = f"at t = {written(self.at)}"
            if self.every is not None:
                times = "for ever" if self.count is None else f"{self.count} times"
                where += f" and every {written(self.every)}, {times}"
        else:
            function, direction = self.root
            how = {-1: "falls through", 1: "rises through", 0: "passes through"}[direction]
            where = f"where {written(function)} {how} zero"
        return f"{where}: {', '.join(f'{name}+ = {written(value)}' for name, value in self.to.items())}"


@dataclass(frozen=True)
class Checking:
    """What jumps and switches of a model may use, and how what was written becomes a symbol."""

    owner: str
    states: Sequence[str]
    symbol: Callable[[Any, str], Symbol]
    resting: Callable[[Symbol], bool]  # whether an expression keeps its value along a path

    def jump(self, name: str, given: Any) -> Jump:
        """A jump with all its parts as symbols."""
        what = f"{self.owner}: jump {name}"
        if not isinstance(given, Jump):
            raise InputError(f"{what}: is {type(given).__name__}; write Jump(falls=..., to={{...}})")
        places = [word for word in (*ROOTS, "at") if getattr(given, word) is not None]
        if len(places) != 1:
            shown = " and ".join(places) or "no place"
            raise InputError(f"{what}: has {shown}; give one of falls, rises, crosses, at")
        self._check_rhythm(what, given)
        if not given.to:
            raise InputError(f'{what}: changes nothing; say what a state becomes, as in to = {{"v": -v}}')
        for state in given.to:
            if state not in self.states:
                raise InputError(f"{what}: sets '{state}', which is no state; {nearest(state, self.states)}")
        words = [word for word in (*ROOTS, "at", "every") if getattr(given, word) is not None]
        symbols = {word: self.symbol(getattr(given, word), f"jump {name}: {word}") for word in words}
        self._check_places(what, symbols)
        to = {state: self.symbol(value, f"jump {name}: {state}") for state, value in given.to.items()}
        return Jump(to, **symbols, count=given.count, name=name)

    def _check_rhythm(self, what: str, given: Jump) -> None:
        for word in ("every", "count"):
            if getattr(given, word) is not None and given.at is None:
                raise InputError(f"{what}: {word} without at; give the first time as at")
        if given.count is None:
            return
        if given.every is None:
            raise InputError(f"{what}: count without every; give the distance of the times as every")
        if isinstance(given.count, bool) or not isinstance(given.count, int) or given.count < 1:
            raise InputError(f"{what}: count is {given.count!r}; give a whole number, 1 or more")

    def _check_places(self, what: str, symbols: Mapping[str, Symbol]) -> None:
        for word, symbol in symbols.items():
            if word in ROOTS and symbol.constant is not None:
                raise InputError(never(what, word, symbol.constant))
            if word in ROOTS and self.resting(symbol):
                raise InputError(f"{what}: {word} never changes along the path; {PASSING}")
            if word in ("at", "every") and not self.resting(symbol):
                remedy = f"write the root of a function, as in rises = t - ({symbol!r})"
                raise InputError(f"{what}: {word} changes along the path; {remedy}")
        every = symbols.get("every")
        if every is not None and every.constant is not None and every.constant <= 0.0:
            raise InputError(f"{what}: every is {every.constant:g}; give a positive time")

    def switch(self, name: str, symbol: Symbol) -> Symbol:
        """A switching function, which must be able to change its sign."""
        if symbol.constant is not None:
            raise InputError(never(f"{self.owner}: switch {name}", "it", symbol.constant))
        return symbol


def never(what: str, word: str, value: float) -> str:
    """Of a function that cannot change its sign."""
    where = (
        "identically zero: it has no sign" if value == 0.0 else f"{value:g} everywhere: it never changes sign"
    )
    return f"{what}: {word} is {where}; {PASSING}"


def still(equations: Sequence[Symbol], symbol: Symbol) -> bool:
    """True if an expression contains neither time nor a state that moves."""
    graph = symbol.graph
    nodes = [graph.nodes[index] for index in graph.reachable([symbol])]
    moving = [
        node for node in nodes if node.operation == "state" and equations[int(node.value)].constant != 0.0
    ]
    return not moving and all(node.operation != "time" for node in nodes)


def needed_by(jumps: Iterable[Jump]) -> list[Symbol]:
    """All expressions of some jumps."""
    return [symbol for jump in jumps for symbol in jump.expressions]
