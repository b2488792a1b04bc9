"""Plans: every member once, and more realisations leave those that are there as they are."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit.ensemble.plan import Plan

GRIDS = st.lists(st.integers(1, 5), max_size=4).map(
    lambda sizes: {f"guess.p{k}": tuple(range(10 * k, 10 * k + size)) for k, size in enumerate(sizes)}
)


def test_a_plan_without_a_grid_has_a_realisation_for_each_member() -> None:
    plan = Plan(7)
    assert plan.cells == 1
    assert list(plan.numbers) == list(range(1, 8))
    np.testing.assert_array_equal(plan.realisation_of(np.arange(1, 8)), np.arange(1, 8))
    np.testing.assert_array_equal(plan.cell_of(np.arange(1, 8)), np.zeros(7))
    assert plan.values(0) == {}


def test_the_last_key_varies_fastest() -> None:
    plan = Plan(2, {"guess.a": (1, 2), "truth.noise.sd": (0.1, 0.2, 0.4)})
    assert plan.members == 12
    assert [plan.values(cell) for cell in (0, 1, 5)] == [
        {"guess.a": 1, "truth.noise.sd": 0.1},
        {"guess.a": 1, "truth.noise.sd": 0.2},
        {"guess.a": 2, "truth.noise.sd": 0.4},
    ]
    assert plan.member(5, 1) == 6
    assert plan.member(0, 2) == 7


@given(GRIDS, st.integers(1, 40))
def test_every_pair_of_cell_and_realisation_is_one_member(grid: dict[str, tuple[int, ...]], n: int) -> None:
    plan = Plan(n, grid)
    members = np.array(plan.numbers)
    pairs = list(zip(plan.cell_of(members).tolist(), plan.realisation_of(members).tolist(), strict=True))
    assert sorted(pairs) == list(itertools.product(range(plan.cells), range(1, n + 1)))
    assert [plan.member(*pair) for pair in pairs] == members.tolist()


@given(GRIDS)
def test_cells_are_the_product_of_the_values(grid: dict[str, tuple[int, ...]]) -> None:
    plan = Plan(1, grid)
    found = [tuple(plan.values(cell).values()) for cell in range(plan.cells)]
    assert found == list(itertools.product(*grid.values()))


@settings(max_examples=50)
@given(GRIDS, st.integers(1, 30), st.integers(0, 30))
def test_more_realisations_only_add_members(grid: dict[str, tuple[int, ...]], n: int, more: int) -> None:
    few, many = Plan(n, grid), Plan(n + more, grid)
    members = np.array(few.numbers)
    assert set(few.numbers) <= set(many.numbers)
    np.testing.assert_array_equal(few.cell_of(members), many.cell_of(members))
    np.testing.assert_array_equal(few.realisation_of(members), many.realisation_of(members))
