"""Kinks: steps end at them, tangents jump with f, and a path that sticks follows its kink."""

import subprocess
import sys
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Outcome


def close(ours, exact, bound):
    """Whether all errors are within the bound of the largest value."""
    return (np.abs(np.asarray(ours) - exact) <= bound * np.abs(exact).max()).all()


# exact solutions, piece by piece: x' = f(t, x, a, b) from x0 at t = 0; all have one kink before t = 2

PIECES = {
    # |x| - a from 1, a = 2
    "abs": (
        lambda t, x, a, b: abs(x) - a,
        lambda t, x, a, b: (
            a + (x - a) * mp.exp(t) if t < mp.log(a / (a - x)) else -a + a * mp.exp(mp.log(a / (a - x)) - t)
        ),
        1.0,
    ),
    # slope -a + sign(x)/2: the slope jumps
    "sign": (
        lambda t, x, a, b: -a + m.sign(x) / 2,
        lambda t, x, a, b: x - (a - 0.5) * t if t < x / (a - 0.5) else -(a + 0.5) * (t - x / (a - 0.5)),
        1.0,
    ),
    "min": (
        lambda t, x, a, b: m.min(x, b),
        lambda t, x, a, b: x * mp.exp(t) if t < mp.log(b / x) else b + b * (t - mp.log(b / x)),
        0.5,
    ),
    "max": (
        lambda t, x, a, b: -m.max(x, b),
        lambda t, x, a, b: x * mp.exp(-t) if t < mp.log(x / b) else b - b * (t - mp.log(x / b)),
        1.9,
    ),
    "where": (
        lambda t, x, a, b: m.where(x < b, a, a * x),
        lambda t, x, a, b: x + a * t if t < (b - x) / a else b * mp.exp(a * (t - (b - x) / a)),
        0.25,
    ),
    "where in time": (
        lambda t, x, a, b: m.where(t <= b, x, -a * x),
        lambda t, x, a, b: x * mp.exp(t) if t < b else x * mp.exp(b - a * (t - b)),
        0.7,
    ),
}
A, B = 2.0, 1.2


@pytest.fixture(scope="module")
def pieces():
    names = [f"x{i}" for i in range(len(PIECES))]

    @model(states=" ".join(names), parameters="a b")
    def kinked(t, u, p):
        return tuple(f(t, u[i], p.a, p.b) for i, (f, _, _) in enumerate(PIECES.values()))

    starts = [start for _, _, start in PIECES.values()]
    return propagate(kinked, np.linspace(0.0, 2.0, 6), starts, [A, B], sensitivities=True)


