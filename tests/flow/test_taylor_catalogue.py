"""Compiled Taylor lanes: every smooth flow of the catalogue to the last bits that double precision allows.

Rounding, 1.1e-16 of a state, is amplified by the path. `growth` is the largest such factor between any two
outputs, computed by heyoka with 64-bit mantissas; errors are per state or tangent column, relative to its
maximum along the path. Worst cases found: states 1.7e-15 growth, tangents 1.1e-14 growth (both glycolytic).
"""

import importlib

import mpmath as mp
import numpy as np
import pytest

from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import NAMES, find
from hpcfit.models.evaluate import evaluate

pytest.importorskip("heyoka", reason="the independent integrator is not installed")
heyoka_long = importlib.import_module("tests.flow.heyoka_long")

SMOOTH = [find(name) for name in NAMES if find(name).kind == "flow" and find(name).smooth]
CASES = [(made, k) for made in SMOOTH for k in range(len(made.examples))]
CALM = 10.0  # growth below which the promise has no factor


def case_name(value):
    return value.name if hasattr(value, "name") else str(value)


@pytest.mark.parametrize(("made", "k"), CASES, ids=case_name)
def test_states_and_sensitivities_over_the_whole_example(made, k):
    """States to 1e-14 and tangents to 1e-12 while growth < 10; beyond: 3e-15 and 2e-14 times growth."""
    example = made.examples[k]
    times = example.duration * np.linspace(0.0, 1.0, 21) ** 3  # dense where growth is small
    start, parameters = list(example.start.values()), list(example.parameters.values())
    oracle = heyoka_long.Oracle(made, start, parameters, times)
    growths = oracle.growths()
    calm, growth = growths < CALM, growths[-1]
    assert calm.sum() >= 2
    parts = [(calm, 1e-14, 1e-12), (growths > 0, max(1e-14, 3e-15 * growth), max(1e-12, 2e-14 * growth))]
    for sensitivities in (True, False):
        lanes = propagate(made, times, start, parameters, sensitivities=sensitivities)
        assert lanes.failures == ()
        for part, for_states, for_tangents in parts:
            assert heyoka_long.relative(lanes.states[0][part], oracle.states[part]) <= for_states
            if sensitivities:
                assert heyoka_long.relative(lanes.by_start[0][part], oracle.by_start[part]) <= for_tangents
                by_parameters = lanes.by_parameters[0][part], oracle.by_parameters[part]
                assert heyoka_long.relative(*by_parameters) <= for_tangents


def test_henon_heiles_keeps_its_energy_for_1e4_time_units():
    """From (0, 0, 0.3, -0.41), chaotic: to 1e-13 at a thousand times."""
    made = find("henon_heiles")
    parameters = list(made.examples[0].parameters.values())
    times = np.linspace(0.0, 1e4, 1001)
    lanes = propagate(made, times, [0.0, 0.0, 0.3, -0.41], parameters)
    assert lanes.failures == ()
    energy = np.array(evaluate(made, [made.invariant], times, lanes.states[0].T, parameters)[0])
    assert np.abs(energy - energy[0]).max() <= 1e-13


def test_lorenz_against_mpmaths_own_integrator():
    """mpmath.odefun at 25 digits on the variational equations, written by hand: 1e-14 and 1e-13."""
    sigma, r, b = 10.0, 28.0, 8 / 3
    start, times = [1.0, 2.0, 20.0], [0.0, 0.4]

    def variational(t, z):
        x, y, w = z[:3]
        moved = [sigma * (y - x), x * (r - w) - y, x * y - b * w]
        for k in range(6):
            dx, dy, dw = z[3 + 3 * k : 6 + 3 * k]
            source = [(y - x, 0, 0), (0, x, 0), (0, 0, -w)][k - 3] if k >= 3 else (0, 0, 0)
            moved += [
                sigma * (dy - dx) + source[0],
                dx * (r - w) - x * dw - dy + source[1],
                dx * y + x * dy - b * dw + source[2],
            ]
        return moved

    with mp.workdps(20):
        unit = [float(i == j) for j in range(3) for i in range(3)]
        end = mp.odefun(variational, 0, [*start, *unit, *[0.0] * 9])(times[1])
        expected = np.array([float(value) for value in end])
    lanes = propagate(find("lorenz"), times, start, [sigma, r, b], sensitivities=True)
    tangents = expected[3:].reshape(6, 3).T
    assert lanes.states[0, 1] == pytest.approx(expected[:3], abs=1e-14 * np.abs(expected[:3]).max())
    assert np.abs(lanes.by_start[0, 1] - tangents[:, :3]).max() <= 1e-13 * np.abs(tangents[:, :3]).max()
    assert np.abs(lanes.by_parameters[0, 1] - tangents[:, 3:]).max() <= 1e-13 * np.abs(tangents[:, 3:]).max()
