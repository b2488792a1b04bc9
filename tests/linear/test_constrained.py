"""Chains under conditions at any nodes against one dense problem of all nodes, solved by numpy."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from hpcfit.linear.chain import Chain, Conditions, Residuals, Unknowns
from hpcfit.linear.compiled import CompiledInverse
from hpcfit.linear.constrained import ConstrainedInverse
from hpcfit.linear.solvers import SOLVERS
from hpcfit.mpi.serial import SERIAL
from tests.linear.chains import functions, jacobians, random_chain, relative_error, vector

LOOKED_AT = np.array([0, 7, 19])


def conditioned(chain: Chain, exact: list[bool], seed: int = 1, nodes: np.ndarray = LOOKED_AT) -> Chain:
    """The chain with random conditions on some nodes and the parameters."""
    rng = np.random.default_rng(seed)
    members, _, _, n, q = chain.shape
    c = len(exact)
    conditions = Conditions(
        values=rng.normal(size=(members, c)),
        by_node=rng.normal(size=(members, len(nodes), c, n)),
        by_parameters=rng.normal(size=(members, c, q)),
        likely=np.zeros((members, c), dtype=bool),
        exact=np.array(exact),
        nodes=nodes,
        of_states=np.ones(c, dtype=bool),
    )
    return replace(
        chain, conditions=conditions, residuals=replace(chain.residuals, conditions=conditions.values)
    )


def start(chain: Chain) -> Unknowns:
    members, nodes, _, n, q = chain.shape
    rng = np.random.default_rng(9)
    return Unknowns(rng.normal(size=(members, nodes, n)), rng.normal(size=(members, q)))


def rows_of_conditions(chain: Chain, member: int = 0) -> np.ndarray:
    """(c, N n + q)"""
    assert chain.conditions is not None
    _, nodes, _, n, q = chain.shape
    own = chain.conditions
    table = np.zeros((len(own.exact), nodes * n + q))
    for v, node in enumerate(own.nodes):
        table[:, node * n : (node + 1) * n] = own.by_node[member, v]
    table[:, nodes * n :] = own.by_parameters[member]
    return table


def dense(chain: Chain, held: list[int], member: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dz, multipliers of links and held conditions, and covariance, by the null space of them all."""
    j1, j2 = jacobians(chain, member)
    f1, f2 = functions(chain, member)
    assert chain.residuals.conditions is not None
    constraints = np.concatenate([j2, rows_of_conditions(chain, member)[held]])
    right = np.concatenate([f2, chain.residuals.conditions[member, held]])
    whole, triangle = np.linalg.qr(constraints.T, mode="complete")
    rank = len(constraints)
    across, along = whole[:, :rank], whole[:, rank:]
    particular = -across @ np.linalg.solve(triangle[:rank].T, right)
    v = np.linalg.lstsq(j1 @ along, -(f1 + j1 @ particular), rcond=None)[0]
    dz = particular + along @ v
    pulls = np.linalg.solve(triangle[:rank], across.T @ (j1.T @ (f1 + j1 @ dz)))
    factor = along @ np.linalg.pinv(j1 @ along)
    return dz, pulls, factor @ factor.T


def best(chain: Chain, member: int = 0) -> list[int]:
    """The held conditions of the solution, found by trying all faces."""
    assert chain.conditions is not None
    assert chain.residuals.conditions is not None
    exact = chain.conditions.exact
    fixed, free = np.flatnonzero(exact).tolist(), np.flatnonzero(~exact).tolist()
    table, values = rows_of_conditions(chain, member), chain.residuals.conditions[member]
    found = []
    for count in range(min(len(free), 5 - len(fixed)) + 1):  # five unknowns or more
        for some in combinations(free, count):
            held = [*fixed, *some]
            dz, pulls, _ = dense(chain, held, member)
            own = pulls[len(pulls) - len(held) :][len(fixed) :]
            if (own >= 0.0).all() and (table[free] @ dz + values[free] > -1e-9).all():
                found.append(held)
    assert len(found) == 1
    return found[0]


