"""Rows of the data that a rank needs, wherever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hpcfit.mpi.together import dealt, everywhere
from hpcfit.records import Heading, Series, Source


class Wanted(NamedTuple):
    """Some rows of an experiment."""

    experiment: int
    first: int
    last: int  # not included


def taken(comm: Any, sources: Sequence[Source], wanted: Sequence[Wanted]) -> list[Series]:
    """The rows that each rank wants; those of a series that only rank 0 has are sent by it."""
    if not any(comm.allgather(any(isinstance(each, Heading) for each in sources))):
        return everywhere(comm, lambda: [sources[e].rows(first, last) for e, first, last in wanted])
    asked = comm.allgather(list(wanted))
    return dealt(comm, lambda rank: [sources[e].rows(first, last) for e, first, last in asked[rank]])
