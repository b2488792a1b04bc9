"""Machine code for many chains at once: it says what numpy says, and a member does not know the others.

Rounding errors are the unit of all comparisons. Condensing multiplies them by the largest product of the G_j
(windows close when that passes GROWTH), the least squares problem by its condition; against a solution with
50 digits both solvers make errors of this size. Where the two numbers are moderate, 1e-12 is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit.linear.chain import Chain, Residuals, Unknowns
from hpcfit.linear.compiled import DOUBTFUL, CompiledInverse, can_be_compiled, held_steps
from hpcfit.linear.dense import Assorted, generalised_inverse
from hpcfit.linear.held import held_step, held_step_reference
from hpcfit.linear.inverse import AnyInverse, Inverse, first_nodes
from hpcfit.linear.windows import condense
from hpcfit.mpi.serial import SERIAL
from tests.linear.chains import random_chain

CLOSE = 1e-12
ROUNDING = 1e-14  # of one operation with growth and condition 1, and some of them


def point(chain: Chain, seed: int = 0) -> Unknowns:
    """States and parameters of different sizes."""
    members, nodes, _, n, q = chain.shape
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-1.0, 1.0, n + q)
    return Unknowns(
        sizes[:n] * rng.normal(size=(members, nodes, n)), sizes[n:] * rng.normal(size=(members, q))
    )


def others(chain: Chain, which: np.ndarray, seed: int = 1) -> tuple[np.ndarray, Residuals]:
    """Dampings and other residuals of some members."""
    rng = np.random.default_rng(seed)
    rows, links = chain.residuals.rows.shape, chain.residuals.links.shape
    whole = Residuals(rng.normal(size=rows), rng.normal(size=links))
    return rng.uniform(0.05, 1.0, rows[0])[which], Residuals(whole.rows[which], whole.links[which])


@dataclass(frozen=True)
class Answers:
    """All that an inverse says of some of its members, which come first in every array."""

    states: np.ndarray
    parameters: np.ndarray
    step: np.ndarray
    step_parameters: np.ndarray
    increment: np.ndarray
    objective: np.ndarray
    defect: np.ndarray
    rank: np.ndarray
    away: np.ndarray
    covariance: np.ndarray
    covariance_parameters: np.ndarray
    first: np.ndarray
    first_parameters: np.ndarray
    blind: np.ndarray
    blind_parameters: np.ndarray
    multipliers: np.ndarray
    links: np.ndarray

    @classmethod
    def of(cls, inverse: Inverse, which: np.ndarray, alpha: np.ndarray, residuals: Residuals) -> Answers:
        whole = (
            inverse.scales.states,
            inverse.scales.parameters,
            inverse.step.nodes,
            inverse.step.parameters,
            inverse.increment,
            inverse.objective,
            inverse.defect,
            inverse.rank,
        )
        return cls(
            *(each[which] for each in whole),
            inverse.away(alpha, which, residuals),
            *inverse.covariance_factor(which, all_nodes=True),
            *inverse.covariance_factor(which, all_nodes=False),
            *inverse.blind(which),
            inverse.multipliers(which),
            inverse.residuals.links[which],
        )


def asked(inverse: Inverse, chain: Chain, which: Any = None) -> Answers:
    some = np.arange(chain.shape[0]) if which is None else np.asarray(which)
    return Answers.of(inverse, some, *others(chain, some))


def error(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The largest difference, in units of the largest number, per member (M,)."""
    assert found.shape == expected.shape
    axes = tuple(range(1, found.ndim))
    size = np.abs(expected).max(axis=axes, initial=0.0)
    difference: np.ndarray = np.abs(found - expected).max(axis=axes, initial=0.0)
    return difference / np.where(size > 0.0, size, 1.0)


