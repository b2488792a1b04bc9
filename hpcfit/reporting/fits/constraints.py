"""Constraints of a fit: which hold, and how hard the data pull at them."""

from __future__ import annotations

from hpcfit.records import Constraint, FitResult
from hpcfit.reporting.layout import number, shortened, signed

HEADER = ("constraint", "", "left", "multiplier", "pull")
LONGEST = 40  # characters


def rows(fit: FitResult) -> list[tuple[str, ...]]:
    """One row a constraint; left: left - right of an equality, the distance to the bound of an inequality."""
    return [
        (
            shortened(each.text, LONGEST),
            word(each),
            f"{each.value:.2e}",
            number(each.multiplier, 5) if each.active else "",
            signed(each.pull) if each.pull == each.pull else "",
        )
        for each in fit.constraints
    ]


def word(constraint: Constraint) -> str:
    """How it stands."""
    if constraint.exact:
        return "exact" if constraint.active else "not met"
    return "active" if constraint.active else "free" if constraint.value >= 0.0 else "not met"


def fact(fit: FitResult) -> str:
    """How many there are, and what is at a bound."""
    exact = sum(each.exact for each in fit.constraints)
    active = sum(each.active and not each.exact for each in fit.constraints)
    held = [f"{name} ({text})" for name, text in fit.at_bounds.items()]
    bounds = f"; held: {', '.join(held)}" if held else ""
    return f"{exact} exact, {active} of {len(fit.constraints) - exact} inequalities active{bounds}"
