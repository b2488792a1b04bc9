"""Every function of hpcfit.math as compiled series: one block-diagonal model, and edges."""

import importlib

import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.flow.propagate import propagate
from hpcfit.models.define import model
from hpcfit.records import Outcome

pytest.importorskip("heyoka", reason="the independent integrator is not installed")
heyoka_long = importlib.import_module("tests.flow.heyoka_long")

# x' = body(t, x, a, b) from 0.3 (or the start given) with a = 0.7, b = 1.3
BODIES = {
    "exp": lambda t, x, a, b: m.exp(-a * x),
    "log": lambda t, x, a, b: m.log(x + b),
    "sqrt": lambda t, x, a, b: m.sqrt(a + x),
    "sin": lambda t, x, a, b: m.sin(b * x) + a,
    "cos": lambda t, x, a, b: m.cos(b * x),
    "tan": lambda t, x, a, b: m.tan(a * m.cos(x)),
    "asin": lambda t, x, a, b: m.asin(a * m.sin(x + t)),
    "acos": lambda t, x, a, b: m.acos(a * m.cos(x)) - 1,
    "atan": lambda t, x, a, b: m.atan(b * x - 2),
    "sinh": lambda t, x, a, b: -m.sinh(a * x),
    "cosh": lambda t, x, a, b: m.cosh(a * x) - 2,
    "tanh": lambda t, x, a, b: m.tanh(b - x * x),
    "sine and cosine of one argument": lambda t, x, a, b: m.sin(x) * m.cos(x) + m.sinh(x) / m.cosh(x),
    "power 3": lambda t, x, a, b: a - x**3,
    "power 2.5": lambda t, x, a, b: b - x**2.5,
    "power -1.5": lambda t, x, a, b: x**-1.5 * a / 4,
    "power -2": lambda t, x, a, b: (x + 1) ** -2,
    "power by parameter": lambda t, x, a, b: a - (x + 1) ** b / 4,
    "power by state": lambda t, x, a, b: 1 - (x + a) ** x,
    "power by time": lambda t, x, a, b: (x + b) ** (-t),
    "parameter to the state": lambda t, x, a, b: b**-x - a**x,
    "number to the state": lambda t, x, a, b: 2.0**-x,
    "division": lambda t, x, a, b: (a + t * x) / (b + x * x),
    "constant divided": lambda t, x, a, b: a / (1 + x),
    "divided by a parameter": lambda t, x, a, b: (1 - x) / b,
    "division by time": lambda t, x, a, b: x / (1 + a * t),
    "time alone": lambda t, x, a, b: m.cos(b * t) * t,
    "time and state": lambda t, x, a, b: m.sin(t * x + a) * m.exp(-b * t),
    "product of three": lambda t, x, a, b: a * x * (1 - x) * (b - t),
}


def close(ours, exact, bound):
    """Whether all errors are within the bound of the largest value; pytest.approx never asks for < 1e-12."""
    return (np.abs(np.asarray(ours) - exact) <= bound * np.abs(exact).max()).all()


def joined(bodies):
    names = [f"x{i}" for i in range(len(bodies))]

    def equations(t, u, p):
        return tuple(body(t, getattr(u, name), p.a, p.b) for name, body in zip(names, bodies, strict=True))

    return model(states=" ".join(names), parameters="a b", name="joined")(equations)


@pytest.fixture(scope="module")
def every():
    """Our lanes and heyoka's path of all bodies at once; from t = 0.25 to 2.25."""
    made, times = joined(list(BODIES.values())), np.linspace(0.25, 2.25, 9)
    start, parameters = np.full(len(BODIES), 0.3), [0.7, 1.3]
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    return lanes, heyoka_long.Oracle(made, start, parameters, times)


@pytest.mark.parametrize("name", BODIES)
def test_a_function_and_its_derivatives(name, every):
    """State to 1e-14, tangents to 1e-13, each relative to its maximum along the path."""
    lanes, oracle = every
    i = list(BODIES).index(name)
    growth = max(1.0, float(np.abs(oracle.by_start[:, i, i]).max()))
    assert growth < 20.0
    assert heyoka_long.relative(lanes.states[0, :, [i]].T, oracle.states[:, [i]]) <= 1e-14
    for ours, exact in (
        (lanes.by_start[0, :, i, i], oracle.by_start[:, i, i]),
        *zip(lanes.by_parameters[0, :, i].T, oracle.by_parameters[:, i].T, strict=True),
    ):
        assert np.abs(ours - exact).max() <= 1e-13 * max(np.abs(exact).max(), 1e-3)


def test_no_state_feels_another_block(every):
    """Entries of by_start off the diagonal are exactly zero."""
    lanes, _ = every
    off = ~np.eye(len(BODIES), dtype=bool)
    assert (lanes.by_start[0][:, off] == 0.0).all()


@pytest.fixture(scope="module")
def polynomials():
    """Right-hand sides whose low coefficients vanish at the start, or all but the lowest."""

    @model(states="one by_a t3 t9 y y6 z1 z2 z3 z4 z5", parameters="a")
    def low(t, u, p):
        return 1.0, p.a, t**3, t**9, 2.0, u.y**6, u.z2, u.z3, u.z4, u.z5, p.a

    return propagate(low, [0.0, 0.5, 1.0], [1.0, *[0.0] * 10], [3.0], sensitivities=True)


def test_equations_that_are_constants_or_parameters(polynomials):
    """x' = 1 and x' = a."""
    t = polynomials.times[0]
    assert polynomials.failures == ()
    assert close(polynomials.states[0, :, 0], 1 + t, 1e-15)
    assert close(polynomials.states[0, :, 1], 3 * t, 1e-15)
    assert close(polynomials.by_parameters[0, :, 1, 0], t, 1e-15)


def test_terms_that_come_late_are_not_missed(polynomials):
    """t^3, t^9, y^6 with y = 2t, and a chain of five integrals: a series may begin with many zeros."""
    t = polynomials.times[0]
    exact = [t**4 / 4, t**10 / 10, 2 * t, 64 * t**7 / 7]
    exact += [3 * t**k / np.prod(np.arange(1.0, k + 1)) for k in (5, 4, 3, 2, 1)]
    for i, values in enumerate(exact):
        assert close(polynomials.states[0, :, 2 + i], values, 4e-15)
    assert close(polynomials.by_parameters[0, :, 6, 0], t**5 / 120, 4e-15)


@pytest.fixture(scope="module")
def late():
    """x' = t^12 alone: eleven coefficients are zero before the first that is not."""
    return model(states="x", parameters="a", name="late")(lambda t, u, p: p.a * t**12 + 0 * u.x)


def test_a_series_that_begins_with_many_zeros(late):
    lanes = propagate(late, [0.0, 1.0], [1.0], [13.0], sensitivities=True)
    assert close(lanes.states[0, 1, 0], 2.0, 1e-15)
    assert close(lanes.by_parameters[0, 1, 0, 0], 1 / 13, 1e-14)


def test_a_parameter_as_exponent_of_zero_is_reported_and_extrapolation_can_do_it():
    """x' = 1 + x^b from x = 0 with b = 2 is tan(t); the recurrence of a power divides by x."""
    made = model(states="x", parameters="b", name="raised")(lambda t, u, p: 1 + u.x**p.b)
    lanes = propagate(made, [0.0, 0.5], [0.0], [2.0])
    assert lanes.failures[0].outcome is Outcome.NOT_FINITE
    other = propagate(made, [0.0, 0.5], [0.0], [2.0], method="extrapolation")
    assert close(other.states[0, 1, 0], np.tan(0.5), 1e-11)
