"""Condensing (Bock 1981): nodes expressed by the first node of their window, as long as that is safe.

Inside a window ds_j = X_j ds_w + Y_j dp + t_j. A window closes before the product X of the G_j has grown past
a limit: rounding errors are amplified by no more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.chain import ByMember, Chain
from hpcfit.records import Array

GROWTH = 1e3


@dataclass(frozen=True)
class Windows(ByMember):
    """Where windows begin, and the nodes and the links between windows by window states and parameters."""

    by_window: Array  # (M, N, n, n) X
    by_parameters: Array  # (M, N, n, q) Y
    ends_by_window: Array  # (M, N - 1, n, n) G_j X_j: the next node, where a window ends with j
    ends_by_parameters: Array  # (M, N - 1, n, q) G_j Y_j + H_j
    number: NDArray[np.int64]  # (M, N) the window of each node
    closes: NDArray[np.bool_]  # (M, N - 1) the window of j ends with j

    @property
    def count(self) -> int:
        return int(self.number[:, -1].max()) + 1


def condense(chain: Chain, growth: float = GROWTH) -> Windows:
    """Forward elimination of the nodes."""
    members, nodes, _, n, q = chain.shape
    transfer = np.empty((members, nodes, n, n + q))
    ends = np.empty((members, nodes - 1, n, n + q))
    closes = np.zeros((members, nodes - 1), dtype=bool)
    closes[:, ~np.array(chain.linked, dtype=bool)] = True
    begin = np.concatenate([np.eye(n), np.zeros((n, q))], axis=1)
    here = np.broadcast_to(begin, (members, n, n + q))
    transfer[:, 0] = here
    for j in range(nodes - 1):
        here = np.matmul(chain.links_by_node[:, j], here, out=ends[:, j])
        here[..., n:] += chain.links_by_parameters[:, j]
        if not closes[0, j]:
            np.greater(np.abs(here[..., :n]).max(axis=(1, 2)), growth, out=closes[:, j])
        if closes[:, j].any():
            here = np.where(closes[:, j, None, None], begin, here)
        transfer[:, j + 1] = here
    number = np.zeros((members, nodes), dtype=np.int64)
    np.cumsum(closes, axis=1, out=number[:, 1:])
    return Windows(transfer[..., :n], transfer[..., n:], ends[..., :n], ends[..., n:], number, closes)


def carried(chain_links: Array, windows: Windows, defects: Array) -> tuple[Array, Array]:
    """The inhomogeneous parts: t_j at the nodes (M, N, n), and G_j t_j + d_j at the links (M, N - 1, n)."""
    members, links, n = defects.shape
    at_nodes, at_ends = np.zeros((members, links + 1, n)), np.empty_like(defects)
    here = np.zeros((members, n, 1))
    for j in range(links):
        here = np.matmul(chain_links[:, j], here)
        here[..., 0] += defects[:, j]
        at_ends[:, j] = here[..., 0]
        if windows.closes[:, j].any():
            here = np.where(windows.closes[:, j, None, None], 0.0, here)
        at_nodes[:, j + 1] = here[..., 0]
    return at_nodes, at_ends