CHAINS = {
    "one window": random_chain(1),
    "several windows": random_chain(2, stretch=3.0),
    "two experiments": random_chain(3, ends=[9]),
    "windows and experiments": random_chain(4, stretch=2.5, ends=[5, 12]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_steps_multipliers_and_covariance_are_those_of_the_dense_problem(name: str) -> None:
    chain = conditioned(CHAINS[name], [True, False, False, False, False, True], seed=4)
    held = best(chain)
    dz, pulls, covariance = dense(chain, held)
    inverse = ConstrainedInverse(chain, start(chain))
    assert sorted(held) == np.flatnonzero(inverse.held.active[0]).tolist()
    assert relative_error(vector(inverse.step), dz) < 1e-9
    np.testing.assert_allclose(inverse.held.multipliers[0, held], pulls[len(pulls) - len(held) :], rtol=1e-8)
    _, nodes, _, n, _ = chain.shape
    of_nodes, of_parameters = inverse.covariance_factor(np.array([0]), all_nodes=True)
    factor = np.concatenate([of_nodes[0].reshape(nodes * n, -1), of_parameters[0]])
    np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-9 * np.abs(covariance).max())
    of_links = inverse.multipliers(np.array([0])) / inverse.scales.states[:, None]
    linked = np.array(chain.linked, dtype=bool)
    assert relative_error(of_links[0, linked].ravel(), pulls[: len(pulls) - len(held)]) < 1e-8
    assert (inverse.rank[0], inverse.held.pinned[0]) == (inverse.freedoms, len(held))


def test_members_do_not_depend_on_their_company() -> None:
    exact = [True, False, False]
    whole = conditioned(random_chain(5, stretch=[1.1, 3.0, 2.0, 1.0]), exact)  # windows differ in number
    z, everybody = start(whole), ConstrainedInverse(whole, start(whole))
    for m in range(4):
        own = np.array([m])
        alone = ConstrainedInverse(whole.take(own), z.take(own))
        np.testing.assert_array_equal(alone.step.nodes[0], everybody.step.nodes[m])
        np.testing.assert_array_equal(alone.step.parameters[0], everybody.step.parameters[m])
        np.testing.assert_array_equal(alone.held.multipliers[0], everybody.held.multipliers[m])
        dz, _, _ = dense(whole, best(whole, m), m)
        assert relative_error(vector(everybody.step, m), dz) < 1e-9


def test_simplified_increments_keep_the_face() -> None:
    chain = conditioned(CHAINS["several windows"], [True, False, False, False])
    inverse, held, rng = ConstrainedInverse(chain, start(chain)), best(chain), np.random.default_rng(3)
    which = np.array([0])
    assert inverse.away(np.zeros(1), which, chain.residuals)[0] < 1e-9 * inverse.increment[0]
    residuals = Residuals(*(rng.normal(size=each.shape) for each in vars(chain.residuals).values()))
    dz, _, _ = dense(replace(chain, residuals=residuals), held)
    length = inverse.away(np.ones(1), which, residuals)[0]
    _, _, _, n, q = chain.shape
    scaled = inverse.scales.scaled(Unknowns(dz[:-q].reshape(1, -1, n), dz[None, -q:]))
    assert length == pytest.approx(scaled.norms()[0], rel=1e-9)
    half = Residuals(*(0.5 * each for each in vars(chain.residuals).values()))
    assert inverse.away(np.full(1, 0.5), which, half)[0] < 1e-9 * inverse.increment[0]


def test_without_conditions_machine_code_solves_and_with_idle_ones_the_numbers_are_alike() -> None:
    chain = CHAINS["several windows"]
    idle = conditioned(chain, [False, False])
    assert idle.residuals.conditions is not None
    far = replace(idle.residuals, conditions=idle.residuals.conditions + 1e6)
    z = start(chain)
    plain, with_idle = (
        SOLVERS["dense"](SERIAL, chain, z),
        SOLVERS["dense"](SERIAL, replace(idle, residuals=far), z),
    )
    assert isinstance(plain, CompiledInverse)
    assert plain.held is None
    assert relative_error(vector(with_idle.step), vector(plain.step)) < 1e-10
    first, second = (
        each.covariance_factor(np.array([0]), all_nodes=False)[1][0] for each in (plain, with_idle)
    )
    np.testing.assert_allclose(second @ second.T, first @ first.T, rtol=1e-8)


def test_a_pinned_number_is_led_to_its_value_without_rounding() -> None:
    chain = conditioned(CHAINS["one window"], [True, True])
    own = chain.conditions
    assert own is not None
    own.by_node[:], own.by_parameters[:] = 0.0, 0.0
    own.by_parameters[0, 0, 1], own.by_node[0, 1, 1, 2] = -3.0, 1.0
    inverse = ConstrainedInverse(chain, start(chain))
    assert inverse.step.parameters[0, 1] == own.values[0, 0] / 3.0
    assert inverse.step.nodes[0, 7, 2] == -own.values[0, 1]
    of_nodes, of_parameters = inverse.covariance_factor(np.array([0]), all_nodes=True)
    assert not of_parameters[0, 1].any()
    assert not of_nodes[0, 7, 2].any()
    assert of_parameters[0, 0].any()


def test_what_the_data_do_not_see_is_named_unless_conditions_determine_it() -> None:
    chain = random_chain(6)
    chain.rows_by_parameters[..., 1] = chain.links_by_parameters[..., 1] = 0.0
    free = ConstrainedInverse(conditioned(chain, [True], nodes=LOOKED_AT[:1]), start(chain))
    assert free.rank[0] == free.freedoms
    assert not any(each.any() for each in free.blind(np.array([0])))
    idle = conditioned(chain, [True])
    assert idle.conditions is not None
    idle.conditions.by_parameters[..., 1] = 0.0
    deficient = ConstrainedInverse(idle, start(idle))
    assert deficient.rank[0] == deficient.freedoms - 1
    states, parameters = deficient.blind(np.array([0]))
    assert parameters[0, 1] > 0.1
    assert np.abs(parameters[0, 0]) + np.abs(states).max() < 1e-8 * parameters[0, 1]
