"""Anchors: rows that keep the nodes of a chain near where they are, each with its own weights (Levenberg)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcfit.linear.chain import Chain, Residuals
from hpcfit.records import Array


def anchored(chain: Chain, weights: Array) -> Chain:
    """The chain with the rows weight * ds of every state of every node; weights (M, N, n)."""
    members, nodes, _, n, q = chain.shape
    rows = weights[..., None] * np.eye(n)
    none = np.broadcast_to(np.zeros(1), (members, nodes, n, q))
    return replace(
        chain,
        rows_by_node=np.concatenate([chain.rows_by_node, rows], axis=2),
        rows_by_parameters=np.concatenate([chain.rows_by_parameters, none], axis=2),
        residuals=pulled(chain.residuals, np.zeros_like(weights)),
    )


def pulled(residuals: Residuals, away: Array) -> Residuals:
    """Residuals with what the anchors say of nodes that are so far `away` from them, times the weights."""
    return Residuals(np.concatenate([residuals.rows, away], axis=2), residuals.links)
