"""Growing frames in compiled lanes: against the readable body and known answers, and to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpcfit.flow.frames import carry, grow, start_bundle
from hpcfit.flow.frames_reference import grow_by_intervals, orthonormal
from hpcfit.math import cos, pi, sign
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Bundle

PARTS = ("logarithms", "divergence")


def example_bundle(made, lanes=1, tangents=None) -> Bundle:
    """Trajectories that begin a little apart."""
    example = made.examples[0]
    start = np.array([example.start[state] for state in made.states])
    starts = start + 1e-3 * np.random.default_rng(7).standard_normal((lanes, len(start)))
    frames = None if tangents is None else np.eye(len(start))[:, :tangents]
    return start_bundle(made, starts, [example.parameters[name] for name in made.parameters], frames)


def pace(made, blocks=3) -> dict:
    """Blocks in which tangents grow, but stay within what doubles resolve."""
    spacing = made.examples[0].duration / 60
    return {"blocks": blocks, "block": 5 * spacing, "interval": spacing, "begin": 0.3}


def same(a: Bundle, b: Bundle, lanes: slice = slice(None)) -> None:
    for name in ("states", "frames"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name)[lanes])


@pytest.mark.parametrize("name", ["lorenz", "henon_heiles", "pendulum_driven", "pentagonal", "predator_prey"])
def test_blocks_are_those_of_the_readable_body(name: str) -> None:
    """To 1e-10 of the largest logarithm, for Taylor lanes of autonomous, driven and rational systems."""
    made = find(name)
    bundle, options = example_bundle(made, lanes=2), pace(made)
    fast, slow = grow(made, bundle, **options), grow_by_intervals(made, bundle, **options)
    allowed = 1e-10 * np.abs(slow.logarithms).max()
    for part in PARTS:
        np.testing.assert_allclose(getattr(fast, part), getattr(slow, part), rtol=0, atol=allowed)
    np.testing.assert_allclose(fast.bundle.frames, slow.bundle.frames, atol=1e-9)
    assert fast.bundle.blocks == slow.bundle.blocks == 3
    assert fast.failures == ()


@pytest.mark.parametrize("name", ["henon_heiles", "driven_pendulum", "chua", "spring_pendulum"])
def test_the_sum_of_all_logarithms_is_the_divergence(name: str) -> None:
    made = find(name)
    growth = grow(made, example_bundle(made), **pace(made, blocks=10))
    scale = max(1.0, np.abs(growth.logarithms).sum(axis=2).max())
    np.testing.assert_allclose(growth.logarithms.sum(axis=2), growth.divergence, atol=1e-12 * scale)


@pytest.mark.parametrize(("name", "lanes"), [("henon_heiles", 11), ("lorenz", 5), ("chua", 9)])
def test_a_trajectory_has_the_same_bits_alone_in_company_and_in_any_division(name: str, lanes: int) -> None:
    made = find(name)
    bundle, options = example_bundle(made, lanes), pace(made, blocks=4)
    together = grow(made, bundle, **options)
    for lane in range(0, lanes, 4):
        own = slice(lane, lane + 1)
        single = Bundle(0, bundle.states[own], bundle.frames[own], bundle.parameters[own])
        alone = grow(made, single, **options)  # the lanes are its tangents
        for part in PARTS:
            np.testing.assert_array_equal(getattr(alone, part)[0], getattr(together, part)[lane])
        same(alone.bundle, together.bundle, own)
    first = grow(made, bundle, **(options | {"blocks": 1}))
    rest = grow(made, first.bundle, **(options | {"blocks": 3}))
    for part in PARTS:
        joined = np.concatenate([getattr(first, part), getattr(rest, part)], axis=1)
        np.testing.assert_array_equal(joined, getattr(together, part))
    same(rest.bundle, together.bundle)
    np.testing.assert_array_equal(first.steps + rest.steps, together.steps)


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_first_columns_do_not_know_of_the_others(lanes: int) -> None:
    made = find("lorenz")
    options = pace(made)
    every, two = (grow(made, example_bundle(made, lanes, k), **options) for k in (3, 2))
    np.testing.assert_array_equal(every.logarithms[..., :2], two.logarithms)
    np.testing.assert_array_equal(every.bundle.frames[..., :2], two.bundle.frames)
    np.testing.assert_array_equal(every.divergence, two.divergence)


def test_many_columns_in_lanes_and_as_lanes() -> None:
    """13 tangents fill the lanes alone; 12 of each are carried by the lanes of trajectories."""
    made = find("lorenz96", 13)
    options = {"blocks": 2, "block": 1.0, "interval": 0.2}
    wide = grow(made, example_bundle(made, 2, 13), **options)
    narrow = grow(made, example_bundle(made, 2, 12), **options)
    np.testing.assert_array_equal(wide.logarithms[..., :12], narrow.logarithms)
    slow = grow_by_intervals(made, example_bundle(made, 2, 13), **options)
    np.testing.assert_allclose(wide.logarithms, slow.logarithms, atol=1e-10)
    np.testing.assert_allclose(wide.logarithms.sum(axis=2), wide.divergence, atol=1e-12 * 13)


@model(states="x y z", parameters="a b c")
def linear(t, u, p):
    return p.a * u.x + u.y, p.b * u.y + u.z, p.c * u.z


@pytest.mark.parametrize("start", [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
def test_a_linear_system_has_its_eigenvalues_as_exponents_also_at_rest(start) -> None:
    """Triangular with an orthonormal start along the flag of invariant subspaces: exact in every block."""
    bundle = start_bundle(linear, [start] * 2, [[0.5, -0.25, -2.0]])
    growth = grow(linear, bundle, blocks=5, block=4.0, interval=1.0)
    expected = np.broadcast_to(4.0 * np.array([0.5, -0.25, -2.0]), (2, 5, 3))
    np.testing.assert_allclose(growth.logarithms, expected, rtol=1e-12)
    np.testing.assert_allclose(growth.divergence, 4.0 * (0.5 - 0.25 - 2.0), rtol=1e-12)


def test_stiff_rotation_at_rest_is_resolved() -> None:
    """The state does not move, so that only the size of f_x tells how long steps may be."""

    @model(states="x y", parameters="w d")
    def damped(t, u, p):
        return p.w * u.y - p.d * u.x, -p.w * u.x - p.d * u.y

    bundle = start_bundle(damped, [[0.0, 0.0]], [[300.0, 0.5]])
    growth = grow(damped, bundle, blocks=2, block=1.0, interval=10.0)
    np.testing.assert_allclose(growth.logarithms, -0.5, rtol=1e-10)
    angle = 600.0
    rotation = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    np.testing.assert_allclose(growth.bundle.frames[0], rotation, atol=1e-10)


@model(states="x v w", parameters="a")
def jerk(t, u, p):
    """Linz and Sprott (1999): x''' = -a x'' - x' + |x| - 1."""
    return u.v, u.w, -p.a * u.w - u.v + abs(u.x) - 1


@model(states="x v", parameters="m")
def relay(t, u, p):
    """An oscillator that a relay drives: f jumps where the sign of x changes."""
    return u.v, -u.x + p.m * sign(u.x) - 0.2 * u.v


@pytest.mark.parametrize(
    ("made", "start", "parameters"), [(jerk, [0.1, 0.1, 0.1], [0.6]), (relay, [0.3, -1.0], [0.7])]
)
def test_kinks_bend_the_tangents_as_in_the_readable_body(made, start, parameters) -> None:
    bundle = start_bundle(made, [start], [parameters])
    options = {"blocks": 4, "block": 5.0, "interval": 1.0}
    fast, slow = grow(made, bundle, **options), grow_by_intervals(made, bundle, **options)
    for part in PARTS:
        np.testing.assert_allclose(getattr(fast, part), getattr(slow, part), atol=1e-9)
    np.testing.assert_allclose(fast.logarithms.sum(axis=2), fast.divergence, atol=1e-11)
    three = grow(made, start_bundle(made, [start] * 3, [parameters]), **options)
    np.testing.assert_array_equal(three.logarithms[1], fast.logarithms[0])


def test_a_driven_system_far_from_the_origin_of_time() -> None:
    """Block 10^6 of a forced oscillator whose force has a period of one block: the same as block 0."""

    @model(states="x v", parameters="m a")
    def forced(t, u, p):
        return u.v, p.m * (1 - u.x**2) * u.v - u.x + p.a * cos(2 * pi * t)

    bundle = start_bundle(forced, [[1.0, 0.5]], [[2.0, 1.3]])
    options = {"blocks": 2, "block": 1.0, "interval": 0.25}
    near, far = grow(forced, bundle, **options), grow(forced, replace(bundle, blocks=1_000_000), **options)
    assert far.bundle.blocks == 1_000_002
    np.testing.assert_allclose(far.logarithms, near.logarithms, atol=1e-8)
    slow = grow_by_intervals(forced, bundle, **options)
    np.testing.assert_allclose(near.logarithms, slow.logarithms, atol=1e-11)


def test_the_layout_of_arrays_in_memory_does_not_matter() -> None:
    made = find("lorenz")
    bundle, options = example_bundle(made, lanes=3), pace(made)
    turned = replace(
        bundle,
        states=np.asfortranarray(bundle.states),
        frames=np.moveaxis(np.moveaxis(bundle.frames, 2, 0).copy(), 0, 2),
        parameters=np.broadcast_to(bundle.parameters[0], bundle.parameters.shape),
    )
    same(grow(made, turned, **options).bundle, grow(made, bundle, **options).bundle)
    for method in ("taylor", "taylor128"):
        carried = [
            carry(made, each, np.zeros(3, dtype=int), block=1.0, interval=0.3, method=method)
            for each in (turned, bundle)
        ]
        same(carried[0].bundle, carried[1].bundle)


def test_128_bits_agree_and_go_on_where_they_stopped() -> None:
    made = find("lorenz")
    bundle, options = example_bundle(made, lanes=2), {"block": 2.0, "interval": 0.5}
    double = grow(made, bundle, blocks=2, **options)
    exact = grow(made, bundle, blocks=2, method="taylor128", **options)
    np.testing.assert_allclose(double.logarithms, exact.logarithms, atol=1e-10)
    np.testing.assert_allclose(exact.logarithms.sum(axis=2), exact.divergence, atol=1e-13)
    first = grow(made, bundle, blocks=1, method="taylor128", **options)
    assert first.bundle.low is not None
    assert np.abs(first.bundle.low.states).max() > 0
    second = grow(made, first.bundle, blocks=1, method="taylor128", **options)
    np.testing.assert_array_equal(second.logarithms[:, 0], exact.logarithms[:, 1])
    same(second.bundle, exact.bundle)
    same(second.bundle.low, exact.bundle.low)


def test_columns_that_are_carried_apart_follow_the_same_orbit() -> None:
    """Ranks hold some columns each: states, times and steps are those of the whole frame, to the last bit."""
    made = find("lorenz96", 13)
    bundle, options = example_bundle(made), {"block": 1.0, "interval": 0.3}
    whole = grow(made, bundle, blocks=1, **options)
    reached, logarithms, steps = np.zeros(1), np.zeros((1, 13)), 0
    while reached[0] < options["block"]:
        columns = (slice(0, 5), slice(5, 5), slice(5, 13))
        parts = [
            carry(made, replace(bundle, frames=bundle.frames[..., c].copy()), reached, **options)
            for c in columns
        ]
        for part in parts[1:]:
            np.testing.assert_array_equal(part.bundle.states, parts[0].bundle.states)
            np.testing.assert_array_equal(part.reached, parts[0].reached)
            np.testing.assert_array_equal(part.divergence, parts[0].divergence)
        frames, sizes = orthonormal(np.concatenate([part.bundle.frames for part in parts], axis=2))
        logarithms += np.log(sizes)
        bundle, reached = replace(bundle, states=parts[0].bundle.states, frames=frames), parts[0].reached
        steps += parts[0].steps[0]
    np.testing.assert_array_equal(bundle.states, whole.bundle.states)
    np.testing.assert_allclose(logarithms, whole.logarithms[:, 0], atol=1e-9)
    assert steps == whole.steps[0]
    slow = carry(made, example_bundle(made), np.zeros(1), method="extrapolation", **options)
    fast = carry(made, example_bundle(made), np.zeros(1), **(options | {"interval": 1.0}))
    assert slow.reached[0] == 0.3
    assert fast.reached[0] == 1.0
    np.testing.assert_allclose(fast.bundle.states, whole.bundle.states, atol=1e-11)
