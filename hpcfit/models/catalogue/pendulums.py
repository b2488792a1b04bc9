"""The pendulums of Baake et al. (1993) and of van de Wouw, Verbeek and van Campen."""

from __future__ import annotations

from typing import Any

from hpcfit.math import cos, pi, sign, sin
from hpcfit.models.define import Example, model


def _double_pendulum_energy(t: Any, u: Any, p: Any) -> Any:
    """Baake et al. 1993, eq. 20, in units of m_2 l_1 l_2."""
    kinetic = (
        p.mu * p.lam * u.rate1**2 / 2 + u.rate2**2 / (2 * p.lam) + u.rate1 * u.rate2 * cos(u.phi1 - u.phi2)
    )
    return kinetic - p.omega1**2 * (p.mu * p.lam * cos(u.phi1) + cos(u.phi2))


@model(
    states="phi1 phi2 rate1 rate2",
    parameters="omega1 lam mu",
    observables={
        "energy": _double_pendulum_energy,
        "tip_x": lambda t, u, p: sin(u.phi1) + sin(u.phi2) / p.lam,
        "tip_y": lambda t, u, p: -cos(u.phi1) - cos(u.phi2) / p.lam,
    },
    invariant=_double_pendulum_energy,
    units={
        **dict.fromkeys(("phi1", "phi2"), "rad"),
        **dict.fromkeys(("rate1", "rate2", "omega1"), "rad/s"),
        **dict.fromkeys(("tip_x", "tip_y"), "l1"),
        "t": "s",
    },
    examples=Example(
        start={"phi1": pi / 2, "phi2": pi / 2, "rate1": 9.81**0.5, "rate2": 9.81**0.5},
        parameters={"omega1": 9.81**0.5, "lam": 1.0, "mu": 2.0},
        duration=5.0,
        spacing=0.25,
        source="Baake et al. 1993, section 4",
    ),
)
def double_pendulum(t: Any, u: Any, p: Any) -> Any:
    """Planar double pendulum, angles from below: omega1 = sqrt(g/l1), lam = l1/l2, mu = 1 + m1/m2."""
    sine, cosine = sin(u.phi1 - u.phi2), cos(u.phi1 - u.phi2)
    first = -sine * u.rate2**2 - p.mu * p.lam * p.omega1**2 * sin(u.phi1)
    second = sine * u.rate1**2 - p.omega1**2 * sin(u.phi2)
    determinant = p.mu - cosine**2
    acceleration1 = (first / p.lam - second * cosine) / determinant  # (18)
    acceleration2 = (p.mu * p.lam * second - first * cosine) / determinant  # (19)
    return u.rate1, u.rate2, acceleration1, acceleration2


def _driven(k1: float, m: float, l: float, source: str) -> Example:  # noqa: E741
    """One of the two set-ups of the report."""
    common = {"amplitude": 0.131, "eps": 0.173, "omega": 9.09, "g": 9.81}
    return Example(
        start={"phi": 2.0, "rate": 1.0},
        parameters={"k1": k1, "k2": 4.85e-4, "k3": 1.90e-4, "m": m, "l": l, **common},
        duration=5 * 2 * pi / 9.09,
        spacing=2 * pi / 9.09 / 20,
        source=f"{source}; exponents of k2 and k3 restored; start ours",
    )


@model(
    states="phi rate",
    parameters="k1 k2 k3 m l amplitude eps omega g",
    units={
        "phi": "rad",
        "rate": "rad/s",
        "k1": "N m",
        "k2": "N m s",
        "k3": "N m s^2",
        "m": "kg",
        "l": "m",
        "amplitude": "m",
        "omega": "rad/s",
        "g": "m/s^2",
        "t": "s",
    },
    examples=(
        _driven(k1=0.0, m=0.0858, l=0.317, source="eqs. 3.2 and 3.3 of the pendulum report"),
        _driven(k1=6.88e-4, m=0.0854, l=0.318, source="eqs. 3.2 and 3.5 of the pendulum report"),
    ),
)
def pendulum_driven(t: Any, u: Any, p: Any) -> Any:
    """Pendulum whose pivot is moved up and down by a crank, with Coulomb, viscous and air friction."""
    inertia = p.m * p.l**2
    friction = p.k1 * sign(u.rate) + p.k2 * u.rate + p.k3 * u.rate * abs(u.rate)
    phase = p.omega * t
    crank = p.eps * (cos(2 * phase) + p.eps**2 * sin(phase) ** 4) / (1 - p.eps**2 * sin(phase) ** 2) ** 1.5
    lift = p.amplitude * p.omega**2 / p.l * (cos(phase) + crank)
    return u.rate, -friction / inertia - (p.g / p.l - lift) * sin(u.phi)
