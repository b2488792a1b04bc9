"""The condensed problem of one member as a sparse symmetric system, each rank with the rows of its windows.

Its unknowns are for each window the residuals v of its compressed rows, its state s, and the multipliers
lambda of its link to the next; then the residuals of the rows on parameters alone, and the parameters p:

    -v + R s + S p + c = 0        E s - s' + D p + e = 0
    R^t v + E^t lambda - lambda' = 0        sum S^t v + D^t lambda = 0

with s' of the window after and lambda' of the link before. Rows are not squared (the augmented form of
Björck 1996, sec. 2.7). If the data determine all unknowns, each v and each lambda has a negative eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from hpcfit.linear.chain import Chain
from hpcfit.linear.windows import Windows
from hpcfit.mpi.together import gathered, share
from hpcfit.records import Array

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Where each unknown of the system stands. W windows, C joints of windows."""

    residuals: Numbers  # (W, n) v
    states: Numbers  # (W, n) s
    multipliers: Numbers  # (C, n) lambda
    border: Numbers  # (q,) v of the rows on parameters alone
    parameters: Numbers  # (q,) p
    begins: Numbers  # (W + 1,) the first unknown of each window, and of the border
    joints: Numbers  # (C,) the link of each joint
    before: Numbers  # (C,) the window that ends there
    freedoms: int

    @classmethod
    def of(cls, chain: Chain, windows: Windows) -> Layout:
        _, _, _, n, q = chain.shape
        linked = np.array(chain.linked, dtype=bool)
        joints = np.flatnonzero(windows.closes[0] & linked)
        before = windows.number[0, joints]
        lengths = np.full(windows.count, 2 * n)
        lengths[before] += n
        begins = np.concatenate([[0], np.cumsum(lengths)])
        first, unit = begins[:-1, None], np.arange(n)
        border = begins[-1] + np.arange(q)
        return cls(
            residuals=first + unit,
            states=first + n + unit,
            multipliers=first[before] + 2 * n + unit,
            border=border,
            parameters=border + q,
            begins=begins,
            joints=joints,
            before=before,
            freedoms=n * (1 + int(np.count_nonzero(~linked))) + q,
        )

    @property
    def size(self) -> int:
        return int(self.begins[-1]) + 2 * len(self.parameters)

    @property
    def n_rows(self) -> int:
        """Compressed rows W n + q."""
        return self.residuals.size + len(self.border)

    @property
    def unknowns(self) -> Numbers:
        """States and parameters."""
        return np.concatenate([self.states.ravel(), self.parameters])

    def packed(self, *, rows: Array, links: Array | None = None) -> Array:
        """The right-hand side: -c of the rows (W n + q,), -e of the joints (C, n)."""
        right = np.zeros(self.size)
        right[self.residuals] = -rows[: self.residuals.size].reshape(self.residuals.shape)
        right[self.border] = -rows[self.residuals.size :]
        if links is not None:
            right[self.multipliers] = -links
        return right

    def rows_of(self, solution: Array) -> Array:
        """v (W n + q,)."""
        return np.concatenate([solution[self.residuals].ravel(), solution[self.border]])


@dataclass(frozen=True)
class CompressedRows:
    """The rows of each window as a triangle on its state and the parameters (QR), in units of `size`.

    Only the top n of each involve the state; the others, of all windows, become one on the parameters.
    """

    mine: range  # the windows of this rank
    cuts: Numbers  # (W + 1,) the first node of each window, and N
    orthogonal: list[Array]  # per window of mine (nodes * k, n + q)
    triangles: Array  # (len(mine), n, n + q) R and S
    border_orthogonal: Array  # (W q, q)
    border_triangle: Array  # (q, q)
    size: float  # about the largest singular value of the rows as they were

    @classmethod
    def of(cls, comm: Any, chain: Chain, windows: Windows) -> CompressedRows:
        _, _, _, n, q = chain.shape
        cuts = np.searchsorted(windows.number[0], np.arange(windows.count + 1))
        mine = share(comm, windows.count)
        orthogonal, triangles = [], np.zeros((len(mine), n + q, n + q))
        for i, w in enumerate(mine):
            here = slice(cuts[w], cuts[w + 1])
            by_node = chain.rows_by_node[0, here]
            by_parameters = by_node @ windows.by_parameters[0, here] + chain.rows_by_parameters[0, here]
            table = np.concatenate([by_node @ windows.by_window[0, here], by_parameters], axis=2)
            table = table.reshape(-1, n + q)
            missing = max(n + q - len(table), 0)
            whole, triangles[i] = np.linalg.qr(np.pad(table, ((0, missing), (0, 0))))
            orthogonal.append(whole[: len(table)])
        everybody = gathered(comm, triangles)
        squares = (everybody**2).sum(axis=1)  # of the columns
        size = float(np.sqrt(squares[:, :n].sum(axis=1).max() + squares[:, n:].sum()))
        unit = size if size > 0.0 else 1.0
        border_orthogonal, border_triangle = np.linalg.qr(
            np.concatenate([everybody[:, n:, n:].reshape(windows.count * q, q), np.zeros((q, q))])
        )
        return cls(
            mine,
            cuts,
            orthogonal,
            triangles[:, :n] / unit,
            border_orthogonal[: windows.count * q],
            border_triangle / unit,
            unit,
        )

    def compressed(self, comm: Any, rows: Array) -> Array:
        """c of the rows (N, k) in the order of v (W n + q,)."""
        n, width = self.triangles.shape[1:]
        own = np.empty((len(self.mine), width))
        for i, w in enumerate(self.mine):
            own[i] = rows[self.cuts[w] : self.cuts[w + 1]].ravel() @ self.orthogonal[i]
        everybody = gathered(comm, own) / self.size
        return np.concatenate([everybody[:, :n].ravel(), everybody[:, n:].ravel() @ self.border_orthogonal])


def upper_triangle(layout: Layout, windows: Windows, rows: CompressedRows) -> csr_matrix:
    """The upper triangle of this rank's rows of the system; the border stands with the last window."""
    mine, n = slice(rows.mine.start, rows.mine.stop), rows.triangles.shape[1]
    v, s, p = layout.residuals[mine], layout.states[mine], layout.parameters
    joined = (layout.before >= mine.start) & (layout.before < mine.stop)
    multipliers, before = layout.multipliers[joined], layout.before[joined]
    ends = layout.joints[joined]
    i, k = np.triu_indices(n)
    blocks = [
        (v, v, -1.0),
        (s, s, 0.0),
        (v[:, i], s[:, k], rows.triangles[:, i, k]),
        (v[:, :, None], p, rows.triangles[:, :, n:]),
        (multipliers, multipliers, 0.0),
        (layout.states[before][:, None], multipliers[:, :, None], windows.ends_by_window[0, ends]),
        (multipliers, layout.states[before + 1], -1.0),
        (multipliers[:, :, None], p, windows.ends_by_parameters[0, ends]),
    ]
    first, last = layout.begins[mine.start], layout.begins[mine.stop]
    if windows.count - 1 in rows.mine:
        i, k = np.triu_indices(len(p))
        last = layout.size
        blocks += [
            (layout.border, layout.border, -1.0),
            (layout.border[i], p[k], rows.border_triangle[i, k]),
            (p, p, 0.0),
        ]
    entries = [np.broadcast_arrays(*block) for block in blocks]
    row, column, value = (np.concatenate([entry[part].ravel() for entry in entries]) for part in range(3))
    return csr_matrix((value, (row - first, column)), shape=(last - first, layout.size))