def covariance(answers: Answers, scales: Answers, *, all_nodes: bool) -> np.ndarray:
    """L L^t in natural units: the factor itself is known but for a rotation."""
    nodes = answers.covariance if all_nodes else answers.first
    parameters = answers.covariance_parameters if all_nodes else answers.first_parameters
    members, _, _, width = nodes.shape
    nodes = (nodes / scales.states[:, None, :, None]).reshape(members, -1, width)
    factor = np.concatenate([nodes, parameters / scales.parameters[..., None]], axis=1)
    product: np.ndarray = factor @ factor.transpose(0, 2, 1)
    return product


def amplification(chain: Chain, inverse: AnyInverse) -> np.ndarray:
    """Growth along the windows times condition, per member (M,)."""
    windows = condense(chain.scaled(inverse.scales))
    axes = (1, 2, 3)
    growth = np.maximum(
        np.abs(windows.ends_by_window).max(axis=axes, initial=1.0),
        np.abs(windows.ends_by_parameters).max(axis=axes, initial=1.0),
    )
    plus = inverse._plus
    members = np.arange(chain.shape[0])
    values = np.stack(
        [
            (plus.parts[plus.part[m]].singular_values[plus.place[m]])
            if isinstance(plus, Assorted)
            else plus.singular_values[m]
            for m in members
        ]
    )
    good = np.where(values > 1e-10 * values.max(axis=1, keepdims=True), values, np.inf)
    product: np.ndarray = growth * values.max(axis=1) / good.min(axis=1)
    return product


def assert_agrees(chain: Chain, z: Unknowns, **more: Any) -> tuple[Answers, AnyInverse]:
    reference = AnyInverse(chain, z, lambda scaled: generalised_inverse(scaled, **more))
    ours, theirs = (asked(each, chain) for each in (CompiledInverse(chain, z, **more), reference))
    allowed = np.maximum(CLOSE, ROUNDING * amplification(chain, reference))
    for name in ("states", "parameters", "objective", "defect", "links"):
        assert (error(getattr(ours, name), getattr(theirs, name)) < CLOSE).all(), name
    np.testing.assert_array_equal(ours.rank, theirs.rank)
    units = reference.scales
    steps = [units.scaled(Unknowns(each.step, each.step_parameters)) for each in (ours, theirs)]
    flat = [np.concatenate([s.nodes.reshape(len(s.nodes), -1), s.parameters], axis=1) for s in steps]
    found = {"step": error(*flat)}
    for name in ("increment", "away", "blind", "blind_parameters", "multipliers"):
        found[name] = error(getattr(ours, name), getattr(theirs, name))
    whole = [covariance(each, theirs, all_nodes=True) for each in (ours, theirs)]
    found["covariance"] = error(*whole)
    largest = np.abs(whole[1]).max(axis=(1, 2))  # the first nodes may be known far better than all
    first = [covariance(each, theirs, all_nodes=False) for each in (ours, theirs)]
    found["first"] = np.abs(first[0] - first[1]).max(axis=(1, 2)) / np.where(largest > 0.0, largest, 1.0)
    for name, errors in found.items():
        assert (errors < allowed).all(), (name, errors, allowed)
    np.testing.assert_array_equal(ours.first, ours.covariance[:, first_nodes(chain.linked)])
    np.testing.assert_array_equal(ours.first_parameters, ours.covariance_parameters)
    return ours, reference


def windows_of(chain: Chain, inverse: AnyInverse) -> list[int]:
    return (condense(chain.scaled(inverse.scales)).number[:, -1] + 1).tolist()


def shared(chain: Chain, *, nodes: bool, parameters: str) -> Chain:
    """Rows that all members share, and all nodes if wished; B zero, zero for all at once, or as it is."""
    members, n_nodes, k, n, q = chain.shape
    own = chain.rows_by_node[:1, :1] if nodes else chain.rows_by_node[:1]
    by_node = np.broadcast_to(own, (members, n_nodes, k, n))
    if parameters == "zero for all":
        by_parameters = np.broadcast_to(np.zeros((1, 1, k, q)), (members, n_nodes, k, q))
    elif parameters == "zero":
        by_parameters = np.zeros((members, n_nodes, k, q))
    elif parameters == "shared":
        by_parameters = np.broadcast_to(chain.rows_by_parameters[:1], (members, n_nodes, k, q))
    else:
        by_parameters = chain.rows_by_parameters
    return replace(chain, rows_by_node=by_node, rows_by_parameters=by_parameters)


