"""Flows of the papers that hpcfit reproduces, and their relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hpcfit.models.define import Example, Model, model

_LORENZ_1992 = {"x": 5.76540, "y": 10.50547, "z": 30.58941}


@model(
    states="x y z",
    parameters="sigma r b",
    examples=(
        Example(
            start=_LORENZ_1992,
            parameters={"sigma": 10.0, "r": 46.0, "b": 8 / 3},
            duration=4.0,
            spacing=0.1,
            source="Baake et al. 1992, eq. 16",
        ),
        Example(
            start={"x": -0.279, "y": 1.353, "z": 33.164},
            parameters={"sigma": 16.0, "r": 45.0, "b": 4.0},
            duration=6.0,
            spacing=0.03,
            source="Bradley et al. 1998, figure 3 (time grid ours)",
        ),
    ),
)
def lorenz(t: Any, u: Any, p: Any) -> Any:
    """Lorenz (1963): convection between two plates."""
    return p.sigma * (u.y - u.x), u.x * (p.r - u.z) - u.y, u.x * u.y - p.b * u.z


@model(
    states="x y z",
    parameters="a b c",
    examples=Example(
        start={"x": 1.13293, "y": -1.74953, "z": 0.02207},
        parameters={"a": 0.15, "b": 0.2, "c": 10.0},
        duration=40.0,
        spacing=0.2,
        source="Baake et al. 1992, eq. 17",
    ),
)
def rossler(t: Any, u: Any, p: Any) -> Any:
    """Rössler (1976): a folded band."""
    return -u.y - u.z, u.x + p.a * u.y, p.b + (u.x - p.c) * u.z


def _henon_heiles_energy(t: Any, u: Any, p: Any) -> Any:
    """Kallrath et al. 1993, eqs. 5.1 and 5.2."""
    potential = (p.a * u.x1**2 + p.b * u.x2**2 + 2 * u.x1**2 * u.x2 + 2 / 3 * p.c * u.x2**3) / 2
    return (u.x3**2 + u.x4**2) / 2 + potential


@model(
    states="x1 x2 x3 x4",
    parameters="a b c",
    observables={"energy": _henon_heiles_energy},
    invariant=_henon_heiles_energy,
    examples=Example(
        start={"x1": 0.0, "x2": 0.0, "x3": 0.3, "x4": -0.41},
        parameters={"a": 1.0, "b": 1.0, "c": -1.0},
        duration=20.0,
        spacing=0.2,
        source="Kallrath et al. 1993, eq. 5.5 and figure 3",
    ),
)
def henon_heiles(t: Any, u: Any, p: Any) -> Any:
    """Hénon and Heiles (1964): a star in the potential of a galaxy."""
    return u.x3, u.x4, -p.a * u.x1 - 2 * u.x1 * u.x2, -p.b * u.x2 - u.x1**2 - p.c * u.x2**2


_PAIRS = [(j, k) for j in (1, 2, 3) for k in range(j, 4)]
_QUADRATIC_PARAMETERS = [
    name
    for i in (1, 2, 3)
    for name in (*(f"a{i}_{j}{k}" for j, k in _PAIRS), *(f"b{i}_{j}" for j in (1, 2, 3)), f"c{i}")
]
_LORENZ_AS_QUADRATIC = {
    "b1_1": -10.0,
    "b1_2": 10.0,
    "b2_1": 46.0,
    "b2_2": -1.0,
    "a2_13": -1.0,
    "a3_12": 1.0,
    "b3_3": -8 / 3,
}


@model(
    states="y1 y2 y3",
    parameters=_QUADRATIC_PARAMETERS,
    examples=Example(
        start=dict(zip(("y1", "y2", "y3"), _LORENZ_1992.values(), strict=True)),
        parameters=dict.fromkeys(_QUADRATIC_PARAMETERS, 0.0) | _LORENZ_AS_QUADRATIC,
        duration=4.0,
        spacing=0.1,
        source="Baake et al. 1992, eq. 18, at the values of the Lorenz system",
    ),
)
def quadratic(t: Any, u: Any, p: Any) -> Any:
    """All quadratic systems in three dimensions: y_i' = y^T A_i y + b_i^T y + c_i, A_i upper triangular."""

    def side(i: int) -> Any:
        c = p[10 * (i - 1) : 10 * i]
        squares = sum(c[m] * u[j - 1] * u[k - 1] for m, (j, k) in enumerate(_PAIRS))
        return squares + sum(c[6 + j] * u[j] for j in range(3)) + c[9]

    return side(1), side(2), side(3)


def lorenz96(size: int) -> Model:
    """Lorenz (1996): x_i' = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + f on a circle of `size` points."""
    start = 8.0 + 0.5 * np.sin(2 * math.pi * np.arange(size) * 3 / size)
    start[0] += 1.0
    states = [f"x{i}" for i in range(1, size + 1)]

    @model(
        states=states,
        parameters="f",
        name="lorenz96",
        examples=Example(
            start=dict(zip(states, start.tolist(), strict=True)),
            parameters={"f": 8.0},
            duration=3.0,
            spacing=0.05,
            source="Lorenz 1996; start ours",
        ),
    )
    def circle(t: Any, u: Any, p: Any) -> Any:
        """Lorenz (1996): a circle of latitude, each point driven, damped and advected by its neighbours."""
        return (np.roll(u, -1) - np.roll(u, 2)) * np.roll(u, 1) - u + p.f

    return circle
