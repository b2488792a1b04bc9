"""Weak continuity against numpy's least squares on all rows at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hpcfit.linear.chain import Chain
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.weak import weak_step
from tests.linear.chains import functions, jacobians, random_chain, relative_error, vector


def stacked(chain: Chain, member: int, looseness: float, holds: np.ndarray) -> np.ndarray:
    """dz (N n + q,) by numpy: data, links and holds as rows of one table."""
    (j1, j2), (f1, f2) = jacobians(chain, member), functions(chain, member)
    n, q = chain.shape[3:]
    hold = np.diag(np.concatenate([np.repeat(holds, n), np.zeros(q)]))
    table = np.concatenate([j1, j2 / looseness, hold])
    right = np.concatenate([f1, f2 / looseness, np.zeros(len(hold))])
    return np.linalg.lstsq(table, -right, rcond=1e-14)[0]


@pytest.mark.parametrize("ends", [[], [7], [0, 4, 18]])
@pytest.mark.parametrize("n_parameters", [0, 3])
def test_increments_are_those_of_one_table(ends: list[int], n_parameters: int) -> None:
    chain = random_chain(1, stretch=[1.0, 1.5, 20.0], n_parameters=n_parameters, n_rows=3, ends=ends)
    looseness = np.array([0.1, 1.0, 10.0])
    holds = np.random.default_rng(0).choice([0.0, 0.1, 3.0], size=(3, 20))
    step = weak_step(chain, looseness, holds)
    for member in range(3):
        expected = stacked(chain, member, looseness[member], holds[member])
        assert relative_error(vector(step, member), expected) < 1e-10


def test_members_do_not_see_each_other() -> None:
    chain = random_chain(2, stretch=[1.0, 1.5, 20.0], ends=[7])
    looseness, holds = np.array([0.1, 1.0, 10.0]), np.zeros((3, 20))
    step = weak_step(chain, looseness, holds)
    for member in ([0], [1], [2]):
        alone = weak_step(chain.take(np.array(member)), looseness[member], holds[member])
        np.testing.assert_array_equal(alone.nodes, step.nodes[member])
        np.testing.assert_array_equal(alone.parameters, step.parameters[member])


def test_a_vanishing_looseness_is_exact_continuity() -> None:
    """The difference goes with the square of the looseness, until rounding."""
    chain = random_chain(3, stretch=1.5, n_nodes=30, ends=[12])
    exact = vector(generalised_inverse(chain).solve(chain.residuals))
    errors = [
        relative_error(vector(weak_step(chain, np.array([c]), np.zeros((1, 30)))), exact)
        for c in (1e-2, 1e-3, 1e-4)
    ]
    assert errors[0] < 1e-1
    for wide, narrow in pairwise(errors):
        assert 80.0 < wide / narrow < 120.0


def test_what_neither_data_nor_links_see_stays_where_it_is() -> None:
    """A hidden state that nothing depends on, and a parameter without effect."""
    chain = random_chain(4, stretch=1.2)
    by_node, rows = chain.links_by_node.copy(), chain.rows_by_node.copy()
    by_node[..., 2], rows[..., 2] = 0.0, 0.0
    by_parameters, rows_by_parameters = chain.links_by_parameters.copy(), chain.rows_by_parameters.copy()
    by_parameters[..., 1], rows_by_parameters[..., 1] = 0.0, 0.0
    blind = replace(
        chain,
        links_by_node=by_node,
        rows_by_node=rows,
        links_by_parameters=by_parameters,
        rows_by_parameters=rows_by_parameters,
    )
    step = weak_step(blind, np.ones(1), np.zeros((1, 20)))
    assert abs(step.nodes[0, 0, 2]) < 1e-9
    assert abs(step.parameters[0, 1]) < 1e-9
    assert relative_error(vector(step), stacked(blind, 0, 1.0, np.zeros(20))) < 1e-7


def test_a_node_that_is_held_does_not_move() -> None:
    chain = random_chain(5, stretch=1.2)
    holds = np.zeros((1, 20))
    holds[0, 9] = 1e6
    step = weak_step(chain, np.ones(1), holds)
    assert np.abs(step.nodes[0, 9]).max() < 1e-8
    assert np.abs(step.nodes[0, 8]).max() > 1e-2
