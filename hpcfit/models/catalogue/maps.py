"""Discrete maps: the function gives the next state; time counts iterations."""

from __future__ import annotations

from typing import Any

from hpcfit.math import cos, pi
from hpcfit.models.define import Example, model


@model(
    states="x y",
    parameters="a b",
    kind="map",
    examples=Example(
        start={"x": 0.1, "y": 0.1},
        parameters={"a": 1.4, "b": 0.3},
        duration=20,
        spacing=1,
        source="Hénon 1976; start ours",
    ),
)
def henon_map(t: Any, u: Any, p: Any) -> Any:
    """Hénon (1976): the plane stretched and folded."""
    return 1 - p.a * u.x**2 + u.y, p.b * u.x


_GOLDEN_START = (cos(2 * pi * 0.1), cos(2 * pi * 0.237), cos(2 * pi * 0.337))  # (23): angles add up, so I = 0


@model(
    states="x0 x1 x2",
    parameters="a b c",
    kind="map",
    invariant=lambda t, u, p: (
        u.x0**2
        + u.x1**2
        + u.x2**2
        - p.a * (u.x0 + u.x1 + u.x2)
        - p.b * (u.x0 * u.x1 + u.x0 * u.x2 + u.x1 * u.x2)
        - p.c * u.x0 * u.x1 * u.x2
    ),
    examples=Example(
        start=dict(zip(("x0", "x1", "x2"), map(float, _GOLDEN_START), strict=True)),
        parameters={"a": 0.0, "b": 0.0, "c": 2.0},
        duration=20,
        spacing=1,
        source="Baake et al. 1993, eqs. 24 and 25; angles of the start ours",
    ),
)
def fibonacci_trace(t: Any, u: Any, p: Any) -> Any:
    """Fibonacci trace map x_{n+1} = a + b (x_n + x_{n-1}) + c x_n x_{n-1} - x_{n-2}, states oldest first."""
    return u.x1, u.x2, p.a + p.b * (u.x2 + u.x1) + p.c * u.x2 * u.x1 - u.x0
