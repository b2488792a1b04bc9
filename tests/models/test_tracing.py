"""Model functions may use Python's arithmetic, numpy and hpcfit.math; what cannot be traced says so."""

import math

import numpy as np
import pytest

import hpcfit.math as m
from hpcfit import InputError, model
from hpcfit.models.evaluate import evaluate
from hpcfit.models.functions import FUNCTIONS


def traced(function, states="x y", parameters="a b", **more):
    return model(states=states, parameters=parameters, name="made", **more)(function)


def values(made, u, p, t=0.0):
    return [float(value) for value in evaluate(made, made.equations, t, u, p)]


# each: what a model returns for its first state, and the same with numbers
ARITHMETIC = {
    "float left": lambda x, y: 2.0 * x - 3 / y + 2**x - 1,
    "float right": lambda x, y: x * 2.0 - y / 3 + x**2 - 1,
    "np.float64 left": lambda x, y: (
        np.float64(2) * x - np.float64(3) / y + np.float64(2) ** x - np.float64(1)
    ),
    "np.float64 right": lambda x, y: x * np.float64(2) - y / np.float64(3) + x ** np.float64(2),
    "np.int64 left": lambda x, y: np.int64(2) * x + np.int64(1),
    "0-d array": lambda x, y: np.array(2.0) * x + y * np.array(3.0),
    "abs()": lambda x, y: abs(x - y) + abs(-y),
    "unary": lambda x, y: -x + +y,
    "comparison": lambda x, y: (x < y) + 2 * (x > y) + 4 * (x <= y) + 8 * (x >= y) + 16 * (x > 0.5),
    "np.float64 compared": lambda x, y: 1.0 * (np.float64(0.5) < x) + 2.0 * (np.float64(0.5) >= y),
    "np.where": lambda x, y: np.where(x > y, x, y * 2),
    "np.where of numbers": lambda x, y: np.where(x > 0, 1.0, -1.0),
    "np.maximum": lambda x, y: np.maximum(x, y) - np.minimum(x, 0.1),
    "np.maximum, number left": lambda x, y: np.maximum(0.5, x) + np.minimum(np.float64(0.5), y),
    "np.square": lambda x, y: np.square(x) + np.reciprocal(y) + np.positive(x) - np.negative(y),
    "np.abs": lambda x, y: np.abs(x) + np.fabs(y) + np.absolute(x - y),
    "np.greater": lambda x, y: 1.0 * np.greater(x, y) + 2.0 * np.less_equal(x, y) + np.greater_equal(x, y),
    "np.add": lambda x, y: np.add(x, y) * np.subtract(x, 1) / np.multiply(2, y) + np.divide(x, y),
    "np.power": lambda x, y: np.power(x, 3) + np.power(2.0, y),
}
ARITHMETIC |= {
    f"np.{f.__name__}": lambda x, y, f=f: f(0.5 * x)
    for f in (np.exp, np.log, np.sqrt, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan)
}


