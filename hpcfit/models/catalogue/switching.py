"""Motions with impacts, dry friction and doses: jumps of the state and switches of its equations."""

from __future__ import annotations

from typing import Any

from hpcfit.models.define import Example, model
from hpcfit.models.jumps import Jump


@model(
    states="height speed",
    parameters="g restitution",
    jumps={"bounce": lambda t, u, p: Jump(falls=u.height, to={"speed": -p.restitution * u.speed})},
    units={"height": "m", "speed": "m/s", "g": "m/s^2", "t": "s"},
    examples=Example(
        start={"height": 1.0, "speed": 0.0},
        parameters={"g": 9.81, "restitution": 0.9},
        duration=4.0,
        spacing=0.05,
        source="textbook; numbers ours",
    ),
)
def bouncing_ball(t: Any, u: Any, p: Any) -> Any:
    """Ball that bounces on the ground and comes to rest after endlessly many bounces in finite time."""
    return u.speed, -p.g


@model(
    states="x v",
    parameters="stiffness grip weakening belt",
    switches={"slip": lambda t, u, p: u.v - p.belt},
    examples=Example(
        start={"x": 0.0, "v": 0.0},
        parameters={"stiffness": 0.8, "grip": 1.0, "weakening": 1.5, "belt": 0.3},
        duration=30.0,
        spacing=0.25,
        source="textbook (block on a belt, friction that falls with the speed); numbers ours",
    ),
)
def stick_slip(t: Any, u: Any, p: Any, s: Any) -> Any:
    """Block on a moving belt, held by a spring: it sticks until the spring wins, slips, and sticks again."""
    return u.v, -p.stiffness * u.x - p.grip * s.slip / (1 + p.weakening * abs(u.v - p.belt))


@model(
    states="gut blood",
    parameters="absorption elimination dose lag interval",
    jumps={"intake": lambda t, u, p: Jump(at=p.lag, every=p.interval, to={"gut": u.gut + p.dose})},
    units={"gut": "mg", "blood": "mg", "dose": "mg", "lag": "h", "interval": "h", "t": "h"},
    examples=Example(
        start={"gut": 0.0, "blood": 0.0},
        parameters={"absorption": 0.9, "elimination": 0.15, "dose": 100.0, "lag": 0.4, "interval": 8.0},
        duration=48.0,
        spacing=0.5,
        source="textbook (one compartment, first-order absorption); numbers ours",
    ),
)
def dosing(t: Any, u: Any, p: Any) -> Any:
    """Drug that is taken at regular times, absorbed from the gut and eliminated from the blood."""
    absorbed = p.absorption * u.gut
    return -absorbed, absorbed - p.elimination * u.blood
