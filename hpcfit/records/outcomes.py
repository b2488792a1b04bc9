"""How computations end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How a computation ended: the value is what a person reads."""

    DONE = "done"
    NOT_FINITE = "the right-hand side is not finite"
    BLOW_UP = "the step size fell below its floor: the solution blows up or is not smooth"
    STEP_BUDGET = "the step budget is spent"
    STICKING = "the path sticks to a kink"
    ZENO = "switches or jumps follow each other without end"
    GRAZING = "the path touches a switch without crossing it"
    UNDECIDED = "a switch is zero all along the path"
    BAD_INPUT = "start, parameters or times are not finite"
    CONVERGED = "converged"
    STALLED = "no descent at the smallest step"
    UNFINISHED = "the iteration budget is spent"
    RANK_DEFICIENT = "the data do not determine all unknowns; this is the relaxed solution"
    CONTRADICTORY = "the constraints cannot all be met; this is the nearest to it that was found"
    NOT_INTEGRABLE = "the path cannot be integrated"
    NOT_PRECISE = "the duration is over before all errors are as small as asked"


@dataclass(frozen=True)
class Failure:
    """Why and when one lane of a propagation stopped."""

    lane: int
    time: float
    outcome: Outcome
    cause: str

    def __str__(self) -> str:
        return f"lane {self.lane} stopped at t = {self.time:.17g}: {self.outcome.value} ({self.cause})"
