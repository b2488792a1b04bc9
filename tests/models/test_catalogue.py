"""The catalogue: documented examples, invariants that are invariant, and equations as printed."""

import numpy as np
import pytest

from hpcfit.models.catalogue import NAMES, find
from hpcfit.models.derivatives import derivative, jacobians
from hpcfit.models.evaluate import evaluate
from hpcfit.records import InputError

MODELS = [find(name) for name in NAMES]
JUMPING = ("bouncing_ball", "dosing")
WITH_INVARIANT = [made for made in MODELS if made.invariant is not None]


def named(made):
    return made.name


def points(made, count=20, seed=1):
    """Random t, u, p in which nothing is zero or equal."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        u = rng.uniform(0.2, 1.2, len(made.states))
        yield rng.uniform(0, 3), u, rng.uniform(0.3, 1.5, len(made.parameters))


def numbers(made, symbols, t, u, p):
    return np.array([float(value) for value in evaluate(made, symbols, t, u, p)])


@pytest.mark.parametrize("made", MODELS, ids=named)
def test_every_entry_has_a_description_and_a_complete_example_with_its_source(made):
    assert made.description
    assert made.examples
    for example in made.examples:
        assert tuple(example.start) == made.states
        assert tuple(example.parameters) == made.parameters
        assert example.source
        assert 0 < example.spacing < example.duration
        start, parameters = list(example.start.values()), list(example.parameters.values())
        assert np.isfinite(numbers(made, made.equations, 0.0, start, parameters)).all()


def test_names_are_found_and_unique():
    assert len(set(NAMES)) == len(NAMES)
    assert [made.name for made in MODELS] == list(NAMES)
    with pytest.raises(InputError, match="no model 'nothing'"):
        find("nothing")


@pytest.mark.parametrize("made", [made for made in WITH_INVARIANT if made.kind == "flow"], ids=named)
def test_an_invariant_of_a_flow_does_not_change_along_it(made):
    """grad I . f = 0, relative to the size of its terms."""
    gradient = [derivative([made.invariant], made.graph.leaf("state", i))[0] for i in range(len(made.states))]
    for point in points(made):
        terms = numbers(made, gradient, *point) * numbers(made, made.equations, *point)
        assert abs(terms.sum()) <= 1e-14 * np.abs(terms).sum()
        assert np.abs(terms).sum() > 1e-3, "an invariant that does not depend on the state says nothing"


@pytest.mark.parametrize("made", [made for made in WITH_INVARIANT if made.kind == "map"], ids=named)
def test_an_invariant_of_a_map_is_the_same_after_an_iteration(made):
    example = made.examples[0]
    t, u, p = 0.0, list(example.start.values()), list(example.parameters.values())
    start = numbers(made, [made.invariant], t, u, p)[0]
    for _ in range(20):
        u = numbers(made, made.equations, t, u, p)
        assert numbers(made, [made.invariant], t, u, p)[0] == pytest.approx(start, abs=1e-13)


def test_the_models_with_an_invariant():
    assert {made.name for made in WITH_INVARIANT} >= {
        "henon_heiles",
        "double_pendulum",
        "springs_masses",
        "spring_pendulum",
        "fibonacci_trace",
    }


def test_the_quadratic_class_at_the_values_of_lorenz_is_lorenz():
    quadratic, lorenz = find("quadratic"), find("lorenz")
    example = quadratic.examples[0]
    assert len(quadratic.parameters) == 30
    assert list(example.start.values()) == list(lorenz.examples[0].start.values())
    p, q = list(example.parameters.values()), list(lorenz.examples[0].parameters.values())
    for _, u, _ in points(lorenz):
        for scale in (1.0, 30.0):
            ours = numbers(quadratic, quadratic.equations, 0.0, scale * u, p)
            theirs = numbers(lorenz, lorenz.equations, 0.0, scale * u, q)
            assert ours == pytest.approx(theirs, rel=1e-13, abs=1e-12)


def test_the_quadratic_class_is_equation_18():
    """y_i' = sum over j <= k of a_i_jk y_j y_k + sum of b_i_j y_j + c_i, coefficient by coefficient."""
    made = find("quadratic")
    y = np.array([2.0, 3.0, 5.0])
    for i in (1, 2, 3):
        for j in (1, 2, 3):
            for k in range(j, 4):
                assert _only(made, f"a{i}_{j}{k}", y)[i - 1] == y[j - 1] * y[k - 1]
            assert _only(made, f"b{i}_{j}", y)[i - 1] == y[j - 1]
        assert _only(made, f"c{i}", y).tolist() == [float(i == row) for row in (1, 2, 3)]


