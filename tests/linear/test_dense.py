"""The generalised inverse against numpy's solution of the whole problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hpcfit.linear.chain import Chain, Residuals, Scales, Unknowns
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.windows import condense
from tests.linear.chains import (
    augmented,
    full_solution,
    functions,
    jacobians,
    random_chain,
    relative_error,
    vector,
)

CHAINS = {
    "one window": (1, random_chain(1, stretch=1.05)),
    "two windows": (2, random_chain(2, stretch=1.55)),
    "five windows": (5, random_chain(3, stretch=3.5, n_nodes=30)),
    "every node a window": (5, random_chain(4, stretch=2e4, n_nodes=5, n_rows=3)),
    "two experiments": (2, random_chain(5, ends=[7])),
    "experiments of two, one and two windows": (5, random_chain(6, stretch=2.2, n_nodes=30, ends=[20, 22])),
    "no parameters": (1, random_chain(7, n_parameters=0)),
    "one state, nine parameters": (1, random_chain(8, n_states=1, n_parameters=9)),
    "two nodes": (1, random_chain(9, n_nodes=2, n_rows=6)),
    "one node": (1, random_chain(9, n_nodes=1, n_rows=12)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_increments_are_those_of_the_whole_problem(name: str) -> None:
    windows, chain = CHAINS[name]
    assert condense(chain).count == windows
    plus = generalised_inverse(chain)
    assert relative_error(vector(plus.solve(chain.residuals)), full_solution(chain)) < 1e-10
    assert plus.rank.tolist() == [plus.freedoms]


@pytest.mark.parametrize("name", CHAINS)
def test_other_residuals_need_no_other_inverse(name: str) -> None:
    _, chain = CHAINS[name]
    other = Residuals(1.0 - 2.0 * chain.residuals.rows, 0.3 + chain.residuals.links**2)
    step = generalised_inverse(chain).solve(other)
    assert relative_error(vector(step), full_solution(replace(chain, residuals=other))) < 1e-10


@pytest.mark.parametrize("name", [name for name in CHAINS if name != "one node"])
def test_multipliers_balance_the_gradient(name: str) -> None:
    """J1^t J1 dz - J2^t lambda + J1^t F1 = 0 (4.10)."""
    _, chain = CHAINS[name]
    plus = generalised_inverse(chain)
    step = plus.solve(chain.residuals)
    multipliers = plus.multipliers(chain.residuals, step)[0]
    linked = np.array(chain.linked, dtype=bool)
    (j1, j2), (f1, _) = jacobians(chain), functions(chain)
    gradient = j1.T @ (j1 @ vector(step) + f1)
    assert relative_error(j2.T @ multipliers[linked].ravel(), gradient) < 1e-9
    assert not multipliers[~linked].any()


@pytest.mark.parametrize("name", CHAINS)
def test_covariance_is_a_block_of_the_inverse_of_the_whole_matrix(name: str) -> None:
    _, chain = CHAINS[name]
    plus = generalised_inverse(chain)
    nodes, parameters = plus.covariance_factor()
    factor = np.concatenate([nodes[0].reshape(-1, plus.freedoms), parameters[0]])
    rows = chain.residuals.rows.size
    block = slice(rows, rows + len(factor))
    assert relative_error(factor @ factor.T, np.linalg.inv(augmented(chain))[block, block]) < 1e-9


def test_members_do_not_see_each_other() -> None:
    """Bit for bit, whatever the number of windows of the others."""
    chain = random_chain(11, stretch=[1.05, 2.6, 1.55, 2.6, 1.05], n_nodes=30, ends=[12])
    together = generalised_inverse(chain)
    step = together.solve(chain.residuals)
    multipliers = together.multipliers(chain.residuals, step)
    for member in range(5):
        one = chain.take(np.array([member]))
        assert condense(one).count == (2, 5, 3, 5, 2)[member]
        alone = generalised_inverse(one)
        mine = alone.solve(one.residuals)
        np.testing.assert_array_equal(step.nodes[member], mine.nodes[0])
        np.testing.assert_array_equal(step.parameters[member], mine.parameters[0])
        np.testing.assert_array_equal(multipliers[member], alone.multipliers(one.residuals, mine)[0])
        for ours, its in zip(together.covariance_factor(), alone.covariance_factor(), strict=True):
            np.testing.assert_array_equal(ours[member], its[0])


def test_some_members_can_be_taken_out_of_a_batch() -> None:
    chain = random_chain(12, stretch=[1.05, 2.6, 1.55, 2.6], n_nodes=30)
    plus, some = generalised_inverse(chain), np.array([2, 0])
    residuals = chain.residuals.take(some)
    step = plus.take(some).solve(residuals)
    np.testing.assert_array_equal(step.nodes, plus.solve(chain.residuals).nodes[some])
    multipliers = plus.multipliers(chain.residuals, plus.solve(chain.residuals))
    np.testing.assert_array_equal(plus.take(some).multipliers(residuals, step), multipliers[some])


def merged(chain: Chain) -> Chain:
    """Parameters 0 and 1 only occur as their sum."""
    return replace(
        chain,
        rows_by_parameters=chain.rows_by_parameters[..., [0, 0, 1]],
        links_by_parameters=chain.links_by_parameters[..., [0, 0, 1]],
    )


@pytest.mark.parametrize("stretch", [1.05, 2.6])
def test_two_parameters_that_only_occur_as_their_sum(stretch: float) -> None:
    """The relaxed solution has equal parts of both; the sum is that of the problem with one parameter."""
    single = random_chain(13, stretch=stretch, n_nodes=30)
    plus = generalised_inverse(merged(single))
    assert plus.rank.tolist() == [plus.freedoms - 1]
    blind_node, blind = plus.null_directions()
    direction = blind[0, :, np.argmax(np.abs(blind[0]).max(axis=0))]
    np.testing.assert_allclose(np.abs(direction), [0.5**0.5, 0.5**0.5, 0.0], atol=1e-9)
    assert direction[0] * direction[1] < 0.0
    np.testing.assert_allclose(blind_node, 0.0, atol=1e-9)
    step, one = plus.solve(single.residuals), generalised_inverse(single).solve(single.residuals)
    expected = one.parameters[0][[0, 0, 1]] * [0.5, 0.5, 1.0]
    np.testing.assert_allclose(step.parameters[0], expected, rtol=1e-9)
    assert relative_error(step.nodes, one.nodes) < 1e-9


def offset(seed: int) -> Chain:
    """State 2 stays as it is, and is only seen together with parameter 0, which does nothing else."""
    chain = random_chain(seed, stretch=1.05)
    rows, links = chain.rows_by_parameters.copy(), chain.links_by_parameters.copy()
    rows[..., 0] = chain.rows_by_node[..., 2]
    links[..., 0] = 0.0
    by_node = chain.links_by_node.copy()
    by_node[..., 2, :], by_node[..., :, 2], by_node[..., 2, 2] = 0.0, 0.0, 1.0
    return replace(chain, rows_by_parameters=rows, links_by_parameters=links, links_by_node=by_node)


def test_the_relaxed_solution_is_the_shortest_of_the_condensed_problem() -> None:
    """Against numpy's least squares in the first node and the parameters."""
    chain = offset(14)
    plus = generalised_inverse(chain)
    assert plus.rank.tolist() == [plus.freedoms - 1]
    _, nodes, _, n, q = chain.shape
    here, shift = np.eye(n, n + q), np.zeros(n)
    table, right = [], []
    for j in range(nodes):
        rows = chain.rows_by_node[0, j] @ here
        rows[:, n:] += chain.rows_by_parameters[0, j]
        table.append(rows)
        right.append(chain.residuals.rows[0, j] + chain.rows_by_node[0, j] @ shift)
        if j < nodes - 1:
            here = chain.links_by_node[0, j] @ here
            here[:, n:] += chain.links_by_parameters[0, j]
            shift = chain.links_by_node[0, j] @ shift + chain.residuals.links[0, j]
    expected = np.linalg.lstsq(np.concatenate(table), -np.concatenate(right), rcond=1e-10)[0]
    step = plus.solve(chain.residuals)
    assert relative_error(np.concatenate([step.nodes[0, 0], step.parameters[0]]), expected) < 1e-10
    states, parameters = plus.null_directions()
    blind = np.linalg.norm(np.concatenate([states[0], parameters[0]]), axis=1)
    np.testing.assert_allclose(blind, [0.0, 0.0, 0.5**0.5, 0.5**0.5, 0.0], atol=1e-9)