ARITHMETIC |= {
    f"np.{f.__name__}": lambda x, y, f=f: f(x - 1) for f in (np.sinh, np.cosh, np.tanh, np.sign, np.square)
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize(("x", "y"), [(0.7, 1.9), (1.9, 0.7)])
def test_arithmetic_and_numpy_on_symbols_mean_what_they_mean_on_numbers(name, x, y):
    body = ARITHMETIC[name]
    made = traced(lambda t, u, p: (body(u.x, u.y), u.y))
    assert values(made, [x, y], [0, 0])[0] == pytest.approx(float(body(x, y)), rel=1e-15)


BY_NAME = [name for name, function in FUNCTIONS.items() if function.by_name]


@pytest.mark.parametrize("name", BY_NAME)
def test_hpcfit_math_on_symbols_equals_hpcfit_math_on_numbers(name):
    function = getattr(m, name)
    numbers = (0.4, 0.7, -0.2)[: FUNCTIONS[name].arity]
    made = traced(lambda t, u, p: (function(*u[: len(numbers)]), 0, 0), states="x y z")
    assert values(made, [0.4, 0.7, -0.2], [0, 0])[0] == float(function(*numbers))


def test_states_by_name_number_loop_and_slice_are_the_same():
    made = traced(lambda t, u, p: (u.x * p.a + u[1] * p[1], sum(u) + sum(v for v in p[0:2]) + len(u)))
    assert values(made, [2.0, 3.0], [5.0, 7.0]) == [31.0, 19.0]


VECTORS = {
    "u * p.a": lambda t, u, p: u * p.a,
    "p.a * u": lambda t, u, p: p.a * u,
    "2.0 * u": lambda t, u, p: 2.0 * u,
    "np.float64 * u": lambda t, u, p: np.float64(2.0) * u,
    "p.a - u": lambda t, u, p: p.a - u,
    "u ** 2": lambda t, u, p: u**2,
    "-u": lambda t, u, p: -u,
    "np.sin(u)": lambda t, u, p: np.sin(u),
    "m.sin(u)": lambda t, u, p: m.sin(u),
    "np.maximum(u, 0.5)": lambda t, u, p: np.maximum(u, 0.5),
    "m.max(u, 0.5)": lambda t, u, p: m.max(u, 0.5) - m.min(np.roll(u, 1), u),
    "m.where(u > 0, ...)": lambda t, u, p: m.where(u > 0, u, p.a) + m.abs(u),
    "np.roll": lambda t, u, p: (np.roll(u, -1) - np.roll(u, 2)) * np.roll(u, 1) - u + p.a,
    "array * p.a": lambda t, u, p: np.array([1.0, 2.0, 3.0]) * p.a + u,
    "p.a * array": lambda t, u, p: p.a * np.array([1.0, 2.0, 3.0]) + u,
    "object array": lambda t, u, p: np.array([u[0], u[1] * p.a, 3.0], dtype=object) * 2,
    "matrix": lambda t, u, p: np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 0.5], [1.0, 1.0, 1.0]]) @ u,
    "np.dot": lambda t, u, p: np.dot(np.eye(3) * 2.0, u),
    "np.sum": lambda t, u, p: np.asarray(u) * np.sum(u) - np.mean(u),
    "np.concatenate": lambda t, u, p: np.concatenate([[u[2]], u[0:2]]) * p.a,
    "list": lambda t, u, p: [u[0] + t, u[1], u[2]],
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_states_mean_what_they_mean_on_numbers(name):
    numbers, a = np.array([0.3, 1.2, -0.7]), 1.7
    made = traced(VECTORS[name], states="x y z", parameters="a")

    class Numbers:
        a = 1.7

    assert values(made, numbers, [a], t=0.25) == pytest.approx(
        [float(v) for v in VECTORS[name](0.25, numbers, Numbers)], rel=1e-14
    )


def test_one_state_may_be_returned_without_brackets():
    assert values(model(states="x", parameters="k")(lambda t, u, p: -p.k * u.x), [2.0], [3.0]) == [-6.0]
    assert values(model(states="x")(lambda t, u, p: 1), [2.0], []) == [1.0]


def test_an_if_on_a_symbol_is_refused_with_the_remedy():
    with pytest.raises(
        InputError, match=r"made: the branch depends on .* where\(condition, a, b\).*opaque=True"
    ):
        traced(lambda t, u, p: (1.0 if u.x > 0 else -1.0, 0.0))


@pytest.mark.parametrize("body", [lambda x: x == 0, lambda x: x != 0, lambda x: x in [1.0]])
def test_equality_of_symbols_is_refused_with_the_remedy(body):
    with pytest.raises(InputError, match=r"equality of symbols is undecided; use < or > inside where\(\)"):
        traced(lambda t, u, p: (body(u.x), 0.0))


@pytest.mark.filterwarnings("ignore:elementwise comparison failed:DeprecationWarning")  # numpy 1.24's own
def test_equality_with_a_numpy_number_is_refused():
    with pytest.raises(InputError, match=r"made: .*equality of symbols is undecided"):
        traced(lambda t, u, p: (np.float64(0) == u.x, 0.0))


def test_pythons_math_is_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"made: .*has no number.* use hpcfit\.math or numpy"):
        traced(lambda t, u, p: (math.sin(u.x), 0.0))


