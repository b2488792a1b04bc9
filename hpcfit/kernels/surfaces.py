"""The surfaces of a model by their numbers in kernels (runtime/kinks.h), for a person."""

from __future__ import annotations

from dataclasses import dataclass

from hpcfit.kernels.expansion import Expansion
from hpcfit.kernels.series import without_sign
from hpcfit.models.define import Model


@dataclass(frozen=True)
class Surfaces:
    """Names of kinks, of slides along them, and of jumps at times, in this order."""

    kinks: tuple[str, ...]
    jumps: tuple[str, ...]  # that happen at the root of each kink; '' where there are none
    slides: tuple[str, ...]  # each twice: left to the positive side, and to the negative one
    times: tuple[str, ...]
    switching: int  # so many kinks, the first ones, change the equations

    def name(self, number: int) -> str:
        """Of any of them, as in 'the switch slip'."""
        return (*self.kinks, *self.slides, *self.times)[number]

    def passage(self, number: int, jumping: bool) -> str:
        """What happens when a path meets it; '' if that is nothing."""
        if number >= len(self.kinks):
            return self.name(number)
        if jumping:
            return self.jumps[number]
        return self.kinks[number] if number < self.switching else ""


def surfaces(model: Model) -> Surfaces:
    """The surfaces of a traced model."""
    made = Expansion(model)
    declared = {
        without_sign(symbol)[0].index: f"the switch {name}" for name, symbol in model.switches.items()
    }
    at_root: dict[int, list[str]] = {}
    for jump in model.jumps:
        if not jump.timed:
            at_root.setdefault(made.surface(jump.root[0])[0], []).append(jump.name)
    kinks, jumps = [], []
    for j, kink in enumerate(made.base.kinks):
        own = at_root.get(j, [])
        usual = f"the jump {' and '.join(own)}" if own else f"the kink of {model.text(kink)}"
        kinks.append(declared.get(kink.index, usual))
        jumps.append(f"jump {' and '.join(own)}" if own else "")
    slid = [kinks[made.base.surface(slide.kink)[0]] for slide in made.slides]
    return Surfaces(
        kinks=tuple(kinks),
        jumps=tuple(jumps),
        slides=tuple(f"the end of sliding along {name}" for name in slid for _ in range(2)),
        times=tuple(f"jump {jump.name}" for jump in model.jumps if jump.timed),
        switching=made.kinks_of_equations,
    )
