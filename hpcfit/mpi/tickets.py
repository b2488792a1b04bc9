"""Numbers that ranks take when they need work: who is faster takes more."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numpy as np


class Tickets:
    """Whole numbers from 0 on, each given to one rank only; made and closed by all ranks together.

    The counter lies in rank 0's memory and is raised from outside, without rank 0 taking part.
    """

    def __init__(self, comm: Any) -> None:
        self._window: Any = None
        self._taken = np.zeros(1, dtype=np.int64)
        if comm.size > 1:
            from mpi4py import MPI

            self._sum = MPI.SUM
            self._window = MPI.Win.Allocate(
                8 if comm.rank == 0 else 0, 8, comm=comm
            )  # MPI's own: shared memory
            if comm.rank == 0:
                np.frombuffer(self._window.tomemory(), dtype=np.int64)[0] = 0
            comm.barrier()

    def take(self, count: int) -> int:
        """The first of `count` numbers that nobody else gets."""
        if self._window is None:
            first = int(self._taken[0])
            self._taken[0] += count
            return first
        found = np.zeros(1, dtype=np.int64)
        self._window.Lock(0)
        self._window.Fetch_and_op(np.array([count], dtype=np.int64), found, 0, 0, self._sum)
        self._window.Unlock(0)
        return int(found[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._window is not None and error is None:  # else other ranks may never come to free it
            self._window.Free()
