"""Weak continuity against numpy's least squares on all rows at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hpcfit.linear.chain import Chain, Unknowns
from hpcfit.linear.compiled import can_be_compiled, weak_steps
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.scaling import natural_scales
from hpcfit.linear.weak import loose_step, weak_step
from hpcfit.mpi.serial import SERIAL
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


# Machine code for many members at once


def point(chain: Chain) -> Unknowns:
    """States and parameters of different sizes."""
    members, nodes, _, n, q = chain.shape
    rng = np.random.default_rng(4)
    sizes = 10.0 ** rng.uniform(-1.0, 1.0, n + q)
    return Unknowns(
        sizes[:n] * rng.normal(size=(members, nodes, n)), sizes[n:] * rng.normal(size=(members, q))
    )


def asked(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Looseness and holds of every member."""
    members, nodes = chain.shape[:2]
    rng = np.random.default_rng(5)
    return 10.0 ** rng.uniform(-3.0, 1.0, members), rng.choice([0.0, 0.1, 3.0], size=(members, nodes))


SHAPES: dict[str, dict[str, Any]] = {
    "usual": {},
    "one row": {"n_rows": 1},
    "five rows": {"n_rows": 5},
    "one state": {"n_states": 1, "n_rows": 1},
    "nine parameters": {"n_parameters": 9, "n_rows": 3},
    "no parameters": {"n_parameters": 0},
    "three experiments": {"ends": [7, 12]},
    "two nodes": {"n_nodes": 2, "n_rows": 6},
}


@pytest.mark.parametrize("name", SHAPES)
def test_machine_code_says_what_numpy_says(name: str) -> None:
    chain = random_chain(6, stretch=np.linspace(1.0, 4.0, 11), **SHAPES[name])
    z, (looseness, holds) = point(chain), asked(chain)
    assert can_be_compiled(chain)
    scales, step, doubtful = weak_steps(chain, z, looseness, holds)
    assert not len(doubtful)
    expected = natural_scales(chain, z)
    reference = expected.unscaled(weak_step(chain.scaled(expected), looseness, holds))
    np.testing.assert_allclose(scales.states, expected.states, rtol=1e-14)
    np.testing.assert_allclose(scales.parameters, expected.parameters, rtol=1e-13)
    for member in range(11):
        assert relative_error(vector(step, member), vector(reference, member)) < 1e-11


@pytest.mark.parametrize("some", [[0], [3, 1, 7], list(range(9)), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]])
def test_members_in_machine_code_do_not_see_each_other(some: list[int]) -> None:
    chain = random_chain(7, stretch=np.linspace(1.0, 4.0, 11), ends=[7])
    z, (looseness, holds) = point(chain), asked(chain)
    _, step, _ = weak_steps(chain, z, looseness, holds)
    own = np.array(some)
    _, alone, _ = weak_steps(chain.take(own), z.take(own), looseness[own], holds[own])
    np.testing.assert_array_equal(alone.nodes, step.nodes[own])
    np.testing.assert_array_equal(alone.parameters, step.parameters[own])


def test_what_data_do_not_determine_is_left_to_numpy() -> None:
    """Two parameters that only occur as their sum: the shortest step, for that member alone."""
    chain = random_chain(8, stretch=[1.1, 1.2, 1.3], n_parameters=2)
    by_rows, by_links = chain.rows_by_parameters.copy(), chain.links_by_parameters.copy()
    by_rows[1, ..., 1], by_links[1, ..., 1] = by_rows[1, ..., 0], by_links[1, ..., 0]
    chain = replace(chain, rows_by_parameters=by_rows, links_by_parameters=by_links)
    z, (looseness, holds) = point(chain), asked(chain)
    assert weak_steps(chain, z, looseness, holds)[2].tolist() == [1]
    scales, step = loose_step(SERIAL, chain, z, looseness, holds)
    reference = scales.unscaled(weak_step(chain.scaled(scales), looseness, holds))
    for member in range(3):
        assert relative_error(vector(step, member), vector(reference, member)) < 1e-11
