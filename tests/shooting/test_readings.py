"""Readings: states and observables at any time, with derivatives by states and parameters."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.models.strings import model_from_strings
from hpcfit.shooting.readings import Readings
from tests.shooting.driven import DRIVEN, TRUTH, read

NAMES = ("h", "y", "g")
RNG = np.random.default_rng(1)
TIMES = RNG.uniform(0.0, 3.0, (4, 5))
STATES = RNG.normal(size=(2, 4, 5, 2))
PARAMETERS = np.array([TRUTH, (0.7, -0.3, 1.1)])[:, None, None]


def by_hand(states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """(2, 4, 5, 3) in long doubles."""
    wide = np.longdouble
    return np.stack(
        [
            np.stack(
                [read(name, TIMES.astype(wide), states[m].astype(wide), parameters[m, 0, 0]) for m in (0, 1)]
            )
            for name in NAMES
        ],
        axis=-1,
    )


def test_values_are_those_of_the_formulas() -> None:
    values = Readings(DRIVEN, NAMES).values(TIMES, STATES, PARAMETERS)
    np.testing.assert_allclose(values, by_hand(STATES, PARAMETERS).astype(float), rtol=1e-14, atol=1e-14)


def test_slopes_are_central_differences_in_long_doubles() -> None:
    by_state, by_parameter = Readings(DRIVEN, NAMES).slopes(TIMES, STATES, PARAMETERS)
    assert (by_state.shape, by_parameter.shape) == ((2, 4, 5, 3, 2), (2, 4, 5, 3, 3))
    h = np.longdouble(2.0**-22)
    for slopes, moved in (
        (by_state, lambda step: by_hand(STATES + step, PARAMETERS)),
        (by_parameter, lambda step: by_hand(STATES, PARAMETERS + step)),
    ):
        for i in range(slopes.shape[-1]):
            step = h * (np.arange(slopes.shape[-1]) == i)
            difference = (moved(step) - moved(-step)) / (2 * h)
            assert np.abs(difference - slopes[..., i]).max() < 1e-11


def test_observing_states_alone_is_the_same_as_observables_that_are_states() -> None:
    copies = model_from_strings(
        "copies",
        states=["x", "y"],
        parameters=["a", "b", "c"],
        equations={"x": "y", "y": "-a*x"},
        observables={"first": "x", "second": "y", "constant": "2"},
    )
    plain, traced = Readings(copies, ("y", "x")), Readings(copies, ("second", "first"))
    assert plain.only_states
    assert not traced.only_states
    values = plain.values(TIMES, STATES, PARAMETERS)
    np.testing.assert_array_equal(values, STATES[..., ::-1])
    np.testing.assert_array_equal(traced.values(TIMES, STATES, PARAMETERS), values)
    for one, other in zip(
        plain.slopes(TIMES, STATES, PARAMETERS), traced.slopes(TIMES, STATES, PARAMETERS), strict=True
    ):
        np.testing.assert_array_equal(np.broadcast_to(one, other.shape), other)  # stored once
    constant = Readings(copies, ("constant",))
    assert (constant.values(TIMES, STATES, PARAMETERS) == 2.0).all()
    assert not np.any(constant.slopes(TIMES, STATES, PARAMETERS)[0])


def test_an_unknown_name_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no state or observable 'gg'"):
        Readings(DRIVEN, ("gg",))
