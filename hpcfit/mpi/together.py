"""Doing something on one rank or on all, such that an error anywhere is the same error everywhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def on_root(comm: Any, action: Callable[[], T]) -> T:
    """Run `action` on rank 0 and give its result, or raise its error, on all ranks."""
    result: Any = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = action()
        except Exception as raised:
            error = raised
    result, error = comm.bcast((result, error))
    if error is not None:
        raise agreed(error)
    return result


def everywhere(comm: Any, action: Callable[[], T]) -> T:
    """Run `action` on all ranks; if it fails on any, the error of the lowest such rank is raised on all."""
    result: Any = None
    error: Exception | None = None
    try:
        result = action()
    except Exception as raised:
        error = raised
    first = next((each for each in comm.allgather(error) if each is not None), None)
    if first is not None:
        raise agreed(first)
    return result


def on_few(comm: Any, most: int, action: Callable[[Any], T]) -> T:
    """Run `action` on a group of at most so many ranks; all ranks get its result, or its error."""
    if comm.size <= most:
        return action(comm)
    few = comm.Split(int(comm.rank >= most), comm.rank)
    result: Any = None
    error: Exception | None = None
    if comm.rank < most:
        try:
            result = action(few)
        except Exception as raised:
            if not is_agreed(few, raised):
                raise
            error = raised
    few.Free()
    result, error = comm.bcast((result, error))
    if error is not None:
        raise agreed(error)
    return result


def dealt(comm: Any, make: Callable[[int], T]) -> T:
    """Rank 0 makes something for each rank, one after another; each gets its own."""
    if comm.rank:
        mine: T = comm.recv(source=0)
        return mine
    for rank in range(1, comm.size):
        comm.send(make(rank), dest=rank)
    return make(0)


def agreed(error: Exception) -> Exception:
    """Mark an error as known to all ranks: they may end together, no rank has to pull the others down."""
    error.agreed = True  # type: ignore[attr-defined]
    return error


def is_agreed(comm: Any, error: BaseException) -> bool:
    """True if all ranks know of this error."""
    return comm.size == 1 or getattr(error, "agreed", False)


def share(comm: Any, count: int) -> range:
    """This rank's contiguous part of `count` things; sizes differ by at most one."""
    return shares(comm, count)[comm.rank]


def shares(comm: Any, count: int) -> list[range]:
    """The parts of all ranks."""
    each, extra = divmod(count, comm.size)
    firsts = [rank * each + min(rank, extra) for rank in range(comm.size + 1)]
    return [range(first, last) for first, last in pairwise(firsts)]


def exchanged(comm: Any, parts: list[T]) -> list[T]:
    """Every rank gives a part to each rank, and gets one from each, in the order of the ranks."""
    return parts if comm.size == 1 else list(comm.alltoall(parts))


def gathered(comm: Any, part: NDArray[Any], axis: int = 0) -> NDArray[Any]:
    """The parts of all ranks one after another along an axis, on all ranks."""
    return part if comm.size == 1 else np.concatenate(comm.allgather(np.ascontiguousarray(part)), axis=axis)


def spread(comm: Any, values: NDArray[Any], root: int) -> None:
    """Write the values of one rank over those of all others, whose arrays have the same shape."""
    if comm.size > 1:
        comm.Bcast(values, root=root)
