"""Derivatives are exact: against mpmath at 50 digits, on random graphs and at the awkward points."""

import mpmath as mp
import numpy as np
import pytest

from hpcfit import math as m
from hpcfit.models.define import model
from hpcfit.models.derivatives import derivative, jacobians
from hpcfit.models.evaluate import Program
from hpcfit.models.functions import FUNCTIONS
from tests.models import mpmath_oracle as oracle
from tests.models.random_expressions import N_PARAMETERS, N_STATES, random_expression

SEEDS = range(1, 201)


def smooth_case(seed):
    """A random expression, and t, u, p at which no abs, sign, min, max or comparison is about to switch."""
    rng = np.random.default_rng([seed, 7])
    for redraw in range(10):  # some, as min(x, max(x, y)), sit on a kink everywhere
        graph, leaves, output = random_expression([seed, redraw])
        for _ in range(50):
            point = rng.uniform(-1.5, 1.5, 1 + N_STATES + N_PARAMETERS)
            if oracle.distance_to_kink(graph, [output], *split(point)) > 1e-3:
                return graph, leaves, output, point
    raise AssertionError(f"no smooth point for seed {seed}")


def split(point):
    return point[0], point[1 : 1 + N_STATES], point[1 + N_STATES :]


@pytest.mark.parametrize("seed", SEEDS)
def test_derivative_of_a_random_graph(seed):
    """The formula agrees with numerical differentiation to 20 digits, its numpy value with the formula."""
    graph, leaves, output, point = smooth_case(seed)
    slopes = [derivative([output], leaf)[0] for leaf in leaves]
    in_numpy = Program(graph, slopes)(*split(point))
    with mp.workdps(50):
        exact = oracle.values(graph, slopes, *split(point))
        for i, slope in enumerate(slopes):

            def along(x, i=i):
                moved = [mp.mpf(value) for value in point]
                moved[i] = x
                return oracle.values(graph, [output], *split(moved))[output.index]

            measured = mp.diff(along, mp.mpf(point[i]))
            formula = exact[slope.index]
            assert abs(formula - measured) <= mp.mpf("1e-20") * max(1, abs(measured))
            assert abs(float(in_numpy[i]) - formula) <= 1e-12 * max(1, abs(formula))


def test_the_random_graphs_use_every_function():
    used = set()
    for seed in SEEDS:
        graph, _, output, _ = smooth_case(seed)
        used |= {graph.nodes[index].operation for index in graph.reachable([output])}
    assert used >= set(FUNCTIONS)


def test_a_guard_keeps_the_other_branch_out_of_the_derivative():
    """where(x > 0, sqrt(x), 0) at x = -1: the slope is 0, although sqrt has none there."""
    guarded = model(states="x y")(
        lambda t, u, p: (m.where(u.x > 0, m.sqrt(u.x), 3 * u.y), m.min(u.y, m.log(u.x) + m.max(u.y, 2.0)))
    )
    by_state, _ = jacobians(guarded)
    slopes = Program(guarded.graph, by_state[0])(0.0, [-1.0, 0.5], [])
    assert [float(slope) for slope in slopes] == [0.0, 3.0]


@pytest.mark.parametrize(("x", "y", "dx", "dy"), [(1.0, 2.0, 1.0, 0.0), (2.0, 1.0, 0.0, 1.0)])
def test_min_takes_the_slope_of_the_smaller_and_max_of_the_larger(x, y, dx, dy):
    chosen = model(states="x y")(lambda t, u, p: (m.min(u.x, u.y), m.max(u.x, u.y)))
    by_state, _ = jacobians(chosen)
    assert [float(s) for s in Program(chosen.graph, by_state[0])(0.0, [x, y], [])] == [dx, dy]
    assert [float(s) for s in Program(chosen.graph, by_state[1])(0.0, [x, y], [])] == [dy, dx]


def test_power_with_an_exponent_to_fit_has_a_slope_at_zero():
    """x**n at x = 0 (a Hill function at its start): the slope by n is 0, not 0 * log(0)."""
    hill = model(states="x", parameters="n")(lambda t, u, p: u.x**p.n)
    ((by_x,),), ((by_n,),) = jacobians(hill)
    values = Program(hill.graph, [by_x, by_n])(0.0, [0.0], [2.5])
    assert [float(value) for value in values] == [0.0, 0.0]
    below = Program(hill.graph, [by_n])(0.0, [-1.0], [2.0])[0]
    assert np.isnan(below), "there is no real slope by the exponent of a negative base"


def test_structural_zeros_stay_zero():
    """What an equation does not contain has the constant 0 as its derivative: Jacobians stay sparse."""
    system = model(states="x y z", parameters="a b")(lambda t, u, p: (u.y, m.sin(p.a * t), u.z * 0 + u.x**2))
    by_state, by_parameter = jacobians(system)
    zeros = [[entry.constant == 0.0 for entry in row] for row in (*by_state, *by_parameter)]
    assert zeros == [
        [True, False, True],
        [True, True, True],
        [False, True, True],
        [True, True],
        [False, True],
        [True, True],
    ]


def test_derivative_by_a_shared_leaf_and_of_the_leaf_itself():
    one = model(states="x")(lambda t, u, p: u.x)
    assert derivative([one.equations[0]], one.graph.leaf("state", 0))[0].constant == 1.0
    assert derivative([one.equations[0]], one.graph.leaf("time"))[0].constant == 0.0
