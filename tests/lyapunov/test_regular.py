"""Regular trajectories: recognised by growth like ln t, whatever else happens and whenever chaos begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcfit.flow.frames import grow, start_bundle
from hpcfit.lyapunov.regular import octaves, regular
from hpcfit.lyapunov.starts import symplectic_frame
from hpcfit.models.catalogue import find

BLOCKS, BLOCK = 2000, 10.0
TIMES = BLOCK * np.arange(BLOCKS + 1)


def increments(accumulated: np.ndarray) -> np.ndarray:
    return np.diff(accumulated)[None, :, None]


def shear(rate: float) -> np.ndarray:
    """A tangent that grows linearly and oscillates, as on a torus."""
    wave = 0.8 * (np.sin(0.3 * TIMES) + np.sin(np.sqrt(2.0) * TIMES))
    return np.log(1.0 + rate * TIMES) + wave


@pytest.mark.parametrize("rate", [1e-3, 0.1, 10.0])
def test_linear_growth_is_regular(rate: float) -> None:
    assert regular(increments(shear(rate))).all()


@pytest.mark.parametrize("accumulated", [np.zeros(BLOCKS + 1), -3.0 * TIMES, np.sin(TIMES)])
def test_periodic_orbits_and_equilibria_are_regular(accumulated: np.ndarray) -> None:
    assert regular(increments(accumulated)).all()


@pytest.mark.parametrize("exponent", [0.002, 0.05, 1.0])
def test_exponential_growth_is_chaotic(exponent: float) -> None:
    assert not regular(increments(shear(0.1) + exponent * TIMES)).any()


@pytest.mark.parametrize("first", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("last", [0.01, 0.3, 1.0])
def test_chaos_in_part_of_the_run_is_chaotic_whenever_it_is(first: float, last: float) -> None:
    """Regular until `first`, then chaotic for a part of `last` at most, then regular again."""
    begin, end = first * TIMES[-1], min(first + last, 1.0) * TIMES[-1]
    assert not regular(increments(shear(0.1) + 0.05 * (np.clip(TIMES, begin, end) - begin))).any()


@given(st.integers(1, 10**6))
def test_octaves_end_with_the_run(blocks: int) -> None:
    times = octaves(blocks)
    assert times[0] == 0
    assert times[1] == 1
    assert times[-1] == blocks
    assert (np.diff(times) > 0).all()
    assert (times[2:] >= 2 * times[1:-1]).all()


def test_orbits_of_henon_and_heiles_are_told_apart() -> None:
    """At E = 1/8: two islands of the section, and the chaotic orbit of table I; all in pairs."""
    places = np.array([[0.3, 0.1], [0.0, 0.2], [0.0, -0.35]])
    speed = np.sqrt(0.25 - places[:, 0] ** 2 + 2.0 / 3.0 * places[:, 0] ** 3 - places[:, 1] ** 2)
    starts = np.column_stack([np.zeros(3), places[:, 0], speed, places[:, 1]])
    slopes = np.column_stack([np.zeros(3), places[:, 0] - places[:, 0] ** 2, speed, places[:, 1]])
    form = np.kron([[0.0, 1.0], [-1.0, 0.0]], np.eye(2))
    frames = np.array([symplectic_frame(form, slope) for slope in slopes])
    bundle = start_bundle(find("henon_heiles"), starts, [1.0, 1.0, -1.0], frames)
    grown = grow(find("henon_heiles"), bundle, blocks=500, block=10.0, interval=5.0).logarithms
    assert regular(grown).tolist() == [True, True, False]
    total = grown.sum(axis=1)
    assert np.abs(total + total[:, ::-1]).max() / 5000.0 < 1e-14
