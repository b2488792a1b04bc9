"""A communicator of one, for machines without MPI and for the Python API's default."""

from __future__ import annotations

import sys
from typing import Any


class Serial:
    """The part of mpi4py's communicator that hpcfit uses, with a single rank."""

    rank = 0
    size = 1

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        return None

    def Abort(self, status: int = 1) -> None:
        sys.exit(status)


SERIAL = Serial()
