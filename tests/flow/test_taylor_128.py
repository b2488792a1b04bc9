"""128 bits from the same source: what doubles round away, and derivatives checked by differences."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from hpcfit import model
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.records import Lanes


@model(states="x v", parameters="w")
def oscillator(t, u, p):
    return u.v, -(p.w**2) * u.x


def exact(high: np.ndarray, low: np.ndarray) -> mpmath.mpf:
    return mpmath.mpf(float(high)) + mpmath.mpf(float(low))


def test_a_cosine_to_thirty_digits() -> None:
    lanes = propagate(oscillator, [0.0, 1.0, 30.0], [1.0, 0.0], [0.75], method="taylor128")
    assert lanes.low is not None
    with mpmath.workdps(50):
        for k, t in enumerate((0, 1, 30)):
            value = exact(lanes.states[0, k, 0], lanes.low.states[0, k, 0])
            assert abs(value - mpmath.cos(mpmath.mpf("0.75") * t)) < mpmath.mpf(10) ** -30


@pytest.mark.parametrize("name", ["lorenz", "henon_heiles", "double_pendulum", "quadratic"])
def test_doubles_are_the_rounded_128_bit_path_times_the_growth(name: str) -> None:
    flow = find(name)
    example = flow.examples[0]
    times = np.linspace(0.0, example.duration, 9)
    arguments = (flow, times, list(example.start.values()), list(example.parameters.values()))
    wide = propagate(*arguments, sensitivities=True, method="taylor128")
    plain = propagate(*arguments, sensitivities=True)
    growth = np.abs(wide.by_start).max()
    assert np.abs(wide.states - plain.states).max() < 1e-15 * growth * np.abs(wide.states).max()
    assert np.abs(wide.by_start - plain.by_start).max() < 1e-14 * growth**2


def difference(upper: Lanes, lower: Lanes) -> np.ndarray:
    assert upper.low is not None
    assert lower.low is not None
    return (upper.states[0] - lower.states[0]) + (upper.low.states[0] - lower.low.states[0])


def test_tangents_across_coulomb_friction_against_128_bit_differences() -> None:
    pendulum = find("pendulum_driven")
    values = np.array(list((dict(pendulum.examples[0].parameters) | {"k1": 6.88e-4}).values()))
    unknowns = np.concatenate([[2.0, 1.0], values])
    times = np.linspace(0.0, 8.0, 8)  # three turns
    lanes = propagate(pendulum, times, unknowns[:2], unknowns[2:], sensitivities=True)
    assert lanes.by_start is not None
    assert lanes.by_parameters is not None
    rates = propagate(pendulum, np.linspace(0.0, 8.0, 2000), unknowns[:2], unknowns[2:]).states[0, :, 1]
    assert np.count_nonzero(np.diff(np.sign(rates))) == 3
    tangents = np.concatenate([lanes.by_start[0], lanes.by_parameters[0]], axis=2)
    for j in range(len(unknowns)):
        h = 2.0**-40 * 2.0 ** np.round(np.log2(max(abs(unknowns[j]), 1e-4)))
        sides = [unknowns + s * h * (np.arange(len(unknowns)) == j) for s in (1, -1)]
        upper, lower = (propagate(pendulum, times, z[:2], z[2:], method="taylor128") for z in sides)
        slope = difference(upper, lower) / (sides[0][j] - sides[1][j])
        assert np.abs(slope - tangents[:, :, j]).max() < 1e-9 * np.abs(slope).max(), j