MILD = (1.05, 1.0, 1.1, 1.02)
MIXED = (1.05, 2.6, 1.55, 2.6, 3.5, 1.0, 1.3, 4.0, 1.05, 2.0)
CHAINS: dict[str, tuple[set[int], Chain]] = {
    "one window": ({1}, random_chain(1, stretch=MILD)),
    "from one to several windows": ({1, 2, 3, 4, 5, 6}, random_chain(2, stretch=MIXED, n_nodes=30)),
    "two experiments": ({2}, random_chain(3, stretch=MILD, ends=[7])),
    "an experiment ends where the rows are rotated": ({2}, random_chain(4, stretch=MILD, ends=[8])),
    "three experiments with windows": (
        {3, 5, 7},
        random_chain(5, stretch=MIXED, n_nodes=30, ends=[13, 15], n_rows=3),
    ),
    "an experiment of one node": (
        {3},
        random_chain(6, stretch=MILD, ends=[9, 10], n_rows=6),
    ),
    "no parameters": ({1, 2, 3, 4, 5, 6}, random_chain(7, stretch=MIXED, n_nodes=30, n_parameters=0)),
    "one row": ({1, 3, 5}, random_chain(8, stretch=MIXED[:4], n_nodes=40, n_rows=1)),
    "five rows": ({1, 2, 3, 4, 5, 6}, random_chain(9, stretch=MIXED, n_nodes=30, n_rows=5)),
    "twenty rows": ({1}, random_chain(10, stretch=MILD, n_rows=20)),
    "one state": ({1, 2, 3}, random_chain(11, stretch=(1.0, 1.3, 1.6), n_nodes=30, n_states=1)),
    "one state, no parameters, one row": (
        {1, 2},
        random_chain(12, stretch=(1.0, 1.3, 1.6), n_nodes=30, n_states=1, n_parameters=0, n_rows=1),
    ),
    "nine states, nine parameters": (
        {1, 2, 4},
        random_chain(13, stretch=MIXED[:4], n_nodes=30, n_states=9, n_parameters=9, n_rows=4),
    ),
    "two nodes": ({1}, random_chain(14, stretch=MILD, n_nodes=2, n_rows=6)),
    "one node": ({1}, random_chain(15, stretch=MILD, n_nodes=1, n_rows=12)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_all_answers_are_those_of_the_reference(name: str) -> None:
    expected, chain = CHAINS[name]
    ours, reference = assert_agrees(chain, point(chain))
    assert set(windows_of(chain, reference)) == expected
    assert (ours.rank == reference.freedoms).all()


@pytest.mark.parametrize("ends", [[], [3, 20]])
@pytest.mark.parametrize("nodes", [16, 40, 150])
def test_every_node_may_be_a_window(nodes: int, ends: list[int]) -> None:
    """No number of windows is too large for machine code."""
    chain = random_chain(16, stretch=(2e4, 1.02, 2e4, 1.05), n_nodes=nodes, n_rows=3, ends=ends)
    z = point(chain)
    _, reference = assert_agrees(chain, z)
    assert windows_of(chain, reference)[::2] == [nodes, nodes]
    assert windows_of(chain, reference)[1] < 16
    assert not CompiledInverse(chain, z)._doubtful


def test_another_growth_is_other_windows_and_the_same_answers() -> None:
    chain = random_chain(17, stretch=(1.3, 1.5, 1.1), n_nodes=20)
    z = point(chain)
    few, many = (assert_agrees(chain, z, growth=growth) for growth in (1e3, 10.0))
    assert max(windows_of(chain, few[1])) < 5
    assert (error(few[0].step, many[0].step) < 1e-10).all()


@pytest.mark.parametrize("parameters", ["zero for all", "zero", "shared", "own"])
@pytest.mark.parametrize("nodes", [True, False])
def test_rows_that_members_or_nodes_share_are_stored_once(nodes: bool, parameters: str) -> None:
    chain = shared(random_chain(18, stretch=MIXED, n_nodes=30, n_rows=4), nodes=nodes, parameters=parameters)
    assert chain.rows_by_node.strides[0] == 0
    z = point(chain)
    assert_agrees(chain, z)
    spelled = replace(
        chain,
        rows_by_node=chain.rows_by_node.copy(),
        rows_by_parameters=chain.rows_by_parameters.copy(),
    )
    assert_identical(asked(CompiledInverse(chain, z), chain), asked(CompiledInverse(spelled, z), chain))


def test_members_may_differ_in_whether_their_rows_know_the_parameters() -> None:
    chain = random_chain(18, stretch=MILD, n_rows=4)
    rows = chain.rows_by_parameters.copy()
    rows[0] = 0.0
    assert_agrees(replace(chain, rows_by_parameters=rows), point(chain))


def test_arrays_in_any_layout_are_understood() -> None:
    chain = random_chain(19, stretch=MILD)
    z = point(chain)

    def strided(array: np.ndarray) -> np.ndarray:
        return np.repeat(array, 2, axis=-1)[..., ::2] if array.shape[-1] else array

    loose = replace(
        chain,
        rows_by_node=strided(chain.rows_by_node),
        rows_by_parameters=strided(chain.rows_by_parameters),
        links_by_node=strided(chain.links_by_node),
        links_by_parameters=strided(chain.links_by_parameters),
        residuals=Residuals(strided(chain.residuals.rows), strided(chain.residuals.links)),
    )
    far = Unknowns(strided(z.nodes), strided(z.parameters))
    assert_identical(asked(CompiledInverse(chain, z), chain), asked(CompiledInverse(loose, far), chain))


def test_a_state_or_a_parameter_that_is_zero_has_a_unit() -> None:
    chain = random_chain(20, stretch=MILD)
    links, by_node = chain.links_by_parameters.copy(), chain.links_by_node.copy()
    links[1, :, :, 0] = 0.0  # seen only by the rows
    z = point(chain)
    z.nodes[2, :, 1], z.nodes[3], z.parameters[1, 0] = 0.0, 0.0, 5.0
    gaps = chain.residuals.links.copy()
    gaps[2, :, 1], gaps[3] = 0.0, 0.0
    flat = replace(
        chain,
        links_by_node=by_node,
        links_by_parameters=links,
        residuals=Residuals(chain.residuals.rows, gaps),
    )
    ours, _ = assert_agrees(flat, z)
    assert ours.parameters[1, 0] == 5.0
    assert ours.states[2, 1] == pytest.approx(1e-3 * ours.states[2].max(), rel=1e-12)
    assert ours.states[3].tolist() == [1.0, 1.0, 1.0]


# A member does not know the others


def assert_identical(one: Answers, other: Answers, where: Any = slice(None)) -> None:
    for name, values in vars(one).items():
        np.testing.assert_array_equal(values, getattr(other, name)[where], err_msg=name)


@cache
def crowd() -> tuple[Chain, Unknowns]:
    """64 members with 2 to 25 windows; of some the data do not determine a parameter."""
    rng = np.random.default_rng(3)
    stretch = np.exp(rng.choice([0.02, 0.05, 0.3, 0.9, 3.0, 7.0], 64, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05]))
    chain = random_chain(21, stretch=stretch, n_nodes=25, n_rows=3, ends=[11])
    rows, links = chain.rows_by_parameters.copy(), chain.links_by_parameters.copy()
    rows[5::13, ..., 1], links[5::13, ..., 1] = rows[5::13, ..., 0], links[5::13, ..., 0]
    return replace(chain, rows_by_parameters=rows, links_by_parameters=links), point(chain)


@cache
def crowded() -> Answers:
    chain, z = crowd()
    return asked(CompiledInverse(chain, z), chain)


def alone(members: np.ndarray) -> Answers:
    """What a batch of only these members says of them."""
    (chain, z), everybody = crowd(), np.arange(len(members))
    part = Chain(
        *(getattr(chain, name)[members] for name in ROWS_AND_LINKS),
        Residuals(chain.residuals.rows[members], chain.residuals.links[members]),
        chain.linked,
    )
    inverse = CompiledInverse(part, Unknowns(z.nodes[members], z.parameters[members]))
    return Answers.of(inverse, everybody, *others(chain, members))


ROWS_AND_LINKS = ("rows_by_node", "rows_by_parameters", "links_by_node", "links_by_parameters")


@pytest.mark.parametrize("size", [1, 3, 8, 9, 64])
def test_members_have_the_same_bits_in_any_batch_and_order(size: int) -> None:
    whole = crowded()
    assert len(set(whole.rank.tolist())) == 2
    order = np.random.default_rng(size).permutation(64)
    for first in range(0, min(64, 24 * size), size):
        members = order[first : first + size]
        assert_identical(alone(members), whole, members)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 63), min_size=1, max_size=12))
