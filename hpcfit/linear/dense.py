"""The condensed problem by orthogonal transformations (Lawson and Hanson 1974, ch. 20): never squared.

Unknowns x of the condensed problem are the window states and the parameters; the links between windows are
its constraints C x + e = 0. With C^t = (Q1 Q2) (R; 0), x = -Q1 R^-t e + Q2 y satisfies them for every y, and
y is an ordinary least squares problem in n + q unknowns, whose singular values tell the rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.chain import ByMember, Chain, Members, Residuals, Unknowns
from hpcfit.linear.windows import GROWTH, Windows, carried, condense
from hpcfit.records import Array

RANK_TOLERANCE = 1e-10  # singular values below this part of the largest count as zero


@dataclass(frozen=True)
class Decomposed(ByMember):
    """J+ of (4.9) for one scaled chain: applied to any residuals, with rank, covariance and multipliers.

    All members have as many windows. W windows, C links between windows, f degrees of freedom (n for each
    experiment, and q).
    """

    chain: Chain
    windows: Windows
    joints: NDArray[np.int64]  # (M, C) the link of each constraint
    range: Array  # (M, W n + q, C n) Q1
    triangle: Array  # (M, C n, C n) R
    free: Array  # (M, W n + q, f) Q2
    nodes_by_free: Array  # (M, N, n, f)
    singular_values: Array  # (M, f)
    left: Array  # (M, N k, f) of the singular value decomposition of the rows by y
    right: Array  # (M, f, f) its right vectors as columns

    def solve(self, residuals: Residuals) -> Unknowns:
        """dz = -J+ F (4.9); for a deficient rank the one of smallest length, the relaxed solution."""
        nodes, parameters, projected = self.particular(residuals)
        return self.joined(nodes, parameters, -(projected * self._inverse_values()))

    def particular(self, residuals: Residuals) -> tuple[Array, Array, Array]:
        """An increment that satisfies the links, (M, N, n) and (M, q); from there b of ||s y + b|| (M, f)."""
        chain, windows = self.chain, self.windows
        members, _, _, _, q = chain.shape
        at_nodes, at_ends = carried(chain.links_by_node, windows, residuals.links)
        start = self._particular(at_ends)
        nodes = at_nodes + _nodes(windows, start, q)
        parameters = start[:, start.shape[1] - q :]
        rows = residuals.rows + _rows(chain, nodes, parameters)
        return nodes, parameters, np.einsum("mrf,mr->mf", self.left, rows.reshape(members, -1))

    def joined(self, nodes: Array, parameters: Array, y: Array) -> Unknowns:
        """The increment that goes y (M, f) from there, along the singular directions."""
        turned = np.einsum("mfg,mg->mf", self.right, y)
        free = self.free[:, self.free.shape[1] - parameters.shape[1] :]
        return Unknowns(
            nodes + np.einsum("mjnf,mf->mjn", self.nodes_by_free, turned),
            parameters + np.einsum("mqf,mf->mq", free, turned),
        )

    def directions(self) -> tuple[Array, Array]:
        """Nodes (M, N, n, f) and parameters (M, q, f) by y."""
        q = self.chain.shape[-1]
        return self.nodes_by_free @ self.right[:, None], self.free[:, self.free.shape[1] - q :] @ self.right

    @property
    def rank(self) -> NDArray[np.int64]:
        """Per member (M,)."""
        return np.count_nonzero(self._significant(), axis=1)

    @property
    def freedoms(self) -> int:
        """How many unknowns the data have to determine."""
        return int(self.free.shape[-1])

    def covariance_factor(self) -> tuple[Array, Array]:
        """L of the covariance L L^t: for the nodes (M, N, n, f) and for the parameters (M, q, f)."""
        root = self.right * self._inverse_values()[:, None]
        q = self.chain.shape[-1]
        parameters = self.free[:, self.free.shape[1] - q :] @ root
        return self.nodes_by_free @ root[:, None], parameters

    def null_directions(self, node: int = 0) -> tuple[Array, Array]:
        """Directions that the data do not see, else zero: node (M, n, f), parameters (M, q, f)."""
        blind = self.right * ~self._significant()[:, None]
        q = self.chain.shape[-1]
        return self.nodes_by_free[:, node] @ blind, self.free[:, self.free.shape[1] - q :] @ blind

    def multipliers(
        self, residuals: Residuals, step: Unknowns, forces: tuple[Array, Array] | None = None
    ) -> Array:
        """lambda_c of (4.10) for every link (M, N - 1, n): at joints by the factors, inside by recursion.

        forces: of further conditions, on the nodes (M, N, n) and on the parameters (M, q).
        """
        chain, windows = self.chain, self.windows
        members, nodes, _, n, _ = chain.shape
        rho = residuals.rows + _rows(chain, step.nodes, step.parameters)
        pull = np.einsum("mjki,mjk->mji", chain.rows_by_node, rho)  # A^t rho
        if forces is not None:
            pull -= forces[0]
        gradient = np.zeros((members, windows.count, n))
        by_window = np.einsum("mjil,mji->mjl", windows.by_window, pull)
        for m in range(members):
            np.add.at(gradient[m], windows.number[m], by_window[m])
        border = np.einsum("mjiq,mji->mq", windows.by_parameters, pull)
        border += np.einsum("mjkq,mjk->mq", chain.rows_by_parameters, rho)
        if forces is not None:
            border -= forces[1]
        whole = np.concatenate([gradient.reshape(members, -1), border], axis=1)
        at_joints = np.linalg.solve(self.triangle, np.einsum("mxc,mx->mc", self.range, whole)[..., None])
        result = np.zeros((members, nodes - 1, n))
        result[np.arange(members)[:, None], self.joints] = at_joints.reshape(members, -1, n)
        for j in range(nodes - 2, -1, -1):
            inner = np.zeros((members, n))
            if j < nodes - 2:
                inner = np.einsum("mil,mi->ml", chain.links_by_node[:, j + 1], result[:, j + 1])
            result[:, j] = np.where(windows.closes[:, j, None], result[:, j], inner - pull[:, j + 1])
        return result

    def _particular(self, at_ends: Array) -> Array:
        """-Q1 R^-t e (M, W n + q)."""
        members = len(at_ends)
        if not self.joints.shape[1]:
            return np.zeros(self.free.shape[:2])
        e = at_ends[np.arange(members)[:, None], self.joints]
        solved = np.linalg.solve(self.triangle.transpose(0, 2, 1), e.reshape(members, -1, 1))
        particular: Array = -(self.range @ solved)[..., 0]
        return particular

    def _significant(self) -> NDArray[np.bool_]:
        return self.singular_values > RANK_TOLERANCE * self.singular_values.max(axis=1, keepdims=True)

    def _inverse_values(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(self._significant(), 1.0 / self.singular_values, 0.0)


@dataclass(frozen=True)
class Assorted:
    """J+ of members that differ in the number of their windows: each as if it were alone."""

    chain: Chain
    part: NDArray[np.int64]  # (M,) where each member is
    place: NDArray[np.int64]  # (M,) and which of that part it is
    parts: tuple[Decomposed, ...]

    def take(self, members: Members) -> Assorted:
        return Assorted(self.chain.take(members), self.part[members], self.place[members], self.parts)

    def solve(self, residuals: Residuals) -> Unknowns:
        def solved(part: Decomposed, which: NDArray[np.int64]) -> tuple[Array, ...]:
            step = part.solve(residuals.take(which))
            return step.nodes, step.parameters

        return Unknowns(*self._joined(solved))

    def particular(self, residuals: Residuals) -> tuple[Array, Array, Array]:
        nodes, parameters, b = self._joined(lambda part, which: part.particular(residuals.take(which)))
        return nodes, parameters, b

    def joined(self, nodes: Array, parameters: Array, y: Array) -> Unknowns:
        def moved(part: Decomposed, which: NDArray[np.int64]) -> tuple[Array, ...]:
            step = part.joined(nodes[which], parameters[which], y[which])
            return step.nodes, step.parameters

        return Unknowns(*self._joined(moved))

    def directions(self) -> tuple[Array, Array]:
        nodes, parameters = self._joined(lambda part, which: part.directions())
        return nodes, parameters

    @property
    def singular_values(self) -> Array:
        values: Array = self._joined(lambda part, which: (part.singular_values,))[0]
        return values

    @property
    def rank(self) -> NDArray[np.int64]:
        (ranks,) = self._joined(lambda part, which: (part.rank,))
        return ranks

    @property
    def freedoms(self) -> int:
        return self.parts[0].freedoms

    def covariance_factor(self) -> tuple[Array, Array]:
        nodes, parameters = self._joined(lambda part, which: part.covariance_factor())
        return nodes, parameters

    def null_directions(self, node: int = 0) -> tuple[Array, Array]:
        nodes, parameters = self._joined(lambda part, which: part.null_directions(node))
        return nodes, parameters

    def multipliers(
        self, residuals: Residuals, step: Unknowns, forces: tuple[Array, Array] | None = None
    ) -> Array:
        def pulled(part: Decomposed, which: NDArray[np.int64]) -> tuple[Array, ...]:
            own = None if forces is None else (forces[0][which], forces[1][which])
            return (part.multipliers(residuals.take(which), step.take(which), own),)

        (found,) = self._joined(pulled)
        return found

    def _joined(self, action: Callable[[Decomposed, NDArray[np.int64]], tuple[Any, ...]]) -> tuple[Any, ...]:
        """What every part does with its members, in the order of the members."""
        groups = [np.flatnonzero(self.part == number) for number in range(len(self.parts))]
        found = [
            action(part.take(self.place[which]), which)
            for part, which in zip(self.parts, groups, strict=True)
            if len(which)
        ]
        order = np.argsort(np.concatenate(groups))
        return tuple(np.concatenate(pieces)[order] for pieces in zip(*found, strict=True))


GeneralisedInverse = Decomposed | Assorted


def generalised_inverse(chain: Chain, growth: float = GROWTH) -> GeneralisedInverse:
    """Condense, satisfy the links between windows, and decompose what is left."""
    windows = condense(chain, growth)
    counts, part = np.unique(windows.number[:, -1], return_inverse=True)
    if len(counts) == 1:
        return _decomposed(chain, windows)
    groups = [np.flatnonzero(part == number) for number in range(len(counts))]
    place = np.empty_like(part)
    for which in groups:
        place[which] = np.arange(len(which))
    parts = tuple(_decomposed(chain.take(which), windows.take(which)) for which in groups)
    return Assorted(chain, part, place, parts)


def _decomposed(chain: Chain, windows: Windows) -> Decomposed:
    joints, constraints = _constraints(chain, windows)
    members, nodes, k, _, q = chain.shape
    width = constraints.shape[2]
    if joints.shape[1]:
        whole, triangle = np.linalg.qr(constraints.transpose(0, 2, 1), mode="complete")
        ranged, free = whole[..., : constraints.shape[1]], whole[..., constraints.shape[1] :]
        triangle = triangle[:, : constraints.shape[1]]
    else:
        ranged, triangle = np.zeros((members, width, 0)), np.zeros((members, 0, 0))
        free = np.broadcast_to(np.eye(width), (members, width, width))
    nodes_by_free = _nodes(windows, free, q)
    by_free = _rows(chain, nodes_by_free, free[:, width - q :]).reshape(members, nodes * k, -1)
    missing = max(by_free.shape[2] - nodes * k, 0)  # rows, to as many as there are freedoms
    orthogonal, square = np.linalg.qr(np.pad(by_free, ((0, 0), (0, missing), (0, 0))))
    left, values, right = np.linalg.svd(square)
    return Decomposed(
        chain=chain,
        windows=windows,
        joints=joints,
        range=ranged,
        triangle=triangle,
        free=free,
        nodes_by_free=nodes_by_free,
        singular_values=values,
        left=orthogonal[:, : nodes * k] @ left,
        right=right.transpose(0, 2, 1),
    )


def _constraints(chain: Chain, windows: Windows) -> tuple[NDArray[np.int64], Array]:
    """Which links join windows (M, C), and C x + e = 0 for them (M, C n, W n + q)."""
    members, _, _, n, q = chain.shape
    linked = np.array(chain.linked, dtype=bool)
    joins = windows.closes & linked
    count = windows.count
    n_joints = count - 1 - int(np.count_nonzero(~linked))
    joints = np.empty((members, n_joints), dtype=np.int64)
    by_window = np.zeros((members, n_joints, n, count, n))
    by_parameters = np.zeros((members, n_joints, n, q))
    member, link = np.nonzero(joins)
    c = (np.cumsum(joins, axis=1) - 1)[member, link]
    joints[member, c] = link
    by_window[member, c, :, windows.number[member, link]] = windows.ends_by_window[member, link]
    by_window[member, c, :, windows.number[member, link + 1]] = -np.eye(n)
    by_parameters[member, c] = windows.ends_by_parameters[member, link]
    whole = np.concatenate([by_window.reshape(members, n_joints, n, count * n), by_parameters], axis=3)
    return joints, whole.reshape(members, n_joints * n, count * n + q)


def _nodes(windows: Windows, x: Array, q: int) -> Array:
    """X_j x_w + Y_j p at all nodes, for one x (M, W n + q) or several as columns (M, W n + q, f)."""
    members, n = len(x), windows.by_window.shape[-1]
    by_window = x[:, : x.shape[1] - q].reshape(members, -1, n, *x.shape[2:])
    own = np.take_along_axis(by_window, windows.number.reshape(*windows.number.shape, *[1] * (x.ndim - 1)), 1)
    columns = own if x.ndim == 3 else own[..., None]
    border = x[:, None, x.shape[1] - q :] if x.ndim == 3 else x[:, None, x.shape[1] - q :, None]
    result: Array = windows.by_window @ columns + windows.by_parameters @ border
    return result if x.ndim == 3 else result[..., 0]


def _rows(chain: Chain, nodes: Array, parameters: Array) -> Array:
    """A_j ds_j + B_j dp at all nodes, for one increment or for several as columns."""
    if nodes.ndim == 4:
        result: Array = chain.rows_by_node @ nodes + chain.rows_by_parameters @ parameters[:, None]
        return result
    columns = _rows(chain, nodes[..., None], parameters[..., None])
    return columns[..., 0]
