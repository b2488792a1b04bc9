"""Exchange with the ranks before and after: nodes lie on ranks in their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def from_after(comm: Any, first: NDArray[Any]) -> NDArray[Any] | None:
    """What the next rank gives to the one before it; None on the last."""
    if comm.size == 1:
        return None
    before, after = comm.rank - 1, comm.rank + 1
    sent = comm.isend(np.ascontiguousarray(first), dest=before) if before >= 0 else None
    found = comm.recv(source=after) if after < comm.size else None
    if sent is not None:
        sent.wait()
    return found


def from_before(comm: Any, last: NDArray[Any]) -> NDArray[Any] | None:
    """What the rank before gives to the one after it; None on the first."""
    if comm.size == 1:
        return None
    before, after = comm.rank - 1, comm.rank + 1
    sent = comm.isend(np.ascontiguousarray(last), dest=after) if after < comm.size else None
    found = comm.recv(source=before) if before >= 0 else None
    if sent is not None:
        sent.wait()
    return found