def test_any_selection_in_any_order_with_repetitions(members: list[int]) -> None:
    assert_identical(alone(np.array(members)), crowded(), members)


def test_some_members_are_asked_alone() -> None:
    """Increasing numbers of members, as the loop asks."""
    chain, z = crowd()
    inverse = CompiledInverse(chain, z)
    for which in ([0], [3, 5, 18], list(range(1, 64, 2)), list(range(40, 57))):
        assert_identical(asked(inverse, chain, which), crowded(), which)
    assert_identical(asked(inverse, chain), crowded())  # nothing is left behind by the questions


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_trials_that_are_not_finite_are_not_and_do_not_touch_the_others(bad: float) -> None:
    """A trial that could not be integrated: its length is not finite, or beyond all others."""
    chain, z = crowd()
    inverse, everybody = CompiledInverse(chain, z), np.arange(64)
    alpha, residuals = others(chain, everybody)
    rows, links = residuals.rows.copy(), residuals.links.copy()
    links[2::8, 4], rows[5::16, 3] = bad, bad
    with np.errstate(all="ignore"):
        away = inverse.away(alpha, everybody, Residuals(rows, links))
    spoilt = (everybody % 8 == 2) | (everybody % 16 == 5)
    np.testing.assert_array_equal(away[~spoilt], crowded().away[~spoilt])
    assert not (away[spoilt] < 1e100).any()


