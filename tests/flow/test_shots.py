"""Shots: the bits of `propagate`, for all pieces of all members at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit.flow.propagate import propagate
from hpcfit.flow.shots import Shots, can_shoot, shoot
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model, model
from hpcfit.models.strings import model_from_strings

MANY = 10**6  # steps
FLOWS = ("lorenz", "henon_heiles", "pendulum_driven", "chua")
MAPS = ("henon_map", "fibonacci_trace")
EXPLOSION = model_from_strings("explosion", states=["x"], parameters=["a"], equations={"x": "a*x**2"})
FREE = model_from_strings("free", states=["x", "v"], parameters=[], equations={"x": "v", "v": "-x"})
ESCAPE = model_from_strings("escape", states=["x"], parameters=["a"], equations={"x": "a*x**2"}, kind="map")


def system(name: str, members: int, pieces: int, outputs: int, seed: int = 1) -> tuple[Any, ...]:
    """Model, times (L, 1 + T), starts (M, L, n), parameters (M, n_p)."""
    rng = np.random.default_rng(seed)
    made = find(name)
    example = made.examples[0]
    start, values = np.array(list(example.start.values())), np.array(list(example.parameters.values()))
    if made.kind == "map":
        steps = rng.integers(1, 4, (pieces, outputs + 1)).astype(float)
    else:
        steps = rng.uniform(0.01, 0.3, (pieces, outputs + 1))
    starts = start * (1.0 + 0.1 * rng.standard_normal((members, pieces, len(start))))
    parameters = values * (1.0 + 0.02 * rng.standard_normal((members, len(values))))
    return made, np.cumsum(steps, axis=1), starts, parameters


def by_propagate(
    made: Model,
    times: np.ndarray,
    starts: np.ndarray,
    parameters: np.ndarray,
    *,
    sensitivities: bool,
    max_steps: int = MANY,
    tolerance: float | None = None,
) -> Shots:
    """The same, lane by lane, through the usual door."""
    members, _, n = starts.shape
    pieces = len(times)
    lanes = propagate(
        made,
        np.tile(times, (members, 1)),
        starts[:, :pieces].reshape(-1, n),
        np.repeat(parameters, pieces, axis=0),
        sensitivities=sensitivities,
        max_steps=max_steps,
        tolerance=tolerance,
    )
    arrived = np.ones((members, pieces), dtype=bool)
    for failure in lanes.failures:
        arrived[divmod(failure.lane, pieces)] = False

    def after(table: np.ndarray | None) -> np.ndarray | None:
        return None if table is None else table[:, 1:].reshape(members, pieces, *table[:, 1:].shape[1:])

    states = after(lanes.states)
    assert states is not None
    return Shots(states, after(lanes.by_start), after(lanes.by_parameters), arrived.all(axis=1))


def assert_same(one: Shots, other: Shots) -> None:
    for name in ("states", "by_start", "by_parameters", "arrived"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


def both(*given: Any, sensitivities: bool, max_steps: int = MANY, tolerance: float | None = None) -> Shots:
    """The shots, which have the bits of `propagate`."""
    options: dict[str, Any] = {
        "sensitivities": sensitivities,
        "max_steps": max_steps,
        "tolerance": tolerance,
    }
    shots = shoot(*given, **options)
    assert_same(shots, by_propagate(*given, **options))
    return shots


@pytest.mark.parametrize("sensitivities", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("name", [*FLOWS, *MAPS])
def test_shots_have_the_bits_of_propagate(name: str, outputs: int, sensitivities: bool) -> None:
    """5 members with 7 pieces each: lanes of one crew belong to two members."""
    shots = both(*system(name, 5, 7, outputs), sensitivities=sensitivities)
    n, n_p = len(find(name).states), len(find(name).parameters)
    assert shots.states.shape == (5, 7, outputs, n)
    assert shots.arrived.tolist() == [True] * 5
    assert np.isfinite(shots.states).all()
    if sensitivities:
        assert shots.by_start is not None
        assert shots.by_parameters is not None
        assert shots.by_start.shape == (5, 7, outputs, n, n)
        assert shots.by_parameters.shape == (5, 7, outputs, n, n_p)
    else:
        assert shots.by_start is shots.by_parameters is None


@pytest.mark.parametrize(("members", "pieces"), [(1, 1), (1, 8), (8, 1), (3, 8), (2, 12), (40, 30)])
def test_any_number_of_members_and_pieces(members: int, pieces: int) -> None:
    both(*system("lorenz", members, pieces, 1), sensitivities=True)
    both(*system("henon_map", members, pieces, 2), sensitivities=True)


@pytest.mark.parametrize("tolerance", [1e-8, 1e-12])
def test_another_tolerance(tolerance: float) -> None:
    given = system("lorenz", 3, 5, 2)
    rough = both(*given, sensitivities=True, tolerance=tolerance)
    exact = both(*given, sensitivities=True)
    assert 0.0 < np.abs(rough.states - exact.states).max() < 1e4 * tolerance


@pytest.mark.parametrize("name", ["lorenz", "henon_map"])
def test_starts_beyond_the_pieces_are_not_looked_at(name: str) -> None:
    """Nodes are one more than intervals; also where several are left over."""
    made, times, starts, parameters = system(name, 5, 7, 2)
    fewer = shoot(made, times, starts, parameters, sensitivities=True, tolerance=None, max_steps=MANY)
    for extra in (1, 3):
        more = np.concatenate([starts, np.full((5, extra, starts.shape[2]), np.nan)], axis=1)
        assert_same(both(made, times, more, parameters, sensitivities=True), fewer)


def test_starts_in_any_layout() -> None:
    """Some of the nodes, as where intervals differ in the number of their outputs."""
    made, times, starts, parameters = system("lorenz", 5, 8, 1)
    some = np.array([0, 3, 4])
    part = both(made, times[some], starts[:, some], parameters, sensitivities=True)
    whole = both(made, times, starts, parameters, sensitivities=True)
    np.testing.assert_array_equal(part.states, whole.states[:, some])
    turned = np.asfortranarray(starts)
    assert_same(both(made, times, turned, np.asfortranarray(parameters), sensitivities=True), whole)


def test_models_without_parameters() -> None:
    rng = np.random.default_rng(2)
    times = np.cumsum(rng.uniform(0.1, 0.5, (4, 3)), axis=1)
    shots = both(FREE, times, rng.normal(size=(6, 4, 2)), np.zeros((6, 0)), sensitivities=True)
    assert shots.by_parameters is not None
    assert shots.by_parameters.shape == (6, 4, 2, 2, 0)


# Pieces that do not arrive


@pytest.mark.parametrize("sensitivities", [False, True])
def test_a_piece_that_explodes_is_lost_from_there_on_and_only_its_member(sensitivities: bool) -> None:
    """x = 1 / (1 / x0 - a t) is infinite at t = 1 / (a x0)."""
    times = np.tile([0.0, 0.25, 0.5, 1.0], (3, 1))
    starts = np.full((5, 3, 1), 0.5)
    starts[1, 2], starts[4, 0] = 3.0, 100.0  # at 1/3, before the second output, and before the first
    shots = both(EXPLOSION, times, starts, np.ones((5, 1)), sensitivities=sensitivities)
    assert shots.arrived.tolist() == [True, False, True, True, False]
    assert np.isnan(shots.states[1, 2, :, 0]).tolist() == [False, True, True]
    assert np.isnan(shots.states[4, 0]).all()
    lost = np.isnan(shots.states).any(axis=(2, 3))
    assert np.argwhere(lost).tolist() == [[1, 2], [4, 0]]
    alone = shoot(
        EXPLOSION,
        times,
        starts[[0, 2, 3]],
        np.ones((3, 1)),
        sensitivities=sensitivities,
        tolerance=None,
        max_steps=MANY,
    )
    for name in ("states", "by_start", "by_parameters"):
        if getattr(alone, name) is not None:
            np.testing.assert_array_equal(getattr(alone, name), getattr(shots, name)[[0, 2, 3]])


@pytest.mark.parametrize("sensitivities", [False, True])
@pytest.mark.parametrize("name", ["lorenz", "henon_map"])
def test_starts_and_parameters_that_are_not_finite(name: str, sensitivities: bool) -> None:
    made, times, starts, parameters = system(name, 9, 4, 2)
    starts[1, 2, 0], starts[3, 0, 1] = np.nan, np.inf
    parameters[6, 1] = np.nan
    shots = both(made, times, starts, parameters, sensitivities=sensitivities)
    assert np.flatnonzero(~shots.arrived).tolist() == [1, 3, 6]
    assert np.isnan(shots.states[6]).all()
    assert np.argwhere(np.isnan(shots.states[[1, 3]]).all(axis=(2, 3))).tolist() == [[0, 2], [1, 0]]
    if sensitivities:
        for table in (shots.by_start, shots.by_parameters):
            assert table is not None
            assert (np.isnan(table).all(axis=(2, 3, 4)) == np.isnan(shots.states).all(axis=(2, 3))).all()


def test_a_map_that_escapes() -> None:
    times = np.array([[0.0, 1.0, 20.0], [0.0, 2.0, 3.0]])
    starts = np.full((3, 2, 1), 0.5)
    starts[1] = 10.0
    shots = both(ESCAPE, times, starts, np.ones((3, 1)), sensitivities=True)
    assert shots.arrived.tolist() == [True, False, True]
    assert np.isnan(shots.states[1, :, :, 0]).tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize("name", ["lorenz", "henon_map"])
def test_a_spent_budget_is_no_arrival(name: str) -> None:
    made, times, starts, parameters = system(name, 5, 7, 3)
    times = times.copy()
    times[4] = times[4, 0] + 40.0 * np.arange(4.0)
    shots = both(made, times, starts, parameters, sensitivities=True, max_steps=100)
    assert not shots.arrived.any()
    assert np.isnan(shots.states[:, 4, -1]).all()
    np.testing.assert_array_equal(np.isnan(shots.states).any(axis=(0, 2, 3)), np.arange(7) == 4)


@model(states="x v y", parameters="a b mu")
def mixed(t, u, p):
    """Blows up (large y) or sticks (large mu); in between, it lives with kinks."""
    return u.v, -u.x - p.mu * abs(u.v) - 0.1 * u.v, p.a * u.y**2 - p.b * u.y


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 20), st.integers(1, 12), st.integers(1, 3), st.booleans())
def test_anything_anywhere(seed: int, members: int, pieces: int, outputs: int, sensitivities: bool) -> None:
    """Pieces of very different lengths, some of which do not arrive."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(10.0 ** rng.uniform(-3, 0.5, (pieces, outputs + 1)), axis=1)
    starts = rng.normal(size=(members, pieces + 1, 3)) * 10.0 ** rng.uniform(-1, 1.5, (members, 1, 1))
    starts[rng.random((members, pieces + 1)) < 0.05] = np.nan
    parameters = rng.uniform(0.1, 1.5, (members, 3))
    both(mixed, times, starts, parameters, sensitivities=sensitivities, max_steps=2000)


def test_who_can_shoot() -> None:
    opaque = model(states="x", parameters="a", opaque=True)(lambda t, u, p: -p.a * u.x)
    assert can_shoot(find("lorenz"), None)
    assert can_shoot(find("henon_map"), "taylor")
    assert not can_shoot(find("lorenz"), "taylor128")
    assert not can_shoot(find("lorenz"), "extrapolation")
    assert not can_shoot(opaque, None)


def test_inputs_are_left_as_they_are() -> None:
    made, *arrays = system("lorenz", 3, 4, 2)
    copies = [array.copy() for array in arrays]
    shoot(made, *arrays, sensitivities=True, tolerance=None, max_steps=MANY)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
