"""The expression graph: equal subexpressions are one node, and simplifying never changes a value."""

import itertools

import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.models.evaluate import Program
from hpcfit.models.graph import Graph, text
from hpcfit.records import InputError
from tests.models import mpmath_oracle as oracle
from tests.models.random_expressions import random_expression


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def x(graph):
    return graph.leaf("state", 0)


@pytest.fixture
def y(graph):
    return graph.leaf("state", 1)


def value(symbol, *u):
    return float(Program(symbol.graph, [symbol])(0.0, u, [])[0])


def same_bits(a, b):
    return np.float64(a).tobytes() == np.float64(b).tobytes()


def test_equal_subexpressions_are_one_node(graph, x, y):
    assert (m.sin(x * y) + 1).index == (1 + m.sin(y * x)).index
    before = len(graph.nodes)
    assert (m.sin(x * y) + 1).index == (m.sin(x * y) + 1).index
    assert len(graph.nodes) == before


def test_order_matters_where_the_operation_does_not_commute(x, y):
    assert (x - y).index != (y - x).index
    assert (x / y).index != (y / x).index
    assert (x**y).index != (y**x).index


def test_constants_are_folded_with_the_bits_of_numpy(graph):
    assert m.sin(graph.symbol(0.3)).constant == np.sin(0.3)
    assert (graph.symbol(8.0) / 3).constant == 8 / 3
    assert (graph.symbol(2.0) ** 0.5).constant == np.sqrt(2.0)
    assert m.where(graph.symbol(0.0), 1.0, 2.0).constant == 2.0


@pytest.mark.parametrize("source", [lambda z: m.log(z - 1), lambda z: 1 / z, lambda z: m.exp(z + 1e4)])
def test_a_constant_without_a_finite_value_stays_an_operation(graph, source):
    """So that the failing lane can say which operation it was."""
    assert source(graph.symbol(0.0)).constant is None


def test_minus_zero_is_another_constant_than_zero(graph, x):
    assert graph.symbol(-0.0).index != graph.symbol(0.0).index
    assert np.signbit(graph.symbol(-0.0).constant)
    assert same_bits((-graph.symbol(0.0)).constant, -0.0)
    assert value(1 / m.where(x < 0, graph.symbol(-0.0), 0.0), -1.0) == -np.inf
    assert value(1 / m.where(x < 0, graph.symbol(-0.0), 0.0), 1.0) == np.inf


def test_minus_zero_in_text_keeps_its_brackets(graph, x):
    assert text(graph.symbol(-0.0) ** x) == "(-0)**state0"