def test_members_whose_residuals_are_not_finite_do_not_touch_the_others() -> None:
    chain, z = crowd()
    determined = crowded().rank == crowded().rank.max()
    spoilt = determined & (np.arange(64) % 5 == 1)
    rows = chain.residuals.rows.copy()
    rows[spoilt, 3] = np.nan
    with np.errstate(all="ignore"):
        inverse = CompiledInverse(replace(chain, residuals=Residuals(rows, chain.residuals.links)), z)
        whole = asked(inverse, chain)
    assert np.isnan(whole.increment[spoilt]).all()
    for name, values in vars(crowded()).items():
        np.testing.assert_array_equal(getattr(whole, name)[~spoilt], values[~spoilt], err_msg=name)


# Ranks


def test_members_with_a_deficient_rank_are_those_of_the_reference_to_the_last_bit() -> None:
    chain, z = crowd()
    whole = crowded()
    deficient = np.flatnonzero(whole.rank < whole.rank.max())
    assert deficient.tolist() == list(range(5, 64, 13))
    for member in deficient.tolist():
        one = np.array([member])
        reference = AnyInverse(chain.take(one), z.take(one), generalised_inverse)
        theirs = Answers.of(reference, np.array([0]), *others(chain, one))
        for name, values in vars(theirs).items():
            if name in ("states", "parameters", "objective", "defect", "links"):
                assert (error(getattr(whole, name)[one], values) < CLOSE).all(), name
            else:
                np.testing.assert_array_equal(getattr(whole, name)[one], values, err_msg=name)
        assert whole.blind_parameters[member] == pytest.approx([0.5**0.5] * 2, abs=1e-8)
    determined = whole.rank == whole.rank.max()
    assert not whole.blind[determined].any()
    assert not whole.blind_parameters[determined].any()


