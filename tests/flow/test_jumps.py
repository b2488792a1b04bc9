"""Jumps at roots and at times: states, derivatives and times against closed forms and 128-bit differences."""

from __future__ import annotations

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

from hpcfit import Jump
from hpcfit import math as m
from hpcfit.flow.propagate import propagate
from hpcfit.models.define import model
from hpcfit.models.promote import with_states
from hpcfit.records import InputError, Outcome
from tests.flow.differences import quad_derivatives


def bounce(t, u, p):
    return Jump(falls=u.y, to={"v": -p.e * u.v})


@model(states="y v", parameters="g e", jumps={"bounce": bounce})
def ball(t, u, p):
    return u.v, -p.g


def thrown(y, v, g, e, t):
    """Height and speed of a ball at time t, and the times of its bounces, in closed form."""
    root = mp.sqrt(v * v + 2 * g * y)
    bounces, speed = [(v + root) / g], root
    while bounces[-1] < t:
        speed = e * speed
        bounces.append(bounces[-1] + 2 * speed / g)
    if len(bounces) == 1:
        return y + v * t - g * t * t / 2, v - g * t, []
    s = t - bounces[-2]
    return speed * s - g * s * s / 2, speed - g * s, bounces[:-1]


BALL = (1.0, 0.3, 9.81, 0.9)


def test_a_bouncing_ball_against_its_closed_form():
    """Eight bounces: states, all derivatives, and the times of the bounces to 1e-12."""
    times = np.linspace(0.0, 5.0, 41)
    lanes = propagate(ball, times, BALL[:2], BALL[2:], sensitivities=True, switchings=True)
    assert lanes.failures == ()
    with mp.workdps(30):
        exact = [thrown(*map(mp.mpf, BALL), mp.mpf(t)) for t in times]
        for i in (0, 1):
            assert np.abs(lanes.states[0, :, i] - [float(each[i]) for each in exact]).max() <= 1e-13
            for k in range(4):
                order = tuple(int(j == k) for j in range(4))
                slopes = [
                    float(
                        mp.diff(
                            lambda *z, t=t, i=i: thrown(*z, mp.mpf(t))[i], tuple(map(mp.mpf, BALL)), order
                        )
                    )
                    for t in times[1:]
                ]
                table = lanes.by_start if k < 2 else lanes.by_parameters
                assert np.abs(table[0, 1:, i, k % 2] - slopes).max() <= 1e-12 * np.abs(slopes).max()
        bounces = [float(t) for t in exact[-1][2]]
    assert len(bounces) == 8
    assert np.abs(lanes.switchings.times - bounces).max() <= 1e-14
    assert (lanes.switchings.events == 1).all()  # of surface 0, where the state jumps


def test_the_same_in_128_bits():
    lanes = propagate(ball, [0.0, 5.0], BALL[:2], BALL[2:], method="taylor128", sensitivities=True)
    with mp.workdps(40):
        exact = thrown(*map(mp.mpf, BALL), mp.mpf(5))[0]
        ours = mp.mpf(lanes.states[0, 1, 0]) + mp.mpf(lanes.low.states[0, 1, 0])
        assert abs(ours - exact) < mp.mpf(10) ** -30
    assert propagate(ball, [0.0, 5.0], BALL[:2], BALL[2:], sensitivities=True).by_parameters == pytest.approx(
        lanes.by_parameters, rel=1e-12
    )


@model(
    states="gut blood",
    parameters="ka ke dose lag tau",
    jumps={"dose": lambda t, u, p: Jump(at=p.lag, every=p.tau, count=4, to={"gut": u.gut + p.dose})},
)
def pharmacy(t, u, p):
    return -p.ka * u.gut, p.ka * u.gut - p.ke * u.blood


PHARMACY = np.array([1.2, 0.4, 2.0, 0.37, 1.9])


def concentration(ka, ke, dose, lag, tau, t):
    """Blood after four doses into an empty gut (Bateman)."""
    total = mp.mpf(0)
    for k in range(4):
        s = t - lag - k * tau
        if s > 0:
            total += dose * ka / (ka - ke) * (mp.exp(-ke * s) - mp.exp(-ka * s))
    return total


def test_doses_at_times_that_are_parameters():
    """Also by lag and interval, to 1e-13; the fifth dose is not given."""
    times = np.linspace(0.0, 12.0, 30)
    lanes = propagate(pharmacy, times, [0.0, 0.0], PHARMACY, sensitivities=True, switchings=True)
    assert lanes.failures == ()
    assert lanes.switchings.times == pytest.approx(0.37 + 1.9 * np.arange(4), abs=1e-15)
    with mp.workdps(30):
        z = tuple(map(mp.mpf, PHARMACY))
        exact = [float(concentration(*z, mp.mpf(t))) for t in times]
        assert np.abs(lanes.states[0, :, 1] - exact).max() <= 1e-14
        for k in range(5):
            order = tuple(int(j == k) for j in range(5))
            slopes = [float(mp.diff(lambda *q, t=t: concentration(*q, mp.mpf(t)), z, order)) for t in times]
            assert np.abs(lanes.by_parameters[0, :, 1, k] - slopes).max() <= 1e-13 * np.abs(slopes).max()