def test_fewer_rows_than_unknowns_are_a_rank_not_an_error() -> None:
    chain = random_chain(15, n_nodes=4, n_rows=1)
    rows = np.where(chain.rows_by_node == 0.0, 1.0, chain.rows_by_node)
    plus = generalised_inverse(replace(chain, rows_by_node=rows))
    assert (plus.rank.tolist(), plus.freedoms) == ([4], 5)
    step = plus.solve(chain.residuals)
    left = chain.residuals.rows[0, :, 0] + np.einsum("ji,ji->j", rows[0, :, 0], step.nodes[0])
    left += chain.rows_by_parameters[0, :, 0] @ step.parameters[0]
    np.testing.assert_allclose(left, 0.0, atol=1e-9)
    nodes, parameters = plus.covariance_factor()
    assert nodes.shape == (1, 4, 3, 5)
    assert parameters.shape == (1, 2, 5)


def test_growth_of_1e12_asks_for_windows() -> None:
    chain = random_chain(16, stretch=1.08, n_nodes=400, n_rows=1, n_states=2)
    assert 1e12 < np.abs(condense(chain, np.inf).by_window).max() < 1e16
    expected = full_solution(chain)
    with_windows = generalised_inverse(chain).solve(chain.residuals)
    condensed = generalised_inverse(chain, np.inf).solve(chain.residuals)
    assert relative_error(vector(with_windows), expected) < 1e-10
    assert relative_error(vector(condensed), expected) > 1e-6


