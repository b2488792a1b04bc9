"""Known orbits of the catalogue: multipliers, invariants, and a circuit with kinks solved piece by piece."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from hpcfit.models.catalogue import NAMES, find
from hpcfit.models.evaluate import evaluate
from tests.flow.extrapolation_lanes import propagate

DRIVEN = find("pendulum_driven")
PARAMETERS = list(DRIVEN.examples[0].parameters.values())
PERIOD = 2 * np.pi / DRIVEN.examples[0].parameters["omega"]


def one_period(start):
    lanes = propagate(DRIVEN, [0.0, PERIOD], start, PARAMETERS, sensitivities=True)
    assert lanes.failures == ()
    return lanes.states[0, 1], lanes.by_start[0, 1]


def multipliers(matrix):
    return sorted(np.linalg.eigvals(matrix).real, key=abs, reverse=True)


@pytest.mark.parametrize(("phi", "expected"), [(0.0, (-2.005, -0.480)), (np.pi, (37.47, 0.0256))])
def test_multipliers_of_the_driven_pendulum_at_rest(phi, expected):
    """Hanging, and standing on its head: within one unit of the last digit known."""
    end, matrix = one_period([phi, 0.0])
    assert end == pytest.approx([phi, 0.0], abs=1e-12)
    first, second = multipliers(matrix)
    assert first == pytest.approx(expected[0], abs=1e-3 if phi == 0.0 else 1e-2)
    assert second == pytest.approx(expected[1], abs=1e-3 if phi == 0.0 else 1e-4)
    values = DRIVEN.examples[0].parameters
    damping = values["k2"] / (values["m"] * values["l"] ** 2)
    assert np.linalg.det(matrix) == pytest.approx(np.exp(-damping * PERIOD), rel=1e-9)  # Liouville


def test_multipliers_of_the_rotating_orbit():
    """Through (2.967, 6.407) at phase 0, once around per period; refined by Newton's method."""
    start = np.array([2.967, 6.407])
    for _ in range(6):
        end, matrix = one_period(start)
        start = start - np.linalg.solve(matrix - np.eye(2), end - [2 * np.pi, 0.0] - start)
    end, matrix = one_period(start)
    assert end - [2 * np.pi, 0.0] == pytest.approx(start, abs=1e-11)
    assert start == pytest.approx([2.967, 6.407], abs=0.6e-3)
    assert multipliers(matrix) == pytest.approx([-1.709, -0.427], abs=0.6e-3)


@pytest.mark.parametrize("name", [name for name in NAMES if find(name).invariant is not None])
def test_invariants_are_kept_over_the_example(name):
    """To 1e-10 of their scale; for a chaotic orbit the energy is no victim of the growth of errors."""
    made = find(name)
    example = made.examples[0]
    parameters = list(example.parameters.values())
    times = np.linspace(0, example.duration, 21)
    lanes = propagate(made, times, list(example.start.values()), parameters)
    values = np.array(evaluate(made, [made.invariant], times, lanes.states[0].T, parameters)[0])
    assert np.abs(values - values[0]).max() <= 1e-10 * max(1.0, abs(values[0]))


def chua_pieces(b1, b2, b3, b4, b5):
    """Generators of (y, 1)' = G (y, 1) for y1 < -1, |y1| <= 1, y1 > 1."""
    pieces = []
    for side in (-1, 0, 1):
        generator = np.zeros((4, 4))
        generator[:3, :3] = [[-b1 * (b5 if side else b4), b1, 0], [1, -1, 1], [0, -b2, -b3]]
        generator[0, 3] = -b1 * (b4 - b5) * side
        pieces.append(generator)
    return pieces


def side_of(y1):
    return int(np.sign(y1)) * int(abs(y1) > 1)


def piecewise(pieces, start, end, step=0.01):
    """State and tangents at the end by exponentials between kinks, and how many kinks there were."""
    y, tangent, t, kinks = np.append(start, 1.0), np.eye(3), 0.0, 0
    side = side_of(start[0])
    while t < end - 1e-12:
        generator = pieces[side + 1]
        h = min(step, end - t)
        new = expm(generator * h) @ y
        to = side_of(new[0])
        if to != side:
            wall = np.sign(new[0] + y[0])
            h = brentq(lambda s, g=generator, y=y, w=wall: (expm(g * s) @ y)[0] - w, 0.0, h, xtol=1e-15)
            new = expm(generator * h) @ y
            new[0] = wall * (1.0 + 1e-15 * (1 if to else -1))  # on the far side of the wall
            side, kinks = to, kinks + 1
        tangent = expm(generator[:3, :3] * h) @ tangent
        y, t = new, t + h
    return y[:3], tangent, kinks


def test_chuas_circuit_against_the_exponentials_of_its_pieces():
    """After several kinks: relative to the growth of the tangents, states to 1e-10 and tangents to 1e-8."""
    made = find("chua")
    example = made.examples[0]
    start, parameters = np.array(list(example.start.values())), list(example.parameters.values())
    expected, tangent, kinks = piecewise(chua_pieces(*parameters), start, 8.0)
    lanes = propagate(made, [0.0, 8.0], start, parameters, sensitivities=True)
    growth = np.abs(tangent).max()
    assert kinks >= 3
    assert np.abs(lanes.states[0, 1] - expected).max() <= 1e-10 * growth * np.abs(expected).max()
    assert np.abs(lanes.by_start[0, 1] - tangent).max() <= 1e-8 * growth**2
