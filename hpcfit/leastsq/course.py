"""Where all members are, and how they came there; phases hand the course on to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcfit.leastsq.statistics import Spread
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns
from hpcfit.records import Array, Iteration, Outcome

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Watch = Callable[[Iteration], None]


class Problem(Protocol):
    """What least squares needs to know of a problem."""

    def take(self, members: Members) -> Problem: ...

    def roughly(self, tolerance: float) -> Problem:
        """The same, computed no better than to a relative tolerance."""

    def across(self, comm: Any) -> Across:
        """How sums over all nodes are made."""

    def residuals(self, comm: Any, z: Unknowns) -> Residuals: ...

    def linearise(self, comm: Any, z: Unknowns) -> Chain: ...


class Phase(Protocol):
    """One of the ways that members go; it remembers them by their numbers."""

    def begin(self, members: Numbers) -> None:
        """These members come in."""

    def iterate(self, comm: Any, problem: Problem, course: Course, members: Numbers) -> Numbers:
        """One iteration; the members that go on are returned."""


@dataclass
class Course:
    """All members of a batch; a place whose member has come to its end can be given to another."""

    z: Unknowns
    outcomes: list[Outcome]
    iterations: Numbers  # (M,) exact ones
    linearisations: Numbers  # (M,) of all phases
    spread: Spread  # at the end of the exact phase
    distance: Array  # (M,) the last increment of the exact phase, scaled
    history: list[list[Iteration]] | None  # of every member, where somebody wants it
    attempts: list[list[str]] | None  # the phases of every attempt and why; where somebody wants it
    watch: Watch | None = None
    fresh: list[int] = field(default_factory=list)  # members that have not begun

    @classmethod
    def begin(
        cls,
        z: Unknowns,
        watch: Watch | None = None,
        *,
        experiments: int = 1,
        conditions: int = 0,
        all_nodes: bool = True,
        remembers: bool = True,
    ) -> Course:
        """all_nodes: the covariance of all nodes is wanted, not only of the first of each experiment."""
        members = len(z.parameters)
        zeros = np.zeros(members, dtype=np.int64)
        return cls(
            Unknowns(z.nodes.copy(), z.parameters.copy()),
            [Outcome.UNFINISHED] * members,
            zeros,
            zeros.copy(),
            Spread.empty(z, experiments, all_nodes=all_nodes, conditions=conditions),
            np.full(members, np.inf),
            [[] for _ in range(members)] if remembers else None,
            [[] for _ in range(members)] if remembers else None,
            watch,
            list(range(members)),
        )

    def enter(self, members: Numbers, z: Unknowns) -> None:
        """New members in the places of some that have come to their end."""
        self.move(members, z)
        self.end(members, Outcome.UNFINISHED)
        self.iterations[members] = self.linearisations[members] = 0
        self.distance[members] = np.inf
        self.spread.forget(members)
        self.fresh += members.tolist()
        for member in members.tolist():
            if self.history is not None:
                self.history[member] = []
            if self.attempts is not None:
                self.attempts[member] = []

    def newcomers(self) -> Numbers:
        """Members that have not begun, who do so now."""
        fresh, self.fresh = np.array(self.fresh, dtype=np.int64), []
        return fresh

    def move(self, members: Members, z: Unknowns) -> None:
        self.z.nodes[members], self.z.parameters[members] = z.nodes, z.parameters

    def end(self, members: Numbers, outcome: Outcome) -> None:
        for member in members.tolist():
            self.outcomes[member] = outcome

    def converged(self, members: Numbers) -> Flags:
        return np.array(
            [self.outcomes[member] is Outcome.CONVERGED for member in members.tolist()], dtype=bool
        )

    def tell(self, members: Numbers, attempt: str) -> None:
        """Which phases some members will now go through, and why."""
        if self.attempts is not None:
            for member in members.tolist():
                self.attempts[member].append(attempt)

    def note(
        self, phase: str, members: Numbers, columns: Sequence[Any], multipliers: Array | None = None
    ) -> None:
        """One iteration of some members: objective, defect, increment, damping, rank, each (m,).

        multipliers (m, c): of further conditions; NaN where they are not held.
        """
        if self.history is None:
            return
        pulls = [()] * len(members) if multipliers is None else [tuple(own) for own in multipliers.tolist()]
        rows = zip(*(c.tolist() for c in columns), strict=True)
        for member, row, own in zip(members.tolist(), rows, pulls, strict=True):
            iteration = Iteration(*(phase, *row, own))
            self.history[member].append(iteration)
            if self.watch is not None:
                self.watch(iteration)


def linearised(
    comm: Any, problem: Problem, course: Course, members: Numbers
) -> tuple[Numbers, Problem, Unknowns, Chain]:
    """The chains of those members whose paths can be integrated; the others have come to their end."""
    part, z = problem.take(members), course.z.take(members)
    chain = part.linearise(comm, z)
    course.linearisations[members] += 1
    alive = chain.finite()
    if alive.all():
        return members, part, z, chain
    course.end(members[~alive], Outcome.NOT_INTEGRABLE)
    course.spread.forget(members[~alive])
    return members[alive], part.take(alive), z.take(alive), chain.take(alive)
