"""The systems of figure 3 of Bradley, O'Gallagher and Rogers (1998); the tenth, Lorenz, is in classics.

The figure prints no time grids: durations and spacings are ours. Other inferred things are marked.
"""

from __future__ import annotations

from typing import Any

from hpcfit.math import cos, sin
from hpcfit.models.define import Example, model


def _example(start: str, parameters: str, spacing: float, count: int, note: str = "") -> Example:
    """An example from 'name=value' lists, with the time grid of `count` samples."""

    def values(pairs: str) -> dict[str, float]:
        return {name: float(value) for name, value in (pair.split("=") for pair in pairs.split())}

    source = "Bradley et al. 1998, figure 3" + (f"; {note}" if note else "")
    return Example(values(start), values(parameters), spacing * count, spacing, source)


@model(
    states="y1 y2",
    parameters="b1 b2",
    examples=_example("y1=0.7 y2=0.0", "b1=1.0 b2=0.1", 0.15, 200),
)
def pendulum(t: Any, u: Any, p: Any) -> Any:
    """Damped pendulum."""
    return u.y2, -p.b1 * sin(u.y1) - p.b2 * u.y2


@model(
    states="y1 y2",
    parameters="b1 b2 b3 b4 b5",
    examples=_example(
        "y1=0.1 y2=0.1",
        "b1=1.0 b2=2.5 b3=98.0 b4=80.0 b5=4.9",
        0.05,
        200,
        "b5 inferred; only the product b1 b4 is identifiable",
    ),
)
def driven_pendulum(t: Any, u: Any, p: Any) -> Any:
    """Pendulum with a driving torque."""
    return u.y2, p.b1 * p.b4 * cos(p.b5 * t) - p.b2 * u.y2 - p.b3 * sin(u.y1)


@model(
    states="y1 y2",
    parameters="b1 b2 b3 b4",
    examples=_example(
        "y1=-0.09317 y2=0.2897",
        "b1=0.9091 b2=0.1 b3=0.5 b4=5.4978",
        0.3,
        200,
        "the phase t + b4 inferred for the printed t/b4",
    ),
)
def circular_pendulum(t: Any, u: Any, p: Any) -> Any:
    """Pendulum whose pivot moves on a circle."""
    return u.y2, -p.b1 * (p.b2 * u.y2 + p.b1 * sin(u.y1)) - p.b3 * sin(u.y1 - t - p.b4)


@model(
    states="y1 y2",
    parameters="b1 b2 b3 b4 b5",
    examples=_example("y1=1.2 y2=0.8", "b1=1.0 b2=0.999 b3=1.0 b4=0.21 b5=1.69", 0.2, 250),
)
def glycolytic(t: Any, u: Any, p: Any) -> Any:
    """Glycolytic oscillator with periodic supply."""
    reaction = p.b1 * u.y1 * u.y2**2
    return p.b2 + 2 * p.b4 * cos(p.b5 * t) - reaction, reaction - p.b3 * u.y2


@model(
    states="y1 y2",
    parameters="b1 b2 b3 b4 b5",
    examples=_example("y1=0.2 y2=1.1", "b1=0.5 b2=5.0 b3=3.8 b4=2.08234 b5=1.5", 0.2, 200),
)
def predator_prey(t: Any, u: Any, p: Any) -> Any:
    """Predator and prey with seasonal harvest."""
    prey = p.b2 * u.y1 * (1 - u.y1 - u.y2 / (u.y1 + p.b1)) - p.b4 * u.y1 * (sin(p.b5 * t) + 1)
    return prey, u.y2 * (u.y1 * (p.b3 + 1) / (u.y1 + p.b1) - 1)


@model(
    states="y1 y2 y3",
    parameters="b1 b2 b3 b4 b5",
    examples=_example(
        "y1=-0.676 y2=0.369 y3=0.792", "b1=9.0 b2=14.286 b3=0.0 b4=-0.142857 b5=0.285714", 0.15, 200
    ),
)
def chua(t: Any, u: Any, p: Any) -> Any:
    """Chua's circuit: a resistor with two kinks, at y1 = -1 and y1 = 1."""
    resistor = p.b5 * u.y1 + (p.b4 - p.b5) / 2 * (abs(1 + u.y1) - abs(u.y1 - 1))
    return p.b1 * (u.y2 - resistor), u.y1 - u.y2 + u.y3, -(p.b2 * u.y2 + p.b3 * u.y3)


@model(
    states="y1 y2 y3",
    parameters="b1 b2 b3 b4 b5",
    examples=_example("y1=0.0 y2=0.0 y3=0.0", "b1=2.4 b2=0.43 b3=-0.65 b4=-2.43 b5=0.15", 0.2, 200),
)
def pentagonal(t: Any, u: Any, p: Any) -> Any:
    """Pickover's attractor as a flow."""
    return (
        sin(p.b1 * u.y2) - u.y3 * cos(p.b2 * u.y1),
        u.y3 * sin(p.b3 * u.y1) - cos(p.b4 * u.y2),
        p.b5 * sin(u.y1),
    )


@model(
    states="y1 y2 y3 y4",
    parameters="b1 b2 b3",
    invariant=lambda t, u, p: (
        (u.y2**2 + u.y4**2 + p.b1 * u.y1**2 + p.b2 * (u.y1 - u.y3) ** 2 + p.b3 * u.y3**2) / 2
    ),
    examples=_example("y1=0.1 y2=0.1 y3=0.1 y4=0.1", "b1=0.1 b2=0.2 b3=0.3", 0.3, 200),
)
def springs_masses(t: Any, u: Any, p: Any) -> Any:
    """Two masses and three springs: linear."""
    coupling = p.b2 * (u.y1 - u.y3)
    return u.y2, -p.b1 * u.y1 - coupling, u.y4, coupling - p.b3 * u.y3


@model(
    states="y1 y2 y3 y4",
    parameters="b1 b2 b3",
    invariant=lambda t, u, p: (
        (u.y2**2 + (p.b1 + u.y1) ** 2 * u.y4**2 + p.b2 * u.y1**2) / 2 - p.b3 * (p.b1 + u.y1) * cos(u.y3)
    ),
    examples=_example("y1=0.1 y2=0.1 y3=0.1 y4=0.1", "b1=0.1 b2=2.0 b3=9.8", 0.05, 300),
)
def spring_pendulum(t: Any, u: Any, p: Any) -> Any:
    """Mass on a spring that swings: y1 is the stretch, y3 the angle."""
    length = p.b1 + u.y1
    return (
        u.y2,
        u.y4**2 * length - p.b2 * u.y1 + p.b3 * cos(u.y3),
        u.y4,
        -(p.b3 * sin(u.y3) + 2 * u.y2 * u.y4) / length,
    )