UNTRACEABLE = {
    "modulo": lambda t, u, p: (u.x % 2, 0.0),
    "floor": lambda t, u, p: (np.floor(u.x), 0.0),
    "clip": lambda t, u, p: (np.clip(u.x, 0, 1), 0.0),
    "text": lambda t, u, p: (u.x + "1", 0.0),
    "none": lambda t, u, p: (None, 0.0),
    "complex": lambda t, u, p: (1j * u.x, 0.0),
    "truth": lambda t, u, p: (True, 0.0),
    "index": lambda t, u, p: (u[7], 0.0),
    "zero division": lambda t, u, p: (u.x * (1 / 0), 0.0),
    "overflow": lambda t, u, p: (u.x * 10**400, 0.0),
    "missing key": lambda t, u, p: ({}["k"], 0.0),
    "vector as equation": lambda t, u, p: (u, 0.0),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_cannot_be_traced_is_refused_in_the_name_of_the_model(name):
    with pytest.raises(InputError, match=r"^made: "):
        traced(UNTRACEABLE[name])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda t, u, p: (u.x,), r"2 states \(x y\) but 1 equations"),
        (lambda t, u, p: (u.x, u.y, u.x), r"2 states \(x y\) but 3 equations"),
        (lambda t, u, p: u.x, r"2 states \(x y\) but 1 equations"),
        (lambda t, u, p: {"x": u.x}, "returned dict; return one expression per state"),
        (lambda t, u, p: None, "returned NoneType; return one expression per state"),
    ],
)
def test_the_wrong_number_of_equations_is_named(returned, message):
    with pytest.raises(InputError, match=f"made: {message}"):
        traced(returned)


def test_observables_and_the_invariant_are_traced_in_the_same_graph():
    made = traced(
        lambda t, u, p: (u.y, -u.x),
        observables={"radius": lambda t, u, p: m.sqrt(u.x**2 + u.y**2)},
        invariant=lambda t, u, p: u.x**2 + u.y**2,
    )
    assert made.quantities == ("x", "y", "radius")
    assert float(evaluate(made, [made.quantity("radius")], 0.0, [3.0, 4.0], [0, 0])[0]) == 5.0
    assert float(evaluate(made, [made.invariant], 0.0, [3.0, 4.0], [0, 0])[0]) == 25.0
    assert made.text(made.quantity("radius")) == "sqrt(x*x + y*y)"


def test_smooth_means_without_kinks():
    assert traced(lambda t, u, p: (m.sin(u.x), u.y)).smooth
    assert not traced(lambda t, u, p: (abs(u.x), u.y)).smooth
    assert not traced(lambda t, u, p: (m.where(u.x < 1, u.x, 1.0), u.y)).smooth
    assert not traced(lambda t, u, p: (u.x, u.y), opaque=True).smooth


def test_an_opaque_model_is_not_called_when_it_is_made():
    calls = []
    made = traced(lambda t, u, p: calls.append(t) or (u.x, u.y), opaque=True)
    assert made.opaque
    assert calls == []
    with pytest.raises(InputError, match="made: an opaque model has no expressions"):
        made.quantity("x")


def test_an_opaque_model_has_no_observables():
    with pytest.raises(
        InputError, match=r"made: observables, invariants, .* need a model that can be traced"
    ):
        traced(lambda t, u, p: (u.x, u.y), opaque=True, invariant=lambda t, u, p: u.x)


def test_the_model_keeps_name_description_and_units():
    @model(states="x", parameters="k", units={"x": "m", "t": "s"})
    def decay(t, u, p):
        """Exponential decay."""
        return -p.k * u.x

    assert (decay.name, decay.description, decay.units) == (
        "decay",
        "Exponential decay.",
        {"x": "m", "t": "s"},
    )


def test_hpcfit_math_computes_on_arrays_and_counts_arguments():
    assert m.max(np.array([1.0, 3.0]), 2.0).tolist() == [2.0, 3.0]
    with pytest.raises(InputError, match=r"where\(\) takes 3 arguments, 2 given"):
        m.where(1.0, 2.0)
    with pytest.raises(AttributeError, match="did you mean 'sin'"):
        _ = m.sinn
