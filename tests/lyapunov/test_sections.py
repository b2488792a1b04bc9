"""Poincaré sections against formulas, and the area that the energy permits."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import InputError, model
from hpcfit.lyapunov.sections import section
from hpcfit.models.catalogue import find

HENON_HEILES = np.array([1.0, 1.0, -1.0])


@model(
    states="q1 q2 p1 p2",
    parameters="w",
    invariant=lambda t, u, p: (u.p1**2 + u.p2**2 + u.q1**2 + p.w**2 * u.q2**2) / 2,
)
def oscillators(t, u, p):
    """Two oscillators: points of a section at q1 = 0 lie on an ellipse in (q2, p2)."""
    return u.p1, u.p2, -u.q1, -(p.w**2) * u.q2


def test_oscillators_pierce_the_plane_once_a_period() -> None:
    start = np.array([[0.0, 0.3, 1.0, 0.2]])
    found = section(
        oscillators, start, np.array([[0.7]]), surface="q1", direction=1, axes=("q2", "p2"), duration=100.0
    )
    times = 2.0 * np.pi * np.arange(1, 16)
    phase = 0.7 * times
    exact = np.column_stack(
        [
            0.3 * np.cos(phase) + 0.2 / 0.7 * np.sin(phase),
            0.2 * np.cos(phase) - 0.3 * 0.7 * np.sin(phase),
        ]
    )
    np.testing.assert_allclose(found.points, exact, atol=1e-12)
    assert (found.trajectories == 0).all()
    energy = (1.0 + 0.2**2 + 0.7**2 * 0.3**2) / 2.0
    reach = (found.border[:, 1] ** 2 + 0.49 * found.border[:, 0] ** 2) / 2.0
    np.testing.assert_allclose(reach, energy, rtol=1e-12)
    np.testing.assert_allclose(found.border.max(axis=0), np.sqrt(2.0 * energy) / [0.7, 1.0], rtol=1e-3)


@pytest.mark.parametrize(("direction", "expected"), [(1, 1), (-1, 1), (0, 2)])
def test_directions(direction: int, expected: int) -> None:
    found = section(
        oscillators,
        np.array([[0.5, 0.3, 1.0, 0.2]]),
        np.array([[0.7]]),
        surface="q1",
        direction=direction,
        axes=("q2", "p2"),
        duration=2.0 * np.pi * 10.0,
    )
    assert len(found.points) == expected * 10


def test_the_area_of_figure_2() -> None:
    """U(0, x2) + x4^2 / 2 <= E (5.7); the points fill a large part of it and never leave it."""
    start = np.array([[0.0, 0.0, 0.3, -0.41]])
    found = section(
        find("henon_heiles"),
        start,
        HENON_HEILES[None],
        surface="x1",
        direction=1,
        axes=("x2", "x4"),
        duration=4e3,
    )
    energy = 0.12905

    def excess(points: np.ndarray) -> np.ndarray:
        x2, x4 = points.T
        return x2**2 / 2.0 - x2**3 / 3.0 + x4**2 / 2.0 - energy

    assert np.abs(excess(found.border)).max() < 1e-14
    assert excess(found.points).max() < 1e-12
    np.testing.assert_array_equal(found.border[0], found.border[-1])
    np.testing.assert_allclose(found.border.min(axis=0), [-0.446, -0.508], atol=2e-3)
    np.testing.assert_allclose(found.border.max(axis=0), [0.692, 0.508], atol=2e-3)
    assert len(found.points) > 500


def test_a_tilted_plane() -> None:
    """x1 = 0.2 x2: the least energy over x3 is that at x3 = 0, on the plane."""
    start = np.array([[0.02, 0.1, 0.157, 0.03]])
    found = section(
        find("henon_heiles"),
        start,
        HENON_HEILES[None],
        surface="x1 - 0.2*x2",
        direction=0,
        axes=("x2", "x4"),
        duration=500.0,
    )

    def energy(x1: np.ndarray, x2: np.ndarray, x3: np.ndarray, x4: np.ndarray) -> np.ndarray:
        return (x3**2 + x4**2 + x1**2 + x2**2) / 2 + x1**2 * x2 - x2**3 / 3

    x2, x4 = found.border.T
    np.testing.assert_allclose(energy(0.2 * x2, x2, 0.0 * x2, x4), energy(*start[0]), rtol=2e-11)


def test_several_trajectories_and_one_that_escapes() -> None:
    starts = np.array([[0.0, 0.0, 0.3, -0.41], [0.0, 0.5, 0.9, 0.5], [0.0, 0.1, 0.2, 0.1]])
    found = section(
        find("henon_heiles"),
        starts,
        np.repeat(HENON_HEILES[None], 3, axis=0),
        surface="x1",
        direction=1,
        axes=("x2", "energy"),
        duration=300.0,
    )
    assert set(found.trajectories) >= {0, 2}
    own = found.points[found.trajectories == 2, 1]
    np.testing.assert_allclose(own, 0.1**2 / 2 - 0.1**3 / 3 + 0.05 / 2, rtol=1e-12)
    assert found.border.shape == (0, 2)  # an observable is no state


def test_it_ends_when_there_are_enough_points() -> None:
    found = section(
        oscillators,
        np.array([[0.0, 0.3, 1.0, 0.2]]),
        np.array([[0.7]]),
        surface="q1",
        direction=1,
        axes=("q2", "p2"),
        duration=1e5,
        most=100,
    )
    assert 100 <= len(found.points) < 400


def test_iterates_of_a_map() -> None:
    found = section(
        find("henon_map"),
        np.array([[0.1, 0.1]]),
        np.array([[1.4, 0.3]]),
        surface="",
        direction=0,
        axes=("x", "y"),
        duration=50,
    )
    x, y = found.points.T
    assert len(x) == 50
    np.testing.assert_allclose(x[1:], 1.0 - 1.4 * x[:-1] ** 2 + y[:-1], rtol=1e-13)
    assert found.border.shape == (0, 2)


def test_a_surface_that_is_no_expression_is_refused() -> None:
    with pytest.raises(InputError, match="x9"):
        section(
            find("henon_heiles"),
            np.zeros((1, 4)),
            HENON_HEILES[None],
            surface="x9",
            direction=1,
            axes=("x2", "x4"),
            duration=1.0,
        )
