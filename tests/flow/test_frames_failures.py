"""Trajectories that cannot go on: reported with place and cause, without holding up the others."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.flow.frames import carry, grow, start_bundle
from hpcfit.math import log, sign
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import Outcome


@model(states="x", parameters="")
def explosive(t, u, p):
    return (u.x * u.x,)


def explosive_bundle(starts):
    return start_bundle(explosive, [[x] for x in starts], np.zeros((1, 0)))


@pytest.mark.parametrize("lanes", [1, 12])
def test_a_blow_up_is_a_value_and_the_others_finish(lanes: int) -> None:
    starts = np.full(lanes, -1.0)
    starts[0] = 0.4
    growth = grow(explosive, explosive_bundle(starts), blocks=4, block=1.0, interval=0.5)
    assert [failure.lane for failure in growth.failures] == [0]
    assert growth.failures[0].outcome is Outcome.BLOW_UP
    assert growth.failures[0].time == pytest.approx(2.5, abs=1e-6)
    assert np.isfinite(growth.logarithms[0, :2]).all()
    assert np.isnan(growth.logarithms[0, 2:]).all()
    assert np.isnan(growth.divergence[0, 2:]).all()
    assert np.isnan(growth.bundle.states[0]).all()
    expected = np.broadcast_to(-2 * np.diff(np.log(1 + np.arange(5.0))), (lanes - 1, 4))
    np.testing.assert_allclose(growth.logarithms[1:, :, 0], expected, rtol=1e-12)


def test_lanes_that_have_stopped_and_lanes_without_numbers_are_refused_and_the_others_go_on() -> None:
    first = grow(explosive, explosive_bundle([0.4, -1.0, np.nan]), blocks=3, block=1.0, interval=0.5)
    assert [failure.lane for failure in first.failures] == [0, 2]
    second = grow(explosive, first.bundle, blocks=1, block=1.0, interval=0.5)
    assert {failure.lane: failure.outcome for failure in second.failures} == dict.fromkeys(
        (0, 2), Outcome.BAD_INPUT
    )
    assert second.failures[0].time == 3.0
    assert second.logarithms[1, 0, 0] == pytest.approx(-2 * np.log(5 / 4), rel=1e-12)
    carried = carry(explosive, first.bundle, np.zeros(3), block=1.0, interval=0.5)
    assert np.isfinite(carried.reached).tolist() == [False, True, False]
    np.testing.assert_array_equal(np.isfinite(carried.divergence), np.isfinite(carried.reached))


def test_a_logarithm_of_a_negative_number_is_named() -> None:
    @model(states="x y", parameters="")
    def falling(t, u, p):
        return -1.0 + 0 * u.x, log(u.x)

    growth = grow(
        falling, start_bundle(falling, [[1.5, 0.0]], np.zeros((1, 0))), blocks=2, block=1.0, interval=1.0
    )
    (failure,) = growth.failures
    assert failure.time == pytest.approx(1.5, abs=1e-3)
    assert np.isfinite(growth.logarithms[0, 0]).all()


def test_a_spent_budget_tells_how_far_it_was() -> None:
    made = find("lorenz")
    bundle = start_bundle(made, [[1.0, 1.0, 20.0]] * 2, [[10.0, 28.0, 8 / 3]])
    growth = grow(made, bundle, blocks=1, block=100.0, interval=1.0, max_steps=50)
    assert [failure.outcome for failure in growth.failures] == [Outcome.STEP_BUDGET] * 2
    assert "50 steps" in growth.failures[0].cause
    np.testing.assert_array_equal(growth.steps, 50)


def test_tangents_that_shrink_to_nothing_are_reported_with_the_remedy() -> None:
    @model(states="x y", parameters="a")
    def contracting(t, u, p):
        return u.y, -p.a * u.y

    bundle = start_bundle(contracting, [[0.0, 1e-300]], [[100.0]])
    growth = grow(contracting, bundle, blocks=1, block=50.0, interval=20.0)
    (failure,) = growth.failures
    assert failure.outcome is Outcome.NOT_FINITE
    assert "shorter interval" in failure.cause
    fine = grow(contracting, bundle, blocks=1, block=50.0, interval=0.5)
    np.testing.assert_allclose(fine.logarithms[0, 0].sum(), -5000.0, rtol=1e-12)


def test_sliding_along_a_kink_is_reported() -> None:
    @model(states="x y", parameters="")
    def sliding(t, u, p):
        return -sign(u.x), u.x

    growth = grow(
        sliding, start_bundle(sliding, [[0.5, 0.0]], np.zeros((1, 0))), blocks=3, block=1.0, interval=0.2
    )
    (failure,) = growth.failures
    assert failure.outcome is Outcome.STICKING
    assert failure.time == pytest.approx(0.5, abs=1e-6)


def test_a_watch_is_told_and_can_interrupt() -> None:
    made = find("lorenz")
    bundle = start_bundle(made, [[1.0, 1.0, 20.0]], [[10.0, 28.0, 8 / 3]])
    told: list[float] = []

    def watch(part: float) -> None:
        told.append(part)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grow(made, bundle, blocks=1, block=1e9, interval=1.0, watch=watch)
    assert len(told) == 2
    assert 0 <= told[0] <= told[1] < 1
