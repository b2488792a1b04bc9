"""Frames along paths that jump and slide: against the readable body, and exponents with known values."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import Jump
from hpcfit import math as m
from hpcfit.flow.frames import grow, start_bundle
from hpcfit.flow.frames_reference import grow_by_intervals
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Outcome

PACE = {"blocks": 4, "block": 5.0, "interval": 0.5}


@model(
    states="x v",
    parameters="e strength",
    jumps={
        "wall": lambda t, u, p: Jump(rises=u.x - 1.0, to={"v": -p.e * u.v}),
        "kick": lambda t, u, p: Jump(at=0.7, every=1.3, to={"v": u.v + p.strength * m.cos(u.x)}),
    },
)
def hammer(t, u, p):
    """A damped swing that is kicked in a rhythm and meets a wall."""
    return u.v, -m.sin(u.x) - 0.05 * u.v + 0.4


@pytest.mark.parametrize("lanes", [1, 9])
def test_jumps_at_roots_and_times_bend_frames_as_in_the_readable_body(lanes):
    starts = np.array([0.1, 0.5]) + 0.01 * np.arange(lanes)[:, None]
    bundle = start_bundle(hammer, starts, [0.8, 0.6])
    ours, readable = grow(hammer, bundle, **PACE), grow_by_intervals(hammer, bundle, **PACE)
    assert ours.failures == readable.failures == ()
    assert ours.bundle.states == pytest.approx(readable.bundle.states, rel=1e-9)
    assert ours.logarithms.sum(axis=1) == pytest.approx(readable.logarithms.sum(axis=1), rel=1e-9, abs=1e-9)
    assert ours.divergence == pytest.approx(readable.divergence, abs=1e-10)
    assert ours.logarithms.sum(axis=2) == pytest.approx(ours.divergence, abs=1e-11)


def test_blocks_may_be_divided_among_calls_as_one_likes():
    bundle = start_bundle(hammer, [[0.1, 0.5], [0.3, 0.2]], [0.8, 0.6])
    whole = grow(hammer, bundle, **PACE)
    first = grow(hammer, bundle, **(PACE | {"blocks": 1}))
    rest = grow(hammer, first.bundle, **(PACE | {"blocks": 3}))
    assert (rest.bundle.states == whole.bundle.states).all()
    assert (rest.bundle.frames == whole.bundle.frames).all()


def test_a_jump_at_the_end_of_a_block_happens_once():
    """x' = -x with x doubled at t = 1, 2, 3, ...: in blocks of 1 and of 2 units of time."""
    made = model(
        states="x",
        jumps={"double": lambda t, u, p: Jump(at=1.0, every=1.0, to={"x": 2 * u.x})},
        name="doubling",
    )(lambda t, u, p: -u.x)
    for block in (1.0, 2.0):
        bundle = start_bundle(made, [1.0], [])
        grown = grow(made, bundle, blocks=int(8 / block), block=block, interval=0.3)
        assert grown.logarithms.sum() == pytest.approx(
            7 * np.log(2) - 8, rel=1e-14
        )  # that at t = 8 is to come
        assert grown.bundle.states[0, 0] == pytest.approx(2**7 * np.exp(-8), rel=1e-13)


def test_a_path_that_sticks_has_fewer_exponents_and_says_so():
    """The block on a belt: its cycle forgets a direction; one tangent can be followed, two cannot."""
    made = find("stick_slip")
    example = made.examples[0]
    start, parameters = list(example.start.values()), list(example.parameters.values())
    both = grow(made, start_bundle(made, start, parameters), **PACE)
    (failure,) = both.failures
    assert failure.outcome is Outcome.STICKING
    assert "the path slides along the switch slip" in failure.cause
    assert "ask for fewer exponents" in failure.cause
    one = grow(made, start_bundle(made, start, parameters, np.array([[1.0], [0.0]])), **PACE)
    assert one.failures == ()
    readable = grow_by_intervals(
        made, start_bundle(made, start, parameters, np.array([[1.0], [0.0]])), **PACE
    )
    assert one.logarithms == pytest.approx(readable.logarithms, abs=1e-10)