@pytest.mark.parametrize("stretch", [1.05, 2.6])
def test_a_condition_in_doubt_is_decided_by_singular_values(stretch: float) -> None:
    """Parameter 1 does what parameter 0 does, and a part of something else."""
    parts = 10.0 ** -np.arange(15.0)
    chain = random_chain(22, stretch=[stretch] * 15, n_nodes=30)
    rows, links = chain.rows_by_parameters.copy(), chain.links_by_parameters.copy()
    rows[..., 1] = rows[..., 0] + parts[:, None, None] * rows[..., 1]
    links[..., 1] = links[..., 0] + parts[:, None, None] * links[..., 1]
    near = replace(chain, rows_by_parameters=rows, links_by_parameters=links)
    z = point(near)
    ours, reference = CompiledInverse(near, z), AnyInverse(near, z, generalised_inverse)
    assert ours.rank.tolist() == reference.rank.tolist()
    assert set(ours.rank.tolist()) == {4, 5}
    doubtful = np.array(sorted(ours._doubtful))
    assert doubtful.tolist() == list(range(doubtful[0], 15))
    assert 4 <= doubtful[0] <= 9  # DOUBTFUL is far from both a condition of 1 and the smallest rank
    assert DOUBTFUL == 1e8
    allowed = np.maximum(CLOSE, ROUNDING * amplification(near, reference))
    assert (error(ours.increment[:, None], reference.increment[:, None]) < allowed).all()


def test_without_data_the_rank_is_zero_and_nobody_moves_more_than_continuity_asks() -> None:
    chain = random_chain(23, stretch=MILD)
    empty = replace(
        chain,
        rows_by_node=np.zeros_like(chain.rows_by_node),
        rows_by_parameters=np.zeros_like(chain.rows_by_parameters),
    )
    ours, _ = assert_agrees(empty, point(chain))
    assert ours.rank.tolist() == [0] * 4


# Any sizes

SIZES = [(1, 0, 1), (1, 1, 1), (1, 2, 3), (2, 0, 2), (2, 1, 1), (2, 3, 4), (3, 2, 1), (3, 1, 5), (4, 3, 2)]


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.sampled_from(SIZES),
    n_nodes=st.integers(1, 20),
    stretch=st.lists(st.floats(1.0, 30.0), min_size=1, max_size=10),
    ends=st.sets(st.integers(0, 18), max_size=2),
    rows=st.sampled_from(["own", "shared", "zero", "zero for all"]),
)
def test_any_sizes_and_windows(
    seed: int, sizes: tuple[int, int, int], n_nodes: int, stretch: list[float], ends: set[int], rows: str
) -> None:
    n, q, k = sizes
    chain = random_chain(
        seed, stretch=stretch, n_nodes=n_nodes, n_rows=k, n_states=n, n_parameters=q, ends=sorted(ends)
    )
    if rows != "own":
        chain = shared(chain, nodes=False, parameters=rows)
    z = point(chain, seed)
    reference = AnyInverse(chain, z, generalised_inverse)
    worst = amplification(chain, reference)
    full = reference.rank == reference.freedoms
    sound = full & (worst < 1e9)  # beyond, rounding decides on everything
    if sound.any():
        some = np.flatnonzero(sound)
        assert_agrees(chain.take(some), z.take(some))
    ours = CompiledInverse(chain, z)
    if sound.all() or not full.any():
        assert ours.rank.tolist() == reference.rank.tolist()


# Nodes held where they are