def test_a_lag_that_each_experiment_has_for_itself():
    """As a state that does not change, the lag has the same derivatives."""
    local = with_states(pharmacy, ["lag", "tau"])
    times = [0.0, 3.0, 7.0]
    ours = propagate(local, times, [0.0, 0.0, *PHARMACY[3:]], PHARMACY[:3], sensitivities=True)
    usual = propagate(pharmacy, times, [0.0, 0.0], PHARMACY, sensitivities=True)
    assert ours.states[..., :2] == pytest.approx(usual.states, rel=1e-14)
    assert ours.by_start[0, :, :2, 2:] == pytest.approx(usual.by_parameters[0, :, :, 3:], rel=1e-14)


@model(
    states="x y",
    parameters="a b c",
    switches={"inside": lambda t, u, p: p.b + 0.1 * m.sin(3 * t) - u.x},
    jumps={
        "kick": lambda t, u, p: Jump(
            rises=u.x - p.b - 0.1 * m.sin(3 * t), to={"x": u.x - 0.2 * p.c, "y": p.c * u.y * m.cos(t) + u.x}
        ),
        "shock": lambda t, u, p: Jump(at=0.3 * p.a, every=p.c, to={"y": u.y - 0.3 * u.x * u.y + 0.1 * t}),
    },
)
def tangled(t, u, p, s):
    return u.y + 0.3 * s.inside, -p.a * m.sin(u.x) + 0.4 * s.inside * m.cos(t) + 0.2


def test_jumps_that_depend_on_all_at_a_switch_that_depends_on_all():
    """h(t, x, p) where Q(t, x, p) = 0 and f changes, and at times: 128-bit differences, to 1e-11."""
    times, start, parameters = np.linspace(0.0, 9.0, 10), np.array([0.2, 1.0]), np.array([1.1, 0.5, 0.7])
    lanes = propagate(tangled, times, start, parameters, sensitivities=True, switchings=True)
    assert lanes.failures == ()
    numbers = lanes.switchings.events
    assert (numbers % 2 == 1).sum() > 12
    assert set(numbers.tolist()) == {1, 7}  # kicks and shocks
    ours = np.concatenate([lanes.by_start[0], lanes.by_parameters[0]], axis=2)
    exact = quad_derivatives(tangled, times, start, parameters)
    scale = np.abs(exact).max(axis=(0, 1))
    assert (np.abs(ours - exact).max(axis=(0, 1)) <= 1e-11 * scale).all()


def test_a_lane_has_the_same_bits_alone_and_in_company():
    starts = np.array([[0.2, 1.0], [0.1, 0.3], [0.4, -1.0], [0.0, 2.0], [0.3, 0.7], [0.2, -0.4], [0.1, 1.4]])
    parameters, times = np.array([1.1, 0.5, 0.7]), np.linspace(0.0, 9.0, 10)
    together = propagate(tangled, times, starts, parameters, sensitivities=True)
    for k, start in enumerate(starts):
        alone = propagate(tangled, times, start, parameters, sensitivities=True)
        assert (alone.states[0] == together.states[k]).all()
        assert (alone.by_parameters[0] == together.by_parameters[k]).all()


def test_intervals_that_meet_at_a_jump_add_up_to_the_whole():
    """An output at a jump is the state before it; a lane that begins there jumps at once: roots and times."""
    whole = propagate(
        pharmacy, [0.0, 2.0, 4.0, 6.0], [0.0, 0.0], [1.2, 0.4, 2.0, 0.0, 2.0], sensitivities=True
    )
    assert whole.states[0, 0, 0] == 0.0
    state, flow = np.zeros(2), np.eye(2)
    for k in range(3):
        times = whole.times[0, k : k + 2]
        part = propagate(pharmacy, times, state, [1.2, 0.4, 2.0, 0.0, 2.0], sensitivities=True)
        state, flow = part.states[0, 1], part.by_start[0, 1] @ flow
        assert state == pytest.approx(whole.states[0, k + 1], rel=1e-15)
    met = propagate(ball, [0.0, 5.0], BALL[:2], BALL[2:], switchings=True).switchings
    nodes = [0.0, met.times[0], met.times[1], 3.0]
    whole = propagate(ball, nodes, BALL[:2], BALL[2:], sensitivities=True)
    state, flow = np.array(BALL[:2]), np.eye(2)
    for begin, end in pairwise(nodes):
        part = propagate(ball, [begin, end], state, BALL[2:], sensitivities=True)
        state, flow = part.states[0, 1], part.by_start[0, 1] @ flow
    assert state == pytest.approx(whole.states[0, -1], abs=1e-13)
    assert flow == pytest.approx(whole.by_start[0, -1], rel=1e-12)


