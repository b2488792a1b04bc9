"""Kaplan-Yorke dimension, entropy, doubling time: formulas, laws, and errors by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcfit.lyapunov.dimension import bits, derived, kaplan_yorke

SPECTRA = st.lists(st.floats(-10.0, 5.0).map(lambda v: round(v, 3)), min_size=1, max_size=8).map(
    lambda values: np.sort(np.array(values))[::-1]
)


@pytest.mark.parametrize(
    ("exponents", "dimension"),
    [
        ([0.90564, 0.0, -14.57231], 2.0 + 0.90564 / 14.57231),
        ([0.41922, -1.62319], 1.0 + 0.41922 / 1.62319),
        ([0.0362, 0.0, -0.6362], 2.0 + 0.0362 / 0.6362),
        ([0.0, -1.0, -2.0], 1.0),
        ([-0.1, -1.0], 0.0),
        ([0.5, 0.0, 0.0, -0.5], 4.0),
        ([1.0, 1.0, -4.0], 2.5),
    ],
)
def test_known_spectra(exponents: list[float], dimension: float) -> None:
    assert kaplan_yorke(np.array(exponents), len(exponents))[0] == pytest.approx(dimension, rel=1e-14)


def test_not_defined_and_not_known() -> None:
    assert np.isnan(kaplan_yorke(np.zeros(4), 4)[0])  # a torus
    assert np.isnan(kaplan_yorke(np.array([1.0, 0.5]), 3)[0])  # the third exponent is needed
    assert np.isnan(kaplan_yorke(np.array([np.nan, 0.5]), 2)[0])
    assert kaplan_yorke(np.array([0.5, -2.0]), 30)[0] == 1.25  # two are enough


@given(SPECTRA, st.floats(0.01, 100.0))
def test_the_dimension_does_not_depend_on_the_unit_of_time_nor_on_the_order(
    exponents: np.ndarray, unit: float
) -> None:
    states = len(exponents)
    dimension = kaplan_yorke(exponents, states)[0]
    for other in (unit * exponents, exponents[::-1]):
        np.testing.assert_allclose(kaplan_yorke(other, states)[0], dimension, rtol=1e-9)
    if np.isfinite(dimension):
        assert 0.0 <= dimension <= states


@given(SPECTRA)
def test_the_gradient_is_that_of_the_dimension(exponents: np.ndarray) -> None:
    states = len(exponents)
    dimension, gradient = kaplan_yorke(exponents, states)
    change = 1e-7 * np.random.default_rng(1).standard_normal(states)
    moved = [kaplan_yorke(exponents + sign * change, states) for sign in (1.0, -1.0)]
    whole = {int(np.floor(value)) for value in (dimension, *(each[0] for each in moved)) if value == value}
    apart = np.abs(np.diff(exponents)).min(initial=1.0) > 1e-5
    if len(whole) == 1 and min(whole) < states and apart and np.abs(exponents).min() > 1e-3:
        assert (moved[0][0] - moved[1][0]) / 2.0 == pytest.approx(gradient @ change, rel=1e-3, abs=1e-12)


def test_errors_know_that_exponents_are_correlated() -> None:
    """lambda_3 = -13.7 - lambda_1 in every block: independent errors would be wrong."""
    values, errors = [], []
    for seed in range(1, 301):
        first = 0.9 + 0.5 * np.random.default_rng(seed).standard_normal((1, 400))
        series = np.stack([first, np.zeros_like(first), -13.7 - first], axis=2)
        exponents = series.mean(axis=(0, 1))
        found = derived(exponents, series, 1, 3, hamiltonian=False)
        values.append((found.dimension, found.entropy, found.doubling_time))
        errors.append((found.dimension_error, found.entropy_error, found.doubling_time_error))
    spread, claimed = np.std(values, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    np.testing.assert_allclose(claimed, spread, rtol=0.12)
    # with independent errors: D = 2 + a / (13.7 + a), dD = (13.7 / (13.7 + a)^2) da
    assert spread[0] == pytest.approx(13.7 / 14.6**2 * 0.5 / 20.0, rel=0.12)


def test_zeros_suggest_integrals() -> None:
    series = np.full((1, 50, 4), [0.05, 0.0, 0.0, -0.05])
    found = derived(series[0, 0], series, 2, 4, hamiltonian=True)
    assert (found.integrals, found.dimension, found.dimension_error) == (1, 4.0, 0.0)
    assert derived(series[0, 0], series, 2, 4, hamiltonian=False).integrals is None
    torus = derived(np.zeros(4), 0.0 * series, 4, 4, hamiltonian=True)
    assert torus.integrals == 2
    assert np.isnan(torus.dimension)
    assert torus.doubling_time == np.inf


def test_bits() -> None:
    np.testing.assert_allclose(bits(np.array([np.log(2.0), -1.0])), [1.0, -1.4426950408889634], rtol=1e-15)
    np.testing.assert_allclose(bits(np.array([0.05]), orbits=0.16), [0.45084220027780105], rtol=1e-14)
