"""How far errors grow along a series: what makes it long for the exact method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain
from hpcfit.records import Array

BLOCK = 32  # nodes that one error is followed along


def decades(across: Across, chain: Chain) -> Array:
    """log10 of the growth of an error along all links, at least 0 (M,).

    One error is followed through every block of links; of a long chain, through blocks inside its segments.
    """
    members, links, n, _ = chain.links_by_node.shape
    begins = _blocks(chain)
    error = np.full((members, len(begins), n, 1), n**-0.5)
    for k in range(BLOCK):
        linked = chain.linked[begins + k][:, None, None]
        error = np.where(linked, chain.links_by_node[:, begins + k] @ error, error)
    with np.errstate(divide="ignore"):
        grown = np.log10(np.linalg.norm(error[..., 0], axis=2))
    lengths = np.broadcast_to([len(begins) * BLOCK, links], (members, 2))
    total = across.added(np.concatenate([grown.sum(axis=1, keepdims=True), lengths], axis=1))
    share = total[:, 2] / np.maximum(total[:, 1], 1)  # a rest shorter than a block counts as the others
    return np.maximum(total[:, 0] * share, 0.0)


def _blocks(chain: Chain) -> NDArray[np.int64]:
    """The first link of each block."""
    if chain.segments is None:
        return np.arange(chain.links_by_node.shape[1] // BLOCK) * BLOCK
    counts = (chain.segments.nodes - 1) // BLOCK
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(chain.segments.first, counts) + number * BLOCK
