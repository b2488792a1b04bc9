"""Where data come from: memory, a file, or rank 0; a rank takes the rows that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from hpcfit.mpi.together import dealt, everywhere
from hpcfit.records import Series


class Source(Protocol):
    """The data of one experiment; a `Series` is one that is in memory."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def count(self) -> int:
        """How many times there are."""

    @property
    def has_sigma(self) -> bool: ...

    def rows(self, first: int, last: int) -> Series:
        """From one time to another, which is not included."""


class Wanted(NamedTuple):
    """Some rows of an experiment."""

    experiment: int
    first: int
    last: int  # not included


@dataclass(frozen=True)
class Heading:
    """What ranks know of a series that rank 0 has."""

    names: tuple[str, ...]
    count: int
    has_sigma: bool

    def rows(self, first: int, last: int) -> Series:
        raise LookupError("rank 0 has the values")


def headings(comm: Any, series: Sequence[Series]) -> Sequence[Source]:
    """Series that rank 0 has, and others have not: what each rank is to know of them."""
    told = comm.bcast([Heading(each.names, each.count, each.has_sigma) for each in series])
    return series or told


def taken(comm: Any, sources: Sequence[Source], wanted: Sequence[Wanted]) -> list[Series]:
    """The rows that each rank wants; those of a series that only rank 0 has are sent by it."""
    if not any(comm.allgather(any(isinstance(each, Heading) for each in sources))):
        return everywhere(comm, lambda: [sources[e].rows(first, last) for e, first, last in wanted])
    asked = comm.allgather(list(wanted))
    return dealt(comm, lambda rank: [sources[e].rows(first, last) for e, first, last in asked[rank]])