def test_jumps_at_the_same_time():
    """At times in the order of declaration; balls that land together; at times before at roots."""
    pair = model(
        states="x",
        jumps={
            "add": lambda t, u, p: Jump(at=1.0, to={"x": u.x + 1}),
            "double": lambda t, u, p: Jump(at=1.0, to={"x": 2 * u.x}),
        },
        name="pair",
    )(lambda t, u, p: 0 * u.x)
    assert propagate(pair, [0.0, 2.0], [3.0], []).states[0, 1, 0] == 8.0
    balls = model(
        states="y v z w",
        parameters="e",
        jumps={
            "first": lambda t, u, p: Jump(falls=u.y, to={"v": -p.e * u.v}),
            "second": lambda t, u, p: Jump(falls=u.z, to={"w": -p.e * u.w}),
            "stir": lambda t, u, p: Jump(at=2.0, to={"v": u.v + 0.5, "w": u.w + 0.5}),
        },
        name="balls",
    )(lambda t, u, p: (u.v, -1.0, u.w, -1.0))
    lanes = propagate(balls, [0.0, 3.0, 6.0], [2.0, 0.0, 2.0, 0.0], [0.8], sensitivities=True)
    assert lanes.failures == ()
    assert lanes.states[0, 1] == pytest.approx([0.7, 0.2, 0.7, 0.2], rel=1e-14)
    assert lanes.states[0, :, :2] == pytest.approx(lanes.states[0, :, 2:], rel=1e-13)
    assert lanes.by_start[0, :, :2, :2] == pytest.approx(lanes.by_start[0, :, 2:, 2:], rel=1e-13)
    assert (lanes.by_start[0, :, :2, 2:] == 0.0).all()


def test_ten_thousand_bounces_without_loss():
    """An elastic ball bounces for ever: after 10^4 bounces within the rounding of the time, 4e-12."""
    g = 2.0
    lanes = propagate(ball, [0.0, 20_000.3], [1.0, 0.0], [g, 1.0], sensitivities=True, switchings=True)
    assert lanes.failures == ()
    assert len(lanes.switchings.times) == 10_000
    assert np.abs(lanes.switchings.times - (1 + 2 * np.arange(10_000))).max() <= 1e-11  # eps times 2e4
    s = 0.3
    exact = [1 - g * s * s / 2, -g * s]
    assert lanes.states[0, 1] == pytest.approx(exact, abs=1e-10)
    period = 20_000 / 2  # dT/dy of all of them: the period grows like sqrt(y), T = 2 at y = 1
    assert lanes.by_start[0, 1, 0, 0] == pytest.approx(1 + g * s * period, rel=1e-11)


def test_a_ball_that_comes_to_rest_is_reported_with_time_and_place():
    lanes = propagate(ball, [0.0, 2.0, 20.0], [1.0, 0.0], [9.81, 0.8], sensitivities=True)
    (failure,) = lanes.failures
    assert failure.outcome is Outcome.ZENO
    assert failure.time == pytest.approx((2 / 9.81) ** 0.5 * 1.8 / 0.2, rel=1e-13)
    assert "the jump bounce" in failure.cause
    assert "y = " in failure.cause
    assert np.isfinite(lanes.states[0, 1]).all()
    assert np.isnan(lanes.states[0, 2]).all()


def test_grazing_is_reported_with_time_and_place():
    """x = (t - 1)^2 - d touches zero as d -> 0: no derivatives there, but a path."""
    made = model(
        states="x v", jumps={"touch": lambda t, u, p: Jump(falls=u.x, to={"v": u.v + 1})}, name="touching"
    )(lambda t, u, p: (u.v, 2.0))
    for depth in (1e-15, 0.1):
        lanes = propagate(made, [0.0, 2.0], [1.0 - depth, -2.0], [], sensitivities=True)
        if depth == 0.1:
            assert lanes.failures == ()
            continue
        (failure,) = lanes.failures
        assert failure.outcome is Outcome.GRAZING
        assert failure.time == pytest.approx(1.0, abs=1e-7)
        assert "the jump touch" in failure.cause
        assert propagate(made, [0.0, 2.0], [1.0 - depth, -2.0], []).failures == ()


def test_a_rhythm_must_be_positive_and_its_failure_names_it():
    lanes = propagate(pharmacy, [0.0, 1.0], [0.0, 0.0], [1.2, 0.4, 2.0, 0.0, -1.0])
    (failure,) = lanes.failures
    assert failure.outcome is Outcome.BAD_INPUT
    assert "jump dose: every must be positive" in failure.cause


def test_jumps_need_the_compiled_series():
    with pytest.raises(InputError, match='ball: jumps need the compiled series; use method = "taylor"'):
        propagate(ball, [0.0, 1.0], [1.0, 0.0], [9.81, 0.9], method="extrapolation")
