"""How far errors grow along a series: what makes it long for the exact method."""

from __future__ import annotations

import numpy as np

from hpcfit.linear.chain import Chain
from hpcfit.records import Array

BLOCK = 32  # nodes that one error is followed along


def decades(chain: Chain) -> Array:
    """log10 of the growth of an error along all links, at least 0 (M,).

    One error is followed through every block of links; a rest shorter than a block counts as the others.
    """
    members, links, n, _ = chain.links_by_node.shape
    blocks = links // BLOCK
    if not blocks:
        return np.zeros(members)
    by_block = chain.links_by_node[:, : blocks * BLOCK].reshape(members, blocks, BLOCK, n, n)
    linked = np.array(chain.linked[: blocks * BLOCK]).reshape(blocks, BLOCK)
    error = np.full((members, blocks, n, 1), n**-0.5)
    for k in range(BLOCK):
        error = np.where(linked[:, k, None, None], by_block[:, :, k] @ error, error)
    with np.errstate(divide="ignore"):
        grown = np.log10(np.linalg.norm(error[..., 0], axis=2))
    total = grown.sum(axis=1)
    return np.maximum(total * links / (blocks * BLOCK), 0.0)