IDENTITIES = {
    "x + 0": (lambda x: x + 0, lambda x: x),
    "0 + x": (lambda x: 0 + x, lambda x: x),
    "x - 0": (lambda x: x - 0, lambda x: x),
    "0 - x": (lambda x: 0 - x, lambda x: -x),
    "x * 1": (lambda x: x * 1, lambda x: x),
    "1 * x": (lambda x: 1 * x, lambda x: x),
    "x * -1": (lambda x: x * -1, lambda x: -x),
    "-1 * x": (lambda x: -1 * x, lambda x: -x),
    "x / 1": (lambda x: x / 1, lambda x: x),
    "x ** 1": (lambda x: x**1, lambda x: x),
    "x ** 0": (lambda x: x**0, lambda x: 1.0),
    "-(-x)": (lambda x: 0 - (-x), lambda x: x),
    "x - x": (lambda x: x - x, lambda x: 0.0),
    "0 * x": (lambda x: 0 * x, lambda x: 0.0),
    "x * 0": (lambda x: x * 0, lambda x: 0.0),
    "0 / x": (lambda x: 0 / x, lambda x: 0.0),
    "max(x, x)": (lambda x: m.max(x, x), lambda x: x),
    "min(x, x)": (lambda x: m.min(x, x), lambda x: x),
    "where(1, x, 2)": (lambda x: m.where(1.0, x, 2.0), lambda x: x),
    "where(x < 1, x, x)": (lambda x: m.where(x < 1, x, x), lambda x: x),
    "+x": (lambda x: +x, lambda x: x),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_an_identity_is_simplified_and_keeps_the_value(graph, x, name):
    written, meant = IDENTITIES[name]
    simplified = written(x)
    before = len(graph.nodes)
    expected = graph.symbol(meant(x))
    assert simplified.index == expected.index
    assert len(graph.nodes) <= before + 1
    for number in (-2.5, 0.3, 7.0):
        assert value(simplified, number) == meant(number)


@pytest.mark.parametrize("exponent", [2, 3, 4, 7, 10, 33, 64, -1, -2, -5, 0.5])
def test_whole_powers_become_products_with_the_value_of_the_power(x, exponent):
    expanded = x**exponent
    used = {x.graph.nodes[index].operation for index in x.graph.reachable([expanded])}
    assert "power" not in used
    assert value(expanded, 1.3) == pytest.approx(1.3**exponent, rel=64 * np.finfo(float).eps)


def test_whole_powers_of_negative_numbers_and_zero(x):
    assert value(x**3, -2.0) == -8.0
    assert value(x**2, 0.0) == 0.0
    assert value(x**2.5, 4.0) == 32.0
    assert np.isnan(value(x**2.5, -4.0))


@pytest.mark.parametrize("seed", range(1, 41))
def test_simplified_graphs_have_the_value_of_mpmath(seed):
    graph, _, output = random_expression(seed)
    t, *rest = np.random.default_rng(seed).uniform(-1.5, 1.5, 6)
    numbers = Program(graph, [output])(t, rest[:3], rest[3:])[0]
    exact = oracle.values(graph, [output], t, rest[:3], rest[3:])[output.index]
    assert float(numbers) == pytest.approx(float(exact), rel=1e-11, abs=1e-11)


def test_a_program_takes_numbers_and_arrays_that_broadcast(graph, x, y):
    program = Program(graph, [x * y + 1, graph.symbol(3.0)])
    product, three = program(0.0, [np.arange(3.0), 2.0], [])
    assert product.tolist() == [1.0, 3.0, 5.0]
    assert three == 3.0


def test_the_layout_of_an_array_does_not_change_the_bits():
    """numpy's vector units take another path for gaps in memory: a lane would depend on its neighbours."""
    graph = Graph()
    x = graph.leaf("state", 0)
    functions = [m.sin(x), m.cos(x), m.tan(x), m.exp(x), m.atan(x), m.sinh(x), m.tanh(x), (2 + x) ** 1.3]
    functions += [m.log(2 + x), m.sqrt(2 + x), m.asin(x), m.acos(x), m.cosh(x)]
    program = Program(graph, functions)
    rng = np.random.default_rng(1)
    for lanes, _ in itertools.product((1, 2, 3, 4, 8, 9, 17), range(40)):
        gapped = rng.uniform(-1, 1, (lanes, 3, 5))[:, :, 2].T  # lanes last, as in the flow, but far apart
        whole = program(0.0, [gapped], [])
        row = program(0.0, [gapped[0]], [])
        alone = [program(0.0, [gapped[:, i : i + 1]], []) for i in range(lanes)]
        for k in range(len(functions)):
            assert np.array_equal(whole[k][0], row[k])
            assert np.array_equal(whole[k], np.concatenate([one[k] for one in alone], axis=1))


def test_the_culprit_is_the_first_operation_without_a_finite_value(graph, x, y):
    program = Program(graph, [x + m.log(y - 1) * 2])
    assert program.culprit(0.0, [1.0, 0.5], []) == "log(-0.5)"
    assert program.culprit(0.0, [1.0, 3.0], []) == ""


def test_symbols_of_two_models_do_not_mix(x):
    stranger = Graph().leaf("state", 0)
    with pytest.raises(InputError, match="expression of one model was used in another"):
        _ = x + stranger


def test_messages_stay_short_when_shared_subexpressions_multiply(x):
    """Written out, 60 squarings of x have 2^60 letters."""
    for _ in range(60):
        x = x * x
    assert len(repr(x)) < 1000
    with pytest.raises(InputError, match="where"):
        bool(x > 1)


TEXTS = {
    "a + b + c": lambda a, b, c: a + b + c,
    "a - (b - c)": lambda a, b, c: a - (b - c),
    "a/(b*c)": lambda a, b, c: a / (b * c),
    "a*b/c": lambda a, b, c: a * b / c,
    "(a + b)**c": lambda a, b, c: (a + b) ** c,
    "-a**b": lambda a, b, c: -(a**b),
    "(-a)**b": lambda a, b, c: (-a) ** b,
    "a**(b**c)": lambda a, b, c: a ** (b**c),
    "(a**b)**c": lambda a, b, c: (a**b) ** c,
    "(a < b) < c": lambda a, b, c: (a < b) < c,
    "where(a < b, 1, c)": lambda a, b, c: m.where(a < b, 1, c),
    "max(a, b) - sin(c)": lambda a, b, c: m.max(a, b) - m.sin(c),
}


@pytest.mark.parametrize("written", TEXTS)
def test_text_has_the_brackets_it_needs(graph, written):
    letters = [graph.leaf("state", i) for i in range(3)]
    assert text(TEXTS[written](*letters), lambda node: "abc"[node.value]) == written
