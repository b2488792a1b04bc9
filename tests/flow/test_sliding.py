"""Sticking and sliding: dynamics along a kink, its begin and its end, and what cannot be decided."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Outcome
from tests.flow.differences import quad_derivatives


@model(states="x v", parameters="mu k belt", switches={"slip": lambda t, u, p: u.v - p.belt})
def stick_slip(t, u, p, s):
    """A block on a belt, held by a spring: friction holds it up to mu, and is half of it when it slips."""
    return u.v, -p.k * u.x - p.mu * s.slip / (1 + abs(u.v - p.belt))


def test_stick_slip_against_128_bit_differences():
    """Twelve phases of sticking and slipping: derivatives by start and parameters to 1e-10."""
    times, start, parameters = np.linspace(0.0, 60.0, 31), np.array([0.0, 0.0]), np.array([1.0, 0.8, 0.3])
    lanes = propagate(stick_slip, times, start, parameters, sensitivities=True, switchings=True)
    assert lanes.failures == ()
    assert len(lanes.switchings.times) > 10
    stuck = lanes.states[0, :, 1] == 0.3
    assert stuck.sum() > 3
    assert lanes.by_start[0, stuck, 1] == pytest.approx(0.0, abs=1e-14)
    assert np.abs(lanes.by_parameters[0, stuck, 1] - [0.0, 0.0, 1.0]).max() <= 1e-14
    ours = np.concatenate([lanes.by_start[0], lanes.by_parameters[0]], axis=2)
    exact = quad_derivatives(stick_slip, times, start, parameters)
    scale = np.abs(exact).max(axis=(0, 1))
    assert (np.abs(ours - exact).max(axis=(0, 1)) <= 1e-10 * np.maximum(scale, 1.0)).all()


def test_sticking_begins_and_ends_when_it_should():
    """A block on a slope that tips: v' = g sin(w t) - mu sign(v) holds until g sin(w t) = mu, then slips."""
    made = model(states="x v", parameters="g w mu", name="tipping")(
        lambda t, u, p: (u.v, p.g * m.sin(p.w * t) - p.mu * m.sign(u.v))
    )
    g, w, mu = 2.0, 0.5, 1.2
    lanes = propagate(made, [0.0, 1.0, 1.5], [0.0, 0.0], [g, w, mu], sensitivities=True, switchings=True)
    assert lanes.failures == ()
    with mp.workdps(30):

        def place(g, w, mu):
            begin, end = mp.asin(mu / g) / w, mp.mpf(1.5)
            s = end - begin
            fall = (mp.cos(w * begin) * s - (mp.sin(w * end) - mp.sin(w * begin)) / w) / w
            return g * fall - mu * s * s / 2

        z = (mp.mpf(g), mp.mpf(w), mp.mpf(mu))
        assert lanes.switchings.times == pytest.approx([float(mp.asin(z[2] / z[0]) / z[1])], abs=1e-14)
        slopes = [float(mp.diff(place, z, tuple(int(i == k) for i in range(3)))) for k in range(3)]
        assert lanes.states[0, 2, 0] == pytest.approx(float(place(*z)), rel=1e-12)
    assert (lanes.states[0, 1] == 0.0).all()
    assert lanes.by_parameters[0, 2, 0] == pytest.approx(slopes, rel=1e-11)


def test_the_combination_of_both_sides_carries_the_rest_along():
    """On x = 0 between slopes (-2, 3) and (1, 0): y' = 1 (Filippov), until the tide lifts x at t = 2."""
    made = model(states="x y", parameters="a", name="channel")(
        lambda t, u, p: (
            m.where(u.x > 0, -2.0 + m.where(t > 2, 3 * p.a, 0.0), 1.0),
            m.where(u.x > 0, 3.0, 0.0),
        )
    )
    lanes = propagate(made, [0.0, 1.0, 3.0], [-0.5, 0.0], [1.0], sensitivities=True)
    assert lanes.failures == ()
    assert lanes.states[0, 1:] == pytest.approx(np.array([[0.0, 0.5], [1.0, 4.5]]), abs=1e-14)
    assert lanes.by_start[0, 1:, :, 0] == pytest.approx(np.array([[0.0, 1.0], [0.0, 1.0]]), abs=1e-13)