@pytest.mark.parametrize("name", PIECES)
def test_against_the_exact_solution_of_its_pieces(name, pieces):
    """State to 1e-14 and all derivatives to 1e-13 of their maximum, before and after the kink."""
    i = list(PIECES).index(name)
    _, solution, start = PIECES[name]
    assert pieces.failures == ()
    times = pieces.times[0]
    with mp.workdps(40):

        def path(*orders):
            at = [
                mp.diff(lambda x, a, b, t=t: solution(mp.mpf(t), x, a, b), (start, A, B), orders)
                for t in times
            ]
            return np.array([float(value) for value in at])

        exact = [path(*orders) for orders in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    ours = [pieces.states[0, :, i], pieces.by_start[0, :, i, i], *pieces.by_parameters[0, :, i].T]
    assert close(ours[0], exact[0], 1e-14)
    for mine, true in zip(ours[1:], exact[1:], strict=True):
        assert np.abs(mine - true).max() <= 1e-13 * max(np.abs(true).max(), 1e-3)


class Chua:
    """Chua's circuit at 40 digits: exponentials of its pieces, walls hit to all digits by Newton's method."""

    def __init__(self, walls):
        self.walls = walls  # [(rough time, wall, side after)]: where to start Newton's method

    @staticmethod
    def generator(b1, b2, b3, b4, b5, side):
        g = mp.matrix(4, 4)
        for i, row in enumerate([[-b1 * (b5 if side else b4), b1, 0], [1, -1, 1], [0, -b2, -b3]]):
            for j, value in enumerate(row):
                g[i, j] = value
        g[0, 3] = -b1 * (b4 - b5) * side
        return g

    def end(self, values, end):
        """States at the end for start and parameters (8 values), and the times of the walls."""
        y, t, times = mp.matrix([*values[:3], 1]), mp.mpf(0), []
        side = int(abs(values[0]) > 1) * (1 if values[0] > 0 else -1)
        for rough, wall, after in self.walls:
            g = self.generator(*values[3:], side)
            h = mp.mpf(rough) - t
            for _ in range(5):
                moved = mp.expm(g * h) * y
                h -= (moved[0] - wall) / (g * moved)[0]
            y, t, side = mp.expm(g * h) * y, t + h, after
            times.append(t)
        y = mp.expm(self.generator(*values[3:], side) * (end - t)) * y
        return [y[i] for i in range(3)], times


def test_chuas_circuit_against_the_exponentials_of_its_pieces():
    """After five kinks, times growth: states to 1e-15, derivatives by start and parameters to 1e-14."""
    made, end = find("chua"), 12.0
    example = made.examples[0]
    start, parameters = list(example.start.values()), list(example.parameters.values())
    times = np.linspace(0.0, end, 4001)
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    sides = np.where(np.abs(lanes.states[0, :, 0]) > 1, np.sign(lanes.states[0, :, 0]), 0).astype(int)
    hits = np.flatnonzero(np.diff(sides))
    circuit = Chua([(times[k], int(sides[k] or sides[k + 1]), int(sides[k + 1])) for k in hits])
    assert len(hits) >= 5
    with mp.workdps(40):
        values, step = [mp.mpf(value) for value in (*start, *parameters)], mp.mpf(10) ** -14
        exact, _ = circuit.end(values, end)
        columns = []
        for i in range(8):
            up, down = (
                circuit.end([v + (s * step if j == i else 0) for j, v in enumerate(values)], end)[0]
                for s in (1, -1)
            )
            columns.append([float((a - b) / (2 * step)) for a, b in zip(up, down, strict=True)])
        state = np.array([float(value) for value in exact])
    tangents = np.array(columns).T
    growth = np.abs(lanes.by_start).max()
    ours = np.concatenate([lanes.by_start[0, -1], lanes.by_parameters[0, -1]], axis=1)
    assert np.abs(lanes.states[0, -1] - state).max() <= 1e-15 * growth * np.abs(lanes.states).max()
    for column in range(8):
        assert close(ours[:, column], tangents[:, column], 1e-14 * growth)


def test_tangents_with_coulomb_friction_against_differences():
    """The driven pendulum, k1 = 6.88e-4: central differences, thrice extrapolated to step zero, to 1e-9."""
    made = find("pendulum_driven")
    example = made.examples[0]
    start, parameters = np.array(list(example.start.values())), np.array(list(example.parameters.values()))
    parameters[0] = 6.88e-4
    times = [0.0, 0.5, 1.0]
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    dense = propagate(made, np.linspace(0.0, 1.0, 400), start, parameters)
    assert (np.diff(np.sign(dense.states[0, :, 1])) != 0).any()  # turns, so that friction jumps
    z = np.concatenate([start, parameters])
    sizes = 1e-3 * np.abs(z)
    sizes[2:5] *= 30  # frictions are small, and so is what they do
    levels = []
    for level in range(4):
        h = sizes / 2**level
        moved = np.concatenate([z + np.diag(h), z - np.diag(h)])
        states = propagate(made, times, moved[:, :2], moved[:, 2:]).states
        levels.append(((states[:11] - states[11:]) / (2 * h[:, None, None])).transpose(1, 2, 0))
    for k in range(1, 4):  # Richardson
        levels = [b + (b - a) / (4**k - 1) for a, b in pairwise(levels)]
    ours = np.concatenate([lanes.by_start[0], lanes.by_parameters[0]], axis=2)
    scale = np.abs(ours).max(axis=(0, 1))
    assert (np.abs(ours - levels[0]).max(axis=(0, 1)) <= 1e-9 * scale).all()


@pytest.fixture(scope="module")
def friction():
    return model(states="x v", parameters="mu push", name="friction")(
        lambda t, u, p: (u.v, -p.mu * m.sign(u.v) + p.push)
    )


@pytest.mark.parametrize("sensitivities", [False, True])
@pytest.mark.parametrize("end", [2.5, 5.0, 1e3])
def test_a_body_that_comes_to_rest_stays_there(friction, sensitivities, end):
    """v' = -sign(v) + 1/2 from v = 1: at rest at x = 1 / (2 (mu - push)) from t = 2 on."""
    times = [0.0, 1.0, 1.999, 2.001, end]
    parameters = [[1.0, 0.5], [0.3, 0.5]]  # the second is pushed harder than it is held
    lanes = propagate(friction, times, [0.0, 1.0], parameters, sensitivities=sensitivities)
    assert lanes.failures == ()
    t = np.minimum(times, 2.0)
    assert close(lanes.states[0], np.stack([t - t**2 / 4, 1 - t / 2], axis=1), 1e-15)
    assert (lanes.states[0, 3:, 1] == 0.0).all()
    assert lanes.states[1, -1] == pytest.approx([end + 0.1 * end**2, 1 + 0.2 * end], rel=1e-12)
    if sensitivities:
        assert close(lanes.by_start[0, 3:], [[1.0, 2.0], [0.0, 0.0]], 1e-15)
        assert close(lanes.by_parameters[0, 3:], [[-2.0, 2.0], [0.0, 0.0]], 1e-15)


def test_a_body_at_rest_sticks_or_slides_at_once(friction):
    """From v = 0: held (mu > push), pushed forwards, pushed backwards."""
    parameters = [[1.0, 0.5], [1.0, 1.5], [1.0, -1.5]]
    lanes = propagate(friction, [0.0, 2.0], [0.0, 0.0], parameters, sensitivities=True)
    assert lanes.failures == ()
    assert (lanes.states[0, 1] == 0.0).all()
    assert (lanes.by_parameters[0, 1] == 0.0).all()
    assert close(lanes.states[1, 1], [1.0, 1.0], 1e-15)
    assert close(lanes.states[2, 1], [-1.0, -1.0], 1e-15)
    assert close(lanes.by_parameters[1, 1], [[-2.0, 2.0], [-2.0, 2.0]], 1e-15)
    assert close(lanes.by_parameters[2, 1], [[2.0, 2.0], [2.0, 2.0]], 1e-15)


def test_infinitely_many_kinks_in_finite_time_are_not_counted_one_by_one():
    """x'' = -sign(x) - sign(x')/2 from (1, 0) rests at t = (8/3) / (1 - 1/sqrt(3)) after endless kinks."""
    made = model(states="x v", name="twisting")(lambda t, u, p: (u.v, -m.sign(u.x) - m.sign(u.v) / 2))
    lanes = propagate(made, [0.0, 2.0, 50.0], [1.0, 0.0], [], max_steps=20_000)
    assert close(lanes.states[0, 1], [0.0, -1.0], 1e-14)
    (failure,) = lanes.failures
    assert failure.outcome is Outcome.STICKING
    assert failure.time == pytest.approx((8 / 3) / (1 - 3**-0.5), abs=1e-6)
    assert lanes.steps[0] < 1000


def test_two_kinks_with_the_same_zero():
    """x' = -1 + |x| where(x < 0, 2, 1): abs and the comparison change sides together."""
    made = model(states="x", name="twice")(lambda t, u, p: -1 + abs(u.x) * m.where(u.x < 0, 2.0, 1.0))
    times = np.array([0.0, 0.5, 1.0, 2.0])
    lanes = propagate(made, times, [0.5], [], sensitivities=True)
    assert lanes.failures == ()
    after = np.maximum(times - np.log(2), 0.0)
    exact = np.where(after == 0, 1 - 0.5 * np.exp(times), -0.5 + 0.5 * np.exp(-2 * after))
    slope = np.where(after == 0, np.exp(times), 2 * np.exp(-2 * after))
    assert close(lanes.states[0, :, 0], exact, 1e-14)
    assert close(lanes.by_start[0, :, 0, 0], slope, 1e-14)


def test_kinks_of_different_states_at_the_same_time():
    """Two states and two functions of each hit their walls together; no state feels the other."""
    made = model(states="x y", name="together")(
        lambda t, u, p: (abs(u.x) - 2 - m.sign(u.x) / 4, m.max(u.y, -u.y) - 2 - m.where(u.y > 0, 0.25, -0.25))
    )
    lanes = propagate(made, [0.0, 0.3, 2.0], [1.0, 1.0], [], sensitivities=True)
    alone = propagate(made, [0.0, 0.3, 2.0], [1.0, 7.0], [], sensitivities=True)
    assert lanes.failures == ()
    assert close(lanes.states[0, :, 0], lanes.states[0, :, 1], 1e-15)
    assert close(lanes.states[0, :, 0], alone.states[0, :, 0], 1e-14)
    assert close(lanes.by_start[0, :, 0, 0], alone.by_start[0, :, 0, 0], 1e-13)
    assert close(lanes.by_start[0, :, 1, 1], alone.by_start[0, :, 0, 0], 1e-13)
    assert (lanes.by_start[0, :, [0, 1], [1, 0]] == 0).all()


def test_starting_on_a_kink():
    """x' = a + |x| from 0: e^t - 1 upwards, e^-t - 1 downwards; tangents of the side that the path takes."""
    made = model(states="x", parameters="a", name="wall")(lambda t, u, p: p.a + abs(u.x))
    lanes = propagate(made, [0.0, 1.0], [0.0], [[1.0], [-1.0]], sensitivities=True)
    assert lanes.failures == ()
    assert close(lanes.states[:, 1, 0], [np.e - 1, 1 / np.e - 1], 1e-15)
    assert close(lanes.by_start[:, 1, 0, 0], [np.e, 1 / np.e], 1e-15)
    assert close(lanes.by_parameters[:, 1, 0, 0], [np.e - 1, 1 - 1 / np.e], 1e-15)


def test_starting_on_a_kink_along_it():
    """x' = y, y' = -1 + |x| from (0, 0): x = cos(t) - 1; only the second derivative says which side it is."""
    made = model(states="x y", name="along")(lambda t, u, p: (u.y, -1 + abs(u.x)))
    lanes = propagate(made, [0.0, 1.0], [0.0, 0.0], [], sensitivities=True)
    assert lanes.failures == ()
    assert close(lanes.states[0, 1], [np.cos(1) - 1, -np.sin(1)], 1e-14)
    assert close(lanes.by_start[0, 1], [[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]], 1e-14)


def test_a_path_that_touches_a_wall_and_turns_back():
    """x = (t - 1)^2 touches x = 0: |x| and sign(x) notice nothing."""
    made = model(states="x y z", name="touching")(
        lambda t, u, p: (u.y, 2.0 + 0 * u.y, abs(u.x) + m.sign(u.x + 1e-9))
    )
    lanes = propagate(made, [0.0, 3.0], [1.0, -2.0, 0.0], [])
    assert lanes.failures == ()
    assert close(lanes.states[0, 1], [4.0, 4.0, 1 / 3 + 8 / 3 + 3], 1e-14)


def test_two_roots_in_one_step_are_both_found():
    """x = (t - 1)^2 - w^2 is negative for a short while 2w only; z counts it with sign(x)."""
    made = model(states="y x z", name="dipping")(lambda t, u, p: (2 + 0 * u.y, u.y, m.sign(u.x)))
    w = np.array([1e-1, 1e-3, 1e-6])
    starts = np.stack([np.full(3, -2.0), 1 - w**2, np.zeros(3)], axis=1)
    lanes = propagate(made, [0.0, 2.0], starts, [])
    assert lanes.failures == ()
    assert np.abs(lanes.states[:, 1, 2] - (2 - 4 * w)).max() <= 1e-9  # w^2 is known to 1e-16, so w to 1e-10


def test_resting_on_a_kink_for_ever_ends():
    """x' = -x |x| from 0: the argument of abs is zero at all times, which must not be searched for roots."""
    code = (
        "from hpcfit.models.define import model; from hpcfit.flow.propagate import propagate;"
        "rest = model(states='x', name='rest')(lambda t, u, p: -u.x * abs(u.x));"
        "lanes = propagate(rest, [0.0, 1.0], [0.0], [], sensitivities=True);"
        "print(lanes.failures, lanes.states[0, 1, 0], lanes.by_start[0, 1, 0, 0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10)
    assert done.stdout.split() == ["()", "0.0", "1.0"], done.stderr