SHAPES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "stretch": st.floats(1.0, 30.0),
        "n_nodes": st.integers(2, 15),
        "n_rows": st.integers(1, 4),
        "n_states": st.integers(1, 4),
        "n_parameters": st.integers(0, 3),
        "ends": st.sets(st.integers(0, 13), max_size=2),
    }
)


def applied(chain: Chain, step: Unknowns) -> Residuals:
    """J dz."""
    rows = np.einsum("mjki,mji->mjk", chain.rows_by_node, step.nodes)
    rows += np.einsum("mjkq,mq->mjk", chain.rows_by_parameters, step.parameters)
    links = np.einsum("mjil,mjl->mji", chain.links_by_node, step.nodes[:, :-1]) - step.nodes[:, 1:]
    links += np.einsum("mjiq,mq->mji", chain.links_by_parameters, step.parameters)
    return Residuals(rows, links)


@settings(max_examples=200, deadline=None)
@given(shape=SHAPES)
def test_of_any_rank_an_increment_is_the_answer_to_what_it_does(shape: dict) -> None:
    """J+ J J+ = J+, with the condition of the problem as the unit of rounding errors."""
    chain = random_chain(**shape)
    plus = generalised_inverse(chain)
    step = plus.solve(chain.residuals)
    done = applied(chain, step)
    again = plus.solve(Residuals(-done.rows, -done.links))
    allowed = 1e-10 * condition(plus) * np.abs(vector(step)).max()
    np.testing.assert_allclose(vector(again), vector(step), rtol=0.0, atol=allowed)


@settings(max_examples=200, deadline=None)
@given(shape=SHAPES, powers=st.lists(st.integers(-3, 3), min_size=7, max_size=7))
def test_units_do_not_matter_where_the_rank_is_full(shape: dict, powers: list[int]) -> None:
    chain = random_chain(**shape)
    plus = generalised_inverse(chain)
    assume(plus.rank[0] == plus.freedoms and condition(plus) < 1e4)
    _, _, _, n, q = chain.shape
    sizes = 4.0 ** np.array([powers])
    scales = Scales(sizes[:, :n], sizes[:, n : n + q])
    other = chain.scaled(scales)
    step = scales.unscaled(generalised_inverse(other).solve(other.residuals))
    assert relative_error(vector(step), vector(plus.solve(chain.residuals))) < 1e-7


def condition(plus: object) -> float:
    values = plus.singular_values  # type: ignore[attr-defined]
    good = values[values > 1e-10 * values.max()]
    return float(good.max() / good.min()) if len(good) else 1.0
