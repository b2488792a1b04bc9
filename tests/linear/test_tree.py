"""A fixed tree: what is joined does not depend on who has which leaves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpcfit.linear.tree import Forest, Nodes


def noted(joints: list[tuple[float, float]]):  # type: ignore[no-untyped-def]
    """Blocks are numbers; a joint is their sum, noted with what it was made of."""

    def join(left: np.ndarray, right: np.ndarray, into: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        blocks[into] = blocks[left] + blocks[right]
        joints.extend(zip(blocks[left].tolist(), blocks[right].tolist(), strict=True))
        return np.stack([blocks[left], blocks[right]], axis=1)

    return join


def split(ways: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What was joined, if the whole is what was made of it."""
    np.testing.assert_allclose(ways.sum(axis=1), whole)
    return ways[:, 0], ways[:, 1]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.data())
def test_leaves_on_any_ranks_are_joined_in_the_same_pairs(counts: list[int], data: st.DataObject) -> None:
    group = np.repeat(np.arange(len(counts)), counts)
    index, total = np.concatenate([np.arange(count) for count in counts]), np.repeat(counts, counts)
    values = 2.0 ** -np.arange(len(group), dtype=float) if len(group) < 50 else np.arange(1.0, len(group) + 1)
    alone: list[tuple[float, float]] = []
    whole = Forest(noted(alone), values, Nodes.leaves(group, index, total))
    assert not len(whole.left_over)
    assert sorted(whole.roots.group.tolist()) == list(range(len(counts)))
    np.testing.assert_allclose(whole.spread(whole.roots, whole.blocks[whole.roots.at], split), values)

    cuts = sorted(data.draw(st.lists(st.integers(0, len(group)), max_size=4)))
    together: list[tuple[float, float]] = []
    forests = []
    for first, last in zip([0, *cuts], [*cuts, len(group)], strict=True):
        own = slice(first, last)
        forests.append(Forest(noted(together), values[own], Nodes.leaves(group[own], index[own], total[own])))
    left = Nodes.joined(*(forest.left_over for forest in forests))
    blocks = np.concatenate([forest.blocks[forest.left_over.at] for forest in forests])
    published = Nodes(np.arange(len(left)), left.group, left.level, left.index, left.total)
    shared = Forest(noted(together), blocks, published)
    assert not len(shared.left_over)
    assert sorted(together) == sorted(alone)
    ends = [
        *(group for forest in forests for group in forest.roots.group.tolist()),
        *shared.roots.group.tolist(),
    ]
    assert sorted(ends) == list(range(len(counts)))