def test_two_blocks_stick_and_slip_each_for_itself():
    """Joined by a spring: both stick, one slips; and 128-bit differences agree to 1e-10."""
    made = model(states="x v y w", parameters="k mu belt", name="blocks")(
        lambda t, u, p: (
            u.v,
            -u.x - p.k * (u.x - u.y) - p.mu * m.sign(u.v - p.belt) / (1 + abs(u.v - p.belt)),
            u.w,
            -u.y - p.k * (u.y - u.x) - 1.3 * p.mu * m.sign(u.w - p.belt) / (1 + abs(u.w - p.belt)),
        )
    )
    times, start, parameters = (
        np.linspace(0.0, 30.0, 121),
        np.array([0.1, 0, -0.2, 0.1]),
        np.array([0.7, 1.0, 0.2]),
    )
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    stuck = lanes.states[0][:, [1, 3]] == 0.2
    assert {tuple(row) for row in stuck.tolist()} == {
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    }
    ours = np.concatenate([lanes.by_start[0], lanes.by_parameters[0]], axis=2)
    exact = quad_derivatives(made, times, start, parameters)
    scale = np.abs(exact).max(axis=(0, 1))
    assert (np.abs(ours - exact).max(axis=(0, 1)) <= 1e-10 * np.maximum(scale, 1.0)).all()


def test_the_driven_pendulum_with_coulomb_friction_against_128_bit_differences():
    """k1 so large that the pendulum stops at its turns: all nine parameters to 1e-9."""
    made = find("pendulum_driven")
    example = made.examples[0]
    start, parameters = np.array([0.4, 1.0]), np.array(list(example.parameters.values()))
    parameters[0] = 0.1
    times = np.linspace(0.0, 3.0, 61)
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    assert (np.abs(lanes.states[0, :, 1]) < 1e-15).any()
    ours = np.concatenate([lanes.by_start[0], lanes.by_parameters[0]], axis=2)
    exact = quad_derivatives(made, times, start, parameters)
    scale = np.abs(exact).max(axis=(0, 1))
    assert (np.abs(ours - exact).max(axis=(0, 1)) <= 1e-9 * scale).all()


def test_ten_thousand_switches_without_loss():
    """x'' = -a sign(x) swings in parabolas: 10^4 of them, to the rounding of the time."""
    made = model(states="x v", parameters="a", name="relay")(lambda t, u, p: (u.v, -p.a * m.sign(u.x)))
    v, a, n, s = 1.0, 2.0, 10_000, 0.25
    end = 2 * n * v / a + s
    lanes = propagate(made, [0.0, end], [0.0, v], [a], sensitivities=True, switchings=True)
    assert lanes.failures == ()
    assert len(lanes.switchings.times) == n
    assert np.abs(lanes.switchings.times - np.arange(1, n + 1)).max() <= 1e-12
    assert lanes.states[0, 1] == pytest.approx([v * s - a * s * s / 2, v - a * s], rel=1e-11)
    swing = 2 * n / a  # d(all periods) / dv
    assert lanes.by_start[0, 1, :, 1] == pytest.approx([s - (v - a * s) * swing, 1 + a * swing], rel=1e-11)


def test_a_switch_that_stays_zero_is_reported():
    """x rests at zero, and y' = sign(x) has no meaning there."""
    made = model(states="x y", parameters="a", switches={"side": lambda t, u, p: u.x - p.a}, name="poised")(
        lambda t, u, p, s: (0 * u.x, 1.0 * s.side)
    )
    lanes = propagate(made, [0.0, 1.0], [[1.0, 0.0], [2.0, 0.0]], [1.0])
    (failure,) = lanes.failures
    assert (failure.lane, failure.time, failure.outcome) == (0, 0.0, Outcome.UNDECIDED)
    assert "the switch side stays zero, at x = 1, y = 0" in failure.cause
    assert lanes.states[1, 1, 1] == 1.0
