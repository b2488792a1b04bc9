"""Windows of all ranks as one sparse symmetric system, of which each rank has some rows.

Its unknowns are for each window the residuals v of its rows, its state s, and the multipliers lambda of its
link to the next; then the residuals of the rows on parameters alone, and the parameters p:

    -v + R s + S p + c = 0        E s - s' + D p + e = 0
    R^t v + E^t lambda - lambda' = 0        sum S^t v + D^t lambda = 0

with s' of the window after and lambda' of the link before. Rows are not squared (the augmented form of
Björck 1996, sec. 2.7). If the data determine all unknowns, each v and each lambda has a negative eigenvalue.
Each rank has the rows of its own windows, the last one the border too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from hpcfit.linear.segmented import Condensed, Task
from hpcfit.linear.segments import Numbers
from hpcfit.mpi.together import gathered
from hpcfit.records import Array

Flags = NDArray[np.bool_]


def window_joints(windows: Condensed, task: Task) -> Flags:
    """Whether a link leads on from each window (W,)."""
    joined = np.ones(len(windows.begins), dtype=bool)
    joined[np.cumsum(windows.counts) - 1] = task.segments.joined
    return joined


@dataclass(frozen=True)
class Layout:
    """Where this rank's unknowns stand among them. W windows, C of them joined to the next."""

    first: int  # unknown of this rank
    joined: Flags  # (W,) a link leads on from the window
    residuals: Numbers  # (W, n) v
    states: Numbers  # (W, n) s
    multipliers: Numbers  # (C, n) lambda
    border: Numbers  # (q,) v of the rows on parameters alone; the last rank has them
    parameters: Numbers  # (q,) p
    size: int  # unknowns of this rank
    total: int
    has_border: bool

    @classmethod
    def of(cls, comm: Any, n: int, q: int, joined: Flags) -> Layout:
        lengths = 2 * n + n * joined.astype(np.int64)
        before = np.cumsum(lengths) - lengths
        every = gathered(comm, np.array([lengths.sum()]))
        first, windows_end, unit = int(every[: comm.rank].sum()), int(every.sum()), np.arange(n)
        last = comm.rank == comm.size - 1
        return cls(
            first=first,
            joined=joined,
            residuals=before[:, None] + unit,
            states=before[:, None] + n + unit,
            multipliers=before[joined][:, None] + 2 * n + unit,
            border=windows_end - first + np.arange(q),
            parameters=windows_end - first + q + np.arange(q),
            size=int(lengths.sum()) + (2 * q if last else 0),
            total=windows_end + 2 * q,
            has_border=last,
        )

    @property
    def unknowns(self) -> Numbers:
        """States, and parameters where they are."""
        border = self.parameters if self.has_border else self.parameters[:0]
        return np.concatenate([self.states.ravel(), border])

    def packed(self, windows: Condensed, border: Array, size: float) -> Array:
        """The right-hand side: -c of the rows, -e of the joints."""
        right = np.zeros(self.size)
        right[self.residuals] = -windows.rows[:, : self.states.shape[1], -1] / size
        right[self.multipliers] = -windows.ends[self.joined, :, -1]
        if self.has_border:
            right[self.border] = -border / size
        return right


def upper_triangle(
    layout: Layout, windows: Condensed, border: Array, size: float, units: Array
) -> csr_matrix:
    """The upper triangle of this rank's rows of the system; the border stands with the last rank.

    Rows are divided by `size`; parameters are in these units (q,).
    """
    v, s, p, joined = layout.residuals, layout.states, layout.parameters, layout.joined
    n, f = s.shape[1], windows.rows.shape[1]
    ends, multipliers = windows.ends[joined], layout.multipliers
    i, k = np.triu_indices(n)
    blocks: list[tuple[Any, Any, Any]] = [
        (v, v, -1.0),
        (s, s, 0.0),
        (v[:, i], s[:, k], windows.rows[:, i, k] / size),
        (v[:, :, None], p, windows.rows[:, :n, n:f] / size * units),
        (multipliers, multipliers, 0.0),
        (s[joined][:, None], multipliers[:, :, None], ends[:, :, :n]),
        (multipliers, multipliers[:, :1] + 2 * n + np.arange(n), -1.0),  # s of the next window, behind its v
        (multipliers[:, :, None], p, ends[:, :, n:f] * units),
    ]
    if layout.has_border:
        i, k = np.triu_indices(len(p))
        blocks += [
            (layout.border, layout.border, -1.0),
            (layout.border[i], p[k], border[i, k] / size * units[k]),
            (p, p, 0.0),
        ]
    entries = [np.broadcast_arrays(*block) for block in blocks]
    row, column, value = (np.concatenate([entry[part].ravel() for entry in entries]) for part in range(3))
    return csr_matrix((value, (row, column + layout.first)), shape=(layout.size, layout.total))
