"""Random chains, and what numpy says of them: all nodes as unknowns, nothing condensed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcfit.linear.chain import Chain, Residuals, Unknowns


def random_chain(
    seed: int,
    *,
    stretch: float | Sequence[float] = 1.2,
    n_nodes: int = 20,
    n_rows: int = 2,
    n_states: int = 3,
    n_parameters: int = 2,
    ends: Sequence[int] = (),
) -> Chain:
    """One member for each `stretch`, the growth of the first direction from node to node.

    The second direction shrinks as much, the others keep their length. A fifth of the rows is missing. An
    experiment ends with each node of `ends`; what the arrays say of the link from there must not matter.
    """
    rng = np.random.default_rng(seed)
    growth = np.atleast_1d(np.asarray(stretch, dtype=float))
    members = len(growth)
    frames = np.linalg.qr(rng.normal(size=(members, n_nodes, n_states, n_states)))[0]
    sizes = np.ones((members, n_nodes - 1, n_states))
    sizes[..., 0] = growth[:, None] * np.exp(0.1 * rng.normal(size=(members, n_nodes - 1)))
    sizes[..., 1:2] = 1.0 / growth[:, None, None]
    there = rng.random((members, n_nodes, n_rows)) < 0.8
    return Chain(
        rows_by_node=there[..., None] * rng.normal(size=(members, n_nodes, n_rows, n_states)),
        rows_by_parameters=there[..., None] * rng.normal(size=(members, n_nodes, n_rows, n_parameters)),
        links_by_node=(frames[:, 1:] * sizes[:, :, None]) @ frames[:, :-1].swapaxes(2, 3),
        links_by_parameters=rng.normal(size=(members, n_nodes - 1, n_states, n_parameters)),
        residuals=Residuals(
            there * rng.normal(size=(members, n_nodes, n_rows)),
            rng.normal(size=(members, n_nodes - 1, n_states)),
        ),
        linked=~np.isin(np.arange(n_nodes - 1), ends),
    )


def jacobians(chain: Chain, member: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """J1 (N k, N n + q) and J2 (n for each link, N n + q) of (4.8)."""
    _, nodes, k, n, q = chain.shape
    rows = np.zeros((nodes, k, nodes * n + q))
    links = np.zeros((nodes - 1, n, nodes * n + q))
    for j in range(nodes):
        rows[j, :, j * n : (j + 1) * n] = chain.rows_by_node[member, j]
    rows[..., nodes * n :] = chain.rows_by_parameters[member]
    for j in range(nodes - 1):
        links[j, :, j * n : (j + 1) * n] = chain.links_by_node[member, j]
        links[j, :, (j + 1) * n : (j + 2) * n] = -np.eye(n)
    links[..., nodes * n :] = chain.links_by_parameters[member]
    width = nodes * n + q
    return rows.reshape(-1, width), links[np.array(chain.linked, dtype=bool)].reshape(-1, width)


def functions(chain: Chain, member: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """F1 (N k,) and F2 (n for each link,)."""
    links = chain.residuals.links[member][np.array(chain.linked, dtype=bool)]
    return chain.residuals.rows[member].ravel(), links.ravel()


def augmented(chain: Chain, member: int = 0) -> np.ndarray:
    """The matrix of (4.10) with the residuals as unknowns: (rho, dz, -lambda)."""
    j1, j2 = jacobians(chain, member)
    rows, width, links = len(j1), j1.shape[1], len(j2)
    matrix = np.zeros((rows + width + links,) * 2)
    matrix[:rows, :rows] = -np.eye(rows)
    matrix[:rows, rows : rows + width] = j1
    matrix[rows + width :, rows : rows + width] = j2
    return matrix + np.tril(matrix, -1).T + np.triu(matrix, 1).T


def full_solution(chain: Chain, member: int = 0) -> np.ndarray:
    """dz as one vector (N n + q,)."""
    f1, f2 = functions(chain, member)
    width = augmented(chain, member).shape[0] - len(f1) - len(f2)
    right = -np.concatenate([f1, np.zeros(width), f2])
    return np.linalg.solve(augmented(chain, member), right)[len(f1) : len(f1) + width]


def vector(step: Unknowns, member: int = 0) -> np.ndarray:
    """(N n + q,)"""
    return np.concatenate([step.nodes[member].ravel(), step.parameters[member]])


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())
