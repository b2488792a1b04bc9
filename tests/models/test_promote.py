"""Parameters as states that do not change: the same mathematics under other names."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit import model
from hpcfit.flow.propagate import propagate
from hpcfit.models import catalogue
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.models.promote import with_states
from hpcfit.records import InputError

NAMES = ("lorenz", "henon_heiles", "henon_map", "double_pendulum", "driven_pendulum", "lorenz96")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 2, 99])
def test_equations_observables_and_invariant_have_the_same_values(name: str, count: int) -> None:
    plain = catalogue.find(name, None)
    local = plain.parameters[-count:]
    moved = with_states(plain, local[::-1])
    assert moved.states == (*plain.states, *local)
    assert moved.parameters == plain.parameters[: len(plain.parameters) - len(local)]
    assert tuple(moved.observables) == tuple(plain.observables)
    rng = np.random.default_rng(1)
    u, p = rng.uniform(0.5, 1.5, len(plain.states)), rng.uniform(0.5, 1.5, len(plain.parameters))
    kept = len(moved.parameters)
    values = _values(moved, 0.3, [*u, *p[kept:]], p[:kept])
    n, rest = len(plain.states), p[kept:] if plain.kind == "map" else np.zeros(len(local))
    np.testing.assert_array_equal(np.delete(values, np.s_[n : n + len(local)]), _values(plain, 0.3, u, p))
    np.testing.assert_array_equal(values[n : n + len(local)], rest)


def _values(of: Model, t: float, u: object, p: object) -> np.ndarray:
    assert of.graph is not None
    outputs = [*of.equations, *of.observables.values(), *([of.invariant] if of.invariant is not None else [])]
    return np.array(Program(of.graph, outputs)(t, u, p), dtype=float)


def test_the_model_itself_stays_as_it_is() -> None:
    plain = catalogue.find("lorenz", None)
    before = len(plain.graph.nodes) if plain.graph else 0
    with_states(plain, ("r",))
    assert plain.states == ("x", "y", "z")
    assert plain.graph is not None
    assert len(plain.graph.nodes) == before


def test_the_path_and_its_sensitivities_are_those_of_the_parameter() -> None:
    plain = catalogue.find("lorenz", None)
    moved = with_states(plain, ("r",))
    times = np.linspace(0.0, 1.0, 5)
    one = propagate(plain, times, [1.0, 2.0, 20.0], [10.0, 28.0, 8 / 3], sensitivities=True)
    two = propagate(moved, times, [1.0, 2.0, 20.0, 28.0], [10.0, 8 / 3], sensitivities=True)
    assert one.by_parameters is not None
    assert two.by_start is not None
    np.testing.assert_allclose(two.states[0, :, :3], one.states[0], rtol=1e-12, atol=1e-12)
    assert (two.states[0, :, 3] == 28.0).all()
    np.testing.assert_allclose(
        two.by_start[0, :, :3, 3], one.by_parameters[0, :, :, 1], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(two.by_start[0, :, 3], np.tile([0.0, 0.0, 0.0, 1.0], (5, 1)))


def test_an_opaque_model_is_called_with_what_it_knows() -> None:
    @model(states="x", parameters="a b", opaque=True)
    def growth(t, u, p):
        return p.a * u.x - p.b

    moved = with_states(growth, ("a",))
    assert moved.states == ("x", "a")
    lanes = propagate(moved, np.array([0.0, 1.0]), [1.0, 0.5], [0.2])
    exact = 0.4 + 0.6 * np.exp(0.5)  # x' = a x - b
    np.testing.assert_allclose(lanes.states[0, 1], [exact, 0.5], rtol=1e-9)


def test_a_name_that_is_no_parameter_is_refused() -> None:
    with pytest.raises(InputError, match="no parameter 'sgma'; did you mean 'sigma'"):
        with_states(catalogue.find("lorenz", None), ("sgma",))
