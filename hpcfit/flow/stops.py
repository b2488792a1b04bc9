"""Why a lane could not go on at a switch or jump, in words, with its place."""

from __future__ import annotations

from hpcfit.flow.progress import Progress
from hpcfit.kernels.surfaces import surfaces
from hpcfit.models.define import Model
from hpcfit.records import Outcome

STICKING, ZENO, GRAZING, UNDECIDED, RHYTHM = 5, 7, 8, 9, 10  # as in runtime/surfaces.h
AT_SURFACES = (STICKING, ZENO, GRAZING, UNDECIDED, RHYTHM)
OUTCOME_BITS = 8  # above them is the number of the surface, from 1


def outcome_of(code: int) -> int:
    """The outcome alone."""
    return code % (1 << OUTCOME_BITS)


def fail_at_surface(progress: Progress, i: int, code: int, *, frames: bool = False) -> None:
    """Say where and why lane i stopped; `frames`: it carried a tangent in every direction."""
    model, outcome = progress.model, outcome_of(code)
    name = surfaces(model).name((code >> OUTCOME_BITS) - 1)
    place = ", ".join(f"{k} = {x:.6g}" for k, x in zip(model.states, progress.state[:, i], strict=True))
    if outcome == RHYTHM:
        progress.fail(i, Outcome.BAD_INPUT, f"{name}: every must be positive, a time between jumps")
    elif outcome == ZENO:
        cause = f"{name} is met again and again within rounding of this time, at {place}"
        progress.fail(i, Outcome.ZENO, f"{cause}; end before it")
    elif outcome == GRAZING:
        cause = f"{name} is met at almost no speed, at {place}, and the path has no derivatives there"
        progress.fail(i, Outcome.GRAZING, f"{cause}; leave out the sensitivities, or begin elsewhere")
    elif outcome == UNDECIDED:
        cause = f"{name} stays zero, at {place}, and its sides have different equations"
        progress.fail(i, Outcome.UNDECIDED, f"{cause}; begin beside it, or change its function")
    elif frames and _slides(model):
        cause = f"the path slides along {name}, at {place}, which forgets a direction"
        progress.fail(
            i, Outcome.STICKING, f"{cause}: one exponent is minus infinity; ask for fewer exponents"
        )
    else:
        progress.fail(i, Outcome.STICKING, f"both sides of {name} push the path back to it, at {place}")


def _slides(model: Model) -> bool:
    return bool(surfaces(model).slides)