def _only(made, name, y):
    p = [float(parameter == name) for parameter in made.parameters]
    return numbers(made, made.equations, 0.0, y, p)


@pytest.mark.parametrize("size", [4, 5, 40])
def test_lorenz96_is_the_plain_formula(size):
    made = find("lorenz96", size)
    rng = np.random.default_rng(size)
    x, f = rng.normal(0, 3, size), 8.25
    formula = [(x[(i + 1) % size] - x[(i - 2) % size]) * x[(i - 1) % size] - x[i] + f for i in range(size)]
    assert numbers(made, made.equations, 0.0, x, [f]) == pytest.approx(formula, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("size", [4, 5, 40])
def test_the_jacobian_of_lorenz96(size):
    """d/dx_{i+1} = x_{i-1}, d/dx_{i-2} = -x_{i-1}, d/dx_{i-1} = x_{i+1} - x_{i-2}, d/dx_i = -1."""
    made = find("lorenz96", size)
    x = np.random.default_rng(size).normal(0, 3, size)
    expected = np.zeros((size, size))
    for i in range(size):
        expected[i, (i + 1) % size] += x[(i - 1) % size]
        expected[i, (i - 2) % size] -= x[(i - 1) % size]
        expected[i, (i - 1) % size] += x[(i + 1) % size] - x[(i - 2) % size]
        expected[i, i] -= 1.0
    by_state, by_parameter = jacobians(made)
    assert np.array([numbers(made, row, 0.0, x, [8.0]) for row in by_state]) == pytest.approx(
        expected, rel=1e-14
    )
    assert [row[0].constant for row in by_parameter] == [1.0] * size


def test_the_jacobian_of_henon_heiles_is_equation_5_6():
    made = find("henon_heiles")
    by_state, by_parameter = jacobians(made)
    for point in points(made):
        _, (x1, x2, _, _), (a, b, c) = point
        expected = [
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [-(a + 2 * x2), -2 * x1, 0, 0],
            [-2 * x1, -(b + 2 * c * x2), 0, 0],
        ]
        by_abc = [[0, 0, 0], [0, 0, 0], [-x1, 0, 0], [0, -x2, -(x2**2)]]
        assert np.array([numbers(made, row, *point) for row in by_state]) == pytest.approx(
            np.array(expected), rel=1e-15
        )
        assert np.array([numbers(made, row, *point) for row in by_parameter]) == pytest.approx(
            np.array(by_abc), rel=1e-15
        )


def test_the_energy_of_henon_heiles_gives_its_forces():
    """x3' = -dU/dx1 and x4' = -dU/dx2 (5.3, 5.4) with the energy of (5.1, 5.2)."""
    made = find("henon_heiles")
    energy = made.quantity("energy")
    slopes = [derivative([energy], made.graph.leaf("state", i))[0] for i in range(4)]
    for point in points(made):
        ours = numbers(made, made.equations, *point)
        d1, d2, d3, d4 = numbers(made, slopes, *point)
        assert ours == pytest.approx([d3, d4, -d1, -d2], rel=1e-14)


def test_only_the_resistor_frictions_and_jumps_are_not_smooth():
    assert {made.name for made in MODELS if not made.smooth} == {
        "chua",
        "pendulum_driven",
        *JUMPING,
        "stick_slip",
    }
