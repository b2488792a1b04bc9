"""The readable body of growing frames, against systems whose exponents are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from hpcfit.flow.frames import grow, start_bundle
from hpcfit.flow.frames_reference import grow_by_intervals, orthonormal
from hpcfit.models.catalogue import find
from hpcfit.models.define import model
from hpcfit.records import InputError, Outcome


@model(states="x y", parameters="a b c")
def triangular(t, u, p):
    return p.a * u.x + p.b * u.y, p.c * u.y


def test_a_linear_system_stretches_as_its_exponential() -> None:
    bundle = start_bundle(triangular, [[1.0, 2.0]], [[0.3, 2.0, -0.9]])
    growth = grow_by_intervals(triangular, bundle, blocks=3, block=2.0, interval=0.5)
    matrix = np.array([[0.3, 2.0], [0.0, -0.9]])
    frame = np.eye(2)
    for b in range(3):
        frame, sizes = (part[0] for part in orthonormal((expm(2.0 * matrix) @ frame)[None]))
        np.testing.assert_allclose(growth.logarithms[0, b], np.log(sizes), rtol=1e-12)
    np.testing.assert_allclose(growth.bundle.frames[0], frame, atol=1e-12)
    np.testing.assert_allclose(growth.divergence, 2.0 * (0.3 - 0.9), rtol=1e-12)
    np.testing.assert_allclose(growth.logarithms.sum(axis=2), growth.divergence, rtol=1e-12)


def test_orthonormal_keeps_the_order_and_the_sense_of_the_columns() -> None:
    frames = np.random.default_rng(3).standard_normal((4, 5, 3))
    q, sizes = orthonormal(frames)
    np.testing.assert_allclose(np.einsum("lik,lim->lkm", q, q), np.tile(np.eye(3), (4, 1, 1)), atol=1e-14)
    np.testing.assert_allclose(np.einsum("lik,lik->lk", q, frames), sizes, rtol=1e-13)
    assert (sizes > 0).all()


def test_a_trajectory_that_stops_does_not_hold_up_the_others() -> None:
    @model(states="x", parameters="")
    def explosive(t, u, p):
        return (u.x * u.x,)

    bundle = start_bundle(explosive, [[-1.0], [0.4], [np.nan]], np.zeros((1, 0)))
    growth = grow_by_intervals(explosive, bundle, blocks=4, block=1.0, interval=0.5)
    assert [failure.lane for failure in growth.failures] == [1, 2]
    assert growth.failures[0].outcome is Outcome.BLOW_UP
    assert growth.failures[0].time == pytest.approx(2.5, abs=1e-6)
    assert np.isfinite(growth.logarithms[1, :2]).all()
    assert np.isnan(growth.logarithms[1, 2:]).all()
    assert np.isnan(growth.bundle.states[1]).all()
    ends = np.arange(5.0)
    np.testing.assert_allclose(growth.logarithms[0, :, 0], -2 * np.diff(np.log(1 + ends)), rtol=1e-11)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": 0}, "0 blocks"),
        ({"block": 0.0}, "block is 0"),
        ({"interval": -1.0}, "interval is -1"),
        ({"block": 2.5}, "whole number of iterations"),
        ({"begin": 0.5}, "begin is 0.5"),
    ],
)
def test_what_cannot_be_meant_is_said(options, words) -> None:
    discrete = find("henon_map")
    bundle = start_bundle(discrete, [[0.1, 0.1]], [[1.4, 0.3]])
    with pytest.raises(InputError, match=words):
        grow(discrete, bundle, **{"blocks": 1, "block": 2.0, "interval": 1.0, **options})
