"""Nodes and data: every measurement belongs to one place, and the flow passes there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcfit.records import InputError
from hpcfit.shooting.grid import Grid, make_grid, node_times

TIMES = st.lists(st.integers(-40, 40), min_size=2, max_size=12, unique=True).map(
    lambda numbers: np.sort(np.array(numbers)) * 0.1
)


@st.composite
def experiments(draw: st.DrawFn) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Data times of one to three experiments, with nodes chosen in each of the three ways."""
    data, nodes = [], []
    for _ in range(draw(st.integers(1, 3))):
        times = draw(TIMES)
        inner = draw(st.lists(st.floats(float(times[0]), float(times[-1])), max_size=5))
        ends = [times[0] - draw(st.sampled_from([0.0, 1.0])), times[-1] + draw(st.sampled_from([0.0, 0.3]))]
        listed = np.unique(np.concatenate([ends, inner]))
        choice = draw(st.one_of(st.just("data"), st.integers(1, 14), st.just(listed)))
        data.append(times)
        nodes.append(node_times(times, choice))
    return data, nodes


def integrated(grid: Grid) -> dict[int, np.ndarray]:
    """The times that the flow passes, by interval."""
    passed: dict[int, np.ndarray] = {}
    for intervals, columns in grid.pieces:
        for j in intervals:
            assert int(j) not in passed
            passed[int(j)] = grid.outputs[j, columns]
    return passed


@settings(max_examples=200, deadline=None)
@given(experiments())
def test_every_data_time_has_one_place_where_the_path_is_known(
    case: tuple[list[np.ndarray], list[np.ndarray]],
) -> None:
    data, nodes = case
    grid = make_grid(data, nodes)
    passed = integrated(grid)
    places = [
        (int(j), int(s))
        for node, slot in zip(grid.node_of, grid.output_of, strict=True)
        for j, s in zip(node, slot, strict=True)
    ]
    assert len(set(places)) == sum(map(len, data))
    for e, times in enumerate(data):
        for t, j, s in zip(times, grid.node_of[e], grid.output_of[e], strict=True):
            assert grid.experiment[j] == e
            if s == 0:
                assert grid.times[j] == t
            else:
                assert grid.times[j] < t < grid.times[j + 1]
                assert grid.outputs[j, s] == t
                assert passed[j][s] == t


@settings(max_examples=200, deadline=None)
@given(experiments())
def test_the_flow_passes_from_node_to_node_through_the_data_between_and_nothing_else(
    case: tuple[list[np.ndarray], list[np.ndarray]],
) -> None:
    data, nodes = case
    grid = make_grid(data, nodes)
    np.testing.assert_array_equal(grid.times, np.concatenate(nodes))
    passed = integrated(grid)
    assert sorted(passed) == [j for j, linked in enumerate(grid.linked) if linked]
    assert np.count_nonzero(~grid.linked) == len(data) - 1
    for j, times in passed.items():
        own = data[grid.experiment[j]]
        begin, end = grid.times[j], grid.times[j + 1]
        np.testing.assert_array_equal(times, [begin, *own[(own > begin) & (own < end)], end])


@settings(max_examples=100, deadline=None)
@given(TIMES, st.integers(1, 20))
def test_every_kth_data_time_is_a_node_and_so_is_the_last(times: np.ndarray, k: int) -> None:
    nodes = node_times(times, k)
    expected = sorted({*range(0, len(times), k), len(times) - 1})
    np.testing.assert_array_equal(nodes, times[expected])
    np.testing.assert_array_equal(node_times(times, np.int64(k)), nodes)


def test_nodes_at_the_data_and_at_given_times() -> None:
    times = np.array([0.0, 0.5, 2.0])
    np.testing.assert_array_equal(node_times(times, "data"), times)
    np.testing.assert_array_equal(node_times(times, [-1.0, 1.0, 2.0]), [-1.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("dat", 'fit.nodes = "dat": is unknown; give "data"'),
        (0, "fit.nodes = 0: must be 1 or more"),
        ([0.0, 2.0, 1.0], "fit.nodes: must increase: 1 comes after 2"),
        ([0.5, 2.0], "the nodes cover 0.5 to 2, but the data go from 0 to 2"),
        ([0.0, 1.5], "the nodes cover 0 to 1.5"),
        ([], "the nodes cover nothing"),
    ],
)
def test_nodes_that_cannot_be_used_say_why(nodes: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        node_times(np.array([0.0, 1.0, 2.0]), nodes)
    assert message in str(raised.value)


def test_one_time_is_not_a_path() -> None:
    with pytest.raises(InputError, match="data at two times at least"):
        node_times(np.array([1.0]), "data")
