"""Segments cover all nodes once, and ranks share them evenly."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpcfit.linear.segments import Segments

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=8)


@given(LENGTHS, st.integers(1, 20))
def test_segments_cover_every_experiment_in_nearly_equal_parts(lengths: list[int], longest: int) -> None:
    segments = Segments.cut(lengths, longest)
    assert segments.nodes.max() <= longest
    assert np.bincount(segments.experiment, weights=segments.nodes).tolist() == lengths
    for experiment in range(len(lengths)):
        own = segments.experiment == experiment
        assert np.ptp(segments.nodes[own]) <= 1
        assert segments.number[own].tolist() == list(range(own.sum()))
        assert segments.joined[own].tolist() == [True] * (own.sum() - 1) + [False]
    assert segments.first.tolist() == [0, *np.cumsum(segments.nodes)[:-1].tolist()]


@given(LENGTHS, st.integers(1, 20), st.integers(1, 6))
def test_ranks_get_all_segments_in_a_row_with_about_the_same_cost(
    lengths: list[int], longest: int, ranks: int
) -> None:
    segments = Segments.cut(lengths, longest)
    ranks = min(ranks, len(segments))
    shares = segments.shares(ranks)
    assert all(share.stop > share.start for share in shares)
    assert shares[0].start == 0
    assert shares[-1].stop == len(segments)
    assert all(a.stop == b.start for a, b in itertools.pairwise(shares))
    costs = [segments.nodes[share].sum() for share in shares]
    assert max(costs) <= segments.nodes.sum() / ranks + 2 * segments.nodes.max()


@given(LENGTHS, st.integers(1, 20))
def test_sums_are_those_of_the_nodes_of_each_segment(lengths: list[int], longest: int) -> None:
    segments = Segments.cut(lengths, longest)
    values = np.random.default_rng(1).normal(size=(sum(lengths), 2))
    ends = segments.first + segments.nodes
    expected = [values[a:b].sum(axis=0) for a, b in zip(segments.first, ends, strict=True)]
    np.testing.assert_allclose(segments.sums(values), expected, atol=1e-12)
    if len(values) > 1:  # links: one less than nodes
        np.testing.assert_allclose(
            segments.sums(values[:-1]).sum(axis=0), values[:-1].sum(axis=0), atol=1e-12
        )
