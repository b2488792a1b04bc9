"""The extrapolation tableau and the polynomial inside a step have the order that the theory promises."""

import numpy as np
import pytest

from hpcfit.flow.tableau import SUBSTEPS, extrapolated, midpoint_row, step_polynomial
from hpcfit.flow.tangents import ExactField
from hpcfit.models.define import model


@model(states="x", parameters="k")
def wave(t, u, p):
    """x' = k cos(t) x: x = exp(k sin t), dx/dx0 = x, dx/dk = sin(t) x for x0 = 1."""
    return p.k * np.cos(t) * u.x


def exact(t):
    return np.array([np.exp(np.sin(t)), np.exp(np.sin(t)), np.sin(t) * np.exp(np.sin(t))])


def one_step(t, y, h, rows):
    """The end of a step with a fixed number of rows, and all that its polynomial needs."""
    field = ExactField(wave, True)
    frame = field.frame(y[:, 0], y[:, 1:], np.ones((1, 1)))
    when, length = np.array([t]), np.array([h])
    slope = frame.rhs(when, frame.y)
    tableau, kept = [], []
    for k in range(rows):
        row = midpoint_row(frame, when, length, slope, SUBSTEPS[k], True)
        kept.append(row)
        tableau = extrapolated(tableau, row.end, SUBSTEPS[: k + 1])
    end = tableau[-1]
    polynomial = step_polynomial(kept, length, frame.y, end, slope, frame.rhs(when + h, end))
    return end, polynomial


def start(t):
    x, by_start, by_k = exact(t)
    return np.array([[[x], [by_start], [by_k]]])


@pytest.mark.parametrize(("rows", "n_steps"), [(2, 16), (3, 16), (4, 4), (5, 2)])
def test_k_rows_have_order_2k(rows, n_steps):
    """Largest global error over [0, 2] with fixed steps: halving the step divides it by 2^(2k)."""
    errors = []
    for count in (n_steps, 2 * n_steps):
        h, y, worst = 2.0 / count, start(0.0), 0.0
        for i in range(count):
            y, _ = one_step(i * h, y, h, rows)
            worst = max(worst, np.abs(y[0, :, 0] - exact((i + 1) * h)).max())
        errors.append(worst)
    assert errors[-1] > 1e-12, "rounding would hide the order"
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2 * rows, abs=0.5)


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_the_polynomial_of_k_rows_has_order_2k_too(rows):
    """Largest error inside one step: halving the step divides it by 2^(2k)."""
    theta = np.linspace(0, 1, 21)
    errors = []
    for h in (0.4, 0.2):
        _, polynomial = one_step(0.3, start(0.3), h, rows)
        inside = np.array([polynomial(np.array([s]))[0, :, 0] for s in theta])
        errors.append(np.abs(inside - np.array([exact(0.3 + s * h) for s in theta])).max())
    assert errors[-1] > 1e-12, "rounding would hide the order"
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2 * rows, abs=0.5)


def test_the_polynomial_meets_values_and_slopes_of_both_ends():
    h = 0.3
    end, polynomial = one_step(0.0, start(0.0), h, 4)
    assert polynomial(np.array([0.0])) == pytest.approx(start(0.0), rel=1e-14)
    assert polynomial(np.array([1.0])) == pytest.approx(end, rel=1e-14)
    tiny = 1e-6
    first = (polynomial(np.array([tiny])) - polynomial(np.array([0.0]))) / (tiny * h)
    assert first[0, 0, 0] == pytest.approx(1.0, rel=1e-5)


def test_the_error_estimate_of_the_polynomial_bounds_its_error():
    theta = np.linspace(0, 1, 41)
    for rows in (3, 4, 5):
        for h in (0.2, 0.5, 0.9):
            _, polynomial = one_step(0.3, start(0.3), h, rows)
            inside = np.array([polynomial(np.array([s]))[0, :, 0] for s in theta])
            error = np.abs(inside - np.array([exact(0.3 + s * h) for s in theta])).max()
            assert error <= 10 * polynomial.error().max() + 1e-15
