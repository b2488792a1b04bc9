"""simulate: the API of the README, and what it says when it is used wrongly."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hpcfit import InputError, Noise, model, simulate
from hpcfit.models.catalogue import find
from hpcfit.records import Outcome

TIMES = np.linspace(0.0, 2.0, 21)


@model(states="x y z", parameters="sigma r b")
def lorenz(t, u, p):
    return p.sigma * (u.y - u.x), u.x * (p.r - u.z) - u.y, u.x * u.y - p.b * u.z


START = {"x": 1, "y": 1, "z": 20}
VALUES = {"sigma": 10, "r": 28, "b": 8 / 3}


def test_shapes_are_those_of_the_contract() -> None:
    path = simulate(lorenz, start=START, parameters=VALUES, times=TIMES, sensitivities=True)
    assert path.states.shape == (21, 3)
    assert path.by_start is not None
    assert path.by_parameters is not None
    assert (path.by_start.shape, path.by_parameters.shape) == ((21, 3, 3), (21, 3, 3))
    assert path.converged
    np.testing.assert_array_equal(path.states[0], [1.0, 1.0, 20.0])


def test_the_order_of_names_does_not_matter_and_sequences_are_in_the_models_order() -> None:
    one = simulate(lorenz, start=START, parameters=VALUES, times=TIMES)
    two = simulate(lorenz, start=dict(reversed(START.items())), parameters=[10, 28, 8 / 3], times=TIMES)
    np.testing.assert_array_equal(one.states, two.states)


def test_sensitivities_are_the_slopes_of_the_path() -> None:
    path = simulate(lorenz, start=START, parameters=VALUES, times=TIMES, sensitivities=True)
    assert path.by_parameters is not None
    h = 1e-5
    up, down = (
        simulate(lorenz, start=START, parameters=VALUES | {"r": 28 + s * h}, times=TIMES) for s in (1, -1)
    )
    slope = (up.states - down.states) / (2 * h)
    np.testing.assert_allclose(path.by_parameters[:, :, 1], slope, rtol=1e-6, atol=1e-6)


def test_observables_and_invariant_of_hénon_heiles() -> None:
    hénon_heiles = find("henon_heiles")
    example = hénon_heiles.examples[0]
    path = simulate(
        hénon_heiles,
        start=example.start,
        parameters=example.parameters,
        times=np.arange(0.0, 20.0, 0.2),
        observe=["energy", "x1"],
        noise=Noise(sd={"energy": 0.01, "x1": 0.05}),
        seed=3,
    )
    assert path.exact is not None
    assert path.observed is not None
    assert path.invariant is not None
    np.testing.assert_allclose(path.invariant, 0.12905, atol=1e-11)  # (5.7) of Kallrath et al. 1993
    np.testing.assert_array_equal(path.exact.values[:, 0], path.invariant)
    np.testing.assert_array_equal(path.exact.values[:, 1], path.states[:, 0])
    np.testing.assert_array_equal(path.observed.sigma[0], [0.01, 0.05])


def test_a_path_that_ends_early_says_when_and_why() -> None:
    @model(states="x", parameters="a")
    def explosion(t, u, p):
        return p.a * u.x**2

    path = simulate(
        explosion, start=[1.0], parameters=[1.0], times=[0.0, 0.5, 2.0], noise=Noise(fraction=0.1)
    )
    assert path.outcome is Outcome.BLOW_UP
    assert not path.converged
    assert re.match(r"at t = (0\.99999|1\.00000)", path.cause), path.cause
    np.testing.assert_allclose(path.states[:, 0], [1.0, 2.0, np.nan], rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": {"x": 1, "y": 1}}, "start lacks 'z'"),
        ({"start": {**START, "w": 1}}, "start names 'w'"),
        ({"start": [1.0, 2.0]}, r"start has shape \(2,\); give 3: x y z"),
        ({"parameters": {**VALUES, "rr": 1}}, "parameters names 'rr'; did you mean 'r'"),
        ({"times": [0.0, 1.0, 1.0]}, r"times must increase: t\[2\] = 1 after t\[1\] = 1"),
        ({"times": []}, "no times"),
        ({"times": [[0.0, 1.0]]}, "times have shape"),
        ({"observe": ["q"]}, "cannot observe 'q'"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"method": "euler"}, "method 'euler' is unknown"),
        ({"noise": Noise()}, "noise has no size"),
    ],
)
def test_wrong_arguments_name_the_value_and_the_remedy(change: dict[str, object], message: str) -> None:
    arguments = {"start": START, "parameters": VALUES, "times": TIMES} | change
    with pytest.raises(InputError, match=message):
        simulate(lorenz, **arguments)
