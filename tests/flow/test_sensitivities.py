"""States and sensitivities of every smooth flow of the catalogue against heyoka's variational equations."""

import importlib

import mpmath as mp
import numpy as np
import pytest

from hpcfit.models.catalogue import NAMES, find
from hpcfit.models.define import model
from tests.flow.extrapolation_lanes import propagate

pytest.importorskip("heyoka", reason="the independent integrator is not installed")
heyoka_oracle = importlib.import_module("tests.flow.heyoka_oracle")

SMOOTH = [find(name) for name in NAMES if find(name).kind == "flow" and find(name).smooth]
CASES = [(made, k) for made in SMOOTH for k in range(len(made.examples))]


def case_name(value):
    return value.name if hasattr(value, "name") else str(value)


def example_of(made, k, n_times=21):
    example = made.examples[k]
    times = np.linspace(0.0, example.duration, n_times)
    return times, list(example.start.values()), list(example.parameters.values())


def relative(ours, theirs):
    """Largest error of each tangent (T, n, m) in units of its largest component, at least a thousandth."""
    return (np.abs(ours - theirs) / np.maximum(np.abs(theirs).max(axis=1, keepdims=True), 1e-3)).max()


@pytest.mark.parametrize(("made", "k"), CASES, ids=case_name)
def test_sensitivities_to_1e_7_over_the_whole_example(made, k):
    """With the local tolerance 1e-13; the tangents themselves grow up to 2e5."""
    times, start, parameters = example_of(made, k)
    states, by_start, by_parameters = heyoka_oracle.variational(made, start, parameters, times)
    lanes = propagate(made, times, start, parameters, sensitivities=True, tolerance=1e-13)
    assert lanes.failures == ()
    assert relative(lanes.by_start[0], by_start) <= 1e-7
    assert relative(lanes.by_parameters[0], by_parameters) <= 1e-7
    assert (np.abs(lanes.states[0] - states) <= 1e-7 * np.abs(states).max(axis=0)).all()


@pytest.mark.parametrize("tolerance", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("made", [made for made in SMOOTH if made.name != "lorenz96"], ids=case_name)
def test_states_to_tolerance_times_growth(made, tolerance):
    """Error at t <= 30 tolerance x size of the state x growth of the tangents, size and growth up to t."""
    times, start, parameters = example_of(made, 0)
    states, by_start, _ = heyoka_oracle.variational(made, start, parameters, times)
    lanes = propagate(made, times, start, parameters, tolerance=tolerance)
    assert lanes.failures == ()
    growth = np.maximum.accumulate(np.linalg.norm(by_start, 2, axis=(1, 2)))
    size = np.maximum.accumulate(np.abs(states).max(axis=1))
    error = np.abs(lanes.states[0] - states).max(axis=1)
    assert (error <= 30 * tolerance * size * growth).all(), (error / (tolerance * size * growth)).max()


@pytest.mark.parametrize(
    "name", ["lorenz", "henon_heiles", "pendulum", "driven_pendulum", "pentagonal", "spring_pendulum"]
)
def test_differences_agree_with_the_exact_tangents(name):
    """Internal numerical differentiation: 1e-5 of each tangent, also where tangents grow to 1e5."""
    made = find(name)
    times, start, parameters = example_of(made, 0, 6)
    ours = propagate(made, times, start, parameters, sensitivities=True, method="extrapolation-differences")
    theirs = propagate(made, times, start, parameters, sensitivities=True)
    assert ours.failures == ()
    assert relative(ours.by_start[0], theirs.by_start[0]) <= 1e-5
    assert relative(ours.by_parameters[0], theirs.by_parameters[0]) <= 1e-5


@model(states="v", parameters="a")
def riccati(t, u, p):
    """v' = a - v^2."""
    return p.a - u.v**2


def test_riccati_against_its_solution_in_mpmath():
    """v = s tanh(s t + artanh(v0/s)), s = sqrt(a); both derivatives by mpmath at 40 digits."""
    v0, a, t = 0.3, 1.7, 2.5
    with mp.workdps(40):

        def solution(v, a):
            return mp.sqrt(a) * mp.tanh(mp.sqrt(a) * t + mp.atanh(v / mp.sqrt(a)))

        expected = [float(solution(v0, a))]
        expected += [float(mp.diff(solution, (v0, a), orders)) for orders in ((1, 0), (0, 1))]
    lanes = propagate(riccati, [0.0, t], [v0], [a], sensitivities=True)
    ours = [lanes.states[0, 1, 0], lanes.by_start[0, 1, 0, 0], lanes.by_parameters[0, 1, 0, 0]]
    assert ours == pytest.approx(expected, rel=1e-11)


def test_the_pendulum_against_mpmaths_own_integrator():
    """mpmath.odefun at 25 digits on the pendulum with its variational equations written by hand."""
    times, start, parameters = [0.0, 1.5, 3.0], [0.7, 0.0], [1.0, 0.1]
    b1, b2 = parameters

    def variational(t, z):
        y1, y2, *tangents = z
        moved = [y2, -b1 * mp.sin(y1) - b2 * y2]
        sources = (0, 0, -mp.sin(y1), -y2)
        for k, source in enumerate(sources):
            d1, d2 = tangents[2 * k : 2 * k + 2]
            moved += [d2, -b1 * mp.cos(y1) * d1 - b2 * d2 + source]
        return moved

    with mp.workdps(20):
        path = mp.odefun(variational, 0, [*start, 1, 0, 0, 1, 0, 0, 0, 0])
        expected = [[float(value) for value in path(t)] for t in times[1:]]
    lanes = propagate(find("pendulum"), times, start, parameters, sensitivities=True)
    for k in (1, 2):
        y1, y2, *tangents = expected[k - 1]
        columns = np.array(tangents).reshape(4, 2).T
        assert lanes.states[0, k] == pytest.approx([y1, y2], rel=1e-11)
        assert lanes.by_start[0, k] == pytest.approx(columns[:, :2], rel=1e-10)
        assert lanes.by_parameters[0, k] == pytest.approx(columns[:, 2:], rel=1e-10)


def test_time_dependence_needs_no_start_at_zero():
    """x' = cos(t) x from t = -4 to 3."""
    wave = model(states="x")(lambda t, u, p: np.cos(t) * u.x)
    lanes = propagate(wave, [-4.0, -1.0, 3.0], [2.0], [], sensitivities=True)
    expected = 2.0 * np.exp(np.sin(lanes.times[0]) - np.sin(-4.0))
    assert lanes.states[0, :, 0] == pytest.approx(expected, rel=1e-11)
    assert lanes.by_start[0, :, 0, 0] == pytest.approx(expected / 2, rel=1e-11)
    assert lanes.by_parameters.shape == (1, 3, 1, 0)


def test_without_sensitivities_none_are_returned():
    lanes = propagate(riccati, [0.0, 1.0], [0.3], [1.7])
    assert lanes.by_start is None
    assert lanes.by_parameters is None