def held_chain(seed: int, members: int = 11, **more: Any) -> Chain:
    return random_chain(seed, stretch=[1.2] * members, **more)


HELD = {
    "rows and links": held_chain(30),
    "one row": held_chain(31, n_rows=1),
    "many rows": held_chain(32, n_rows=20, n_parameters=5),
    "one parameter": held_chain(33, n_parameters=1),
    "one state": held_chain(34, n_states=1, n_parameters=3),
    "nine states, nine parameters": held_chain(35, n_states=9, n_parameters=9, n_nodes=30),
    "two nodes": held_chain(36, n_nodes=2, n_rows=4),
    "no B": shared(held_chain(37), nodes=True, parameters="zero for all"),
    "shared B": shared(held_chain(38), nodes=False, parameters="shared"),
}


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("name", HELD)
def test_held_steps_are_those_of_the_reference(name: str, precise: bool) -> None:
    """Columns are scaled by their size, so that the condition is small; here it is below 100."""
    chain = HELD[name]
    n = chain.shape[3]
    precision = np.random.default_rng(1).uniform(0.1, 10.0, n)
    if not precise:
        precision[0] = 0.0  # hidden
    z = point(chain)
    assert can_be_compiled(chain)
    misfit, step, doubtful = held_steps(chain, z, precision)
    if name in ("one state", "no B") and not precise:
        found = held_step(SERIAL, chain, z, precision)
    else:
        assert not len(doubtful)
        found = (misfit, step)
    expected = held_step_reference(chain, precision)
    assert (error(found[0][:, None], expected[0][:, None]) < CLOSE).all()
    assert (error(found[1], expected[1]) < CLOSE).all()


@pytest.mark.parametrize("size", [1, 3, 8, 9, 11])
def test_held_members_have_the_same_bits_in_any_batch(size: int) -> None:
    chain, precision = HELD["rows and links"], np.array([1.0, 0.3, 4.0])
    z = point(chain)
    misfit, step = held_step(SERIAL, chain, z, precision)
    for first in range(0, 11, size):
        some = np.arange(first, min(first + size, 11))
        found = held_step(SERIAL, chain.take(some), z.take(some), precision)
        np.testing.assert_array_equal(found[0], misfit[some])
        np.testing.assert_array_equal(found[1], step[some])


def test_held_parameters_that_cannot_be_told_apart_share_the_step() -> None:
    """The shortest step; a parameter that does nothing stays; the other members do not notice."""
    chain, precision = HELD["rows and links"], np.ones(3)
    rows, links = chain.rows_by_parameters.copy(), chain.links_by_parameters.copy()
    rows[3, ..., 1], links[3, ..., 1] = rows[3, ..., 0], links[3, ..., 0]
    rows[7, ..., 1], links[7, ..., 1] = 0.0, 0.0
    blind, z = replace(chain, rows_by_parameters=rows, links_by_parameters=links), point(chain)
    misfit, step = held_step(SERIAL, blind, z, precision)
    assert step[3, 0] == pytest.approx(step[3, 1], rel=1e-9)
    assert step[7, 1] == 0.0
    whole = held_step(SERIAL, chain, z, precision)
    same = np.delete(np.arange(11), [3, 7])
    np.testing.assert_array_equal(misfit, whole[0])
    np.testing.assert_array_equal(step[same], whole[1][same])
    expected = held_step_reference(blind, precision)
    assert (error(step, expected[1]) < CLOSE).all()


def test_chains_that_are_too_wide_are_left_to_the_reference() -> None:
    wide: Sequence[Chain] = (random_chain(1, n_parameters=70), random_chain(1, n_rows=65, n_nodes=3))
    assert not any(can_be_compiled(chain) for chain in wide)
    for chain in wide:
        found, expected = (
            held_step(SERIAL, chain, point(chain), np.ones(3)),
            held_step_reference(chain, np.ones(3)),
        )
        np.testing.assert_array_equal(found[1], expected[1])
