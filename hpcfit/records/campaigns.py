"""A campaign: an ensemble in tasks, and which of its members are where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Interval = tuple[int, int]  # places of members: from 0 on, the end is not included


@dataclass(frozen=True)
class Campaign:
    """What plan.json says: which members there are, and which task computes which of them.

    Place k holds member k + 1, or the one that was chosen for it. A campaign is extended by more tasks; those
    that are there stay as they are.
    """

    name: str
    identity: str  # of what is asked for: job, overrides, inputs, model file; not how many members
    version: str  # of hpcfit
    kernel: str  # hash of all machine code; '' if there is none
    members: int  # in all: realisations times cells
    grid: Mapping[str, Sequence[Any]]  # values by key, the last key varies fastest
    chunk: int  # members that are kept together
    tasks: tuple[Interval, ...]  # places of their members
    ranks: int  # of each task
    seed: int
    created: str
    overrides: tuple[str, ...] = ()  # of the job, as with --set; without the number of members
    inputs: Mapping[str, str] = field(default_factory=dict)  # files in inputs/, by their names in the job
    job_file: str = ""  # where job.toml was copied from
    chosen: tuple[int, ...] = ()  # the members at all places, where these are not all of the job's

    def numbers(self, first: int, last: int) -> Sequence[int]:
        """The members at these places."""
        return self.chosen[first:last] if self.chosen else range(first + 1, last + 1)


@dataclass(frozen=True)
class Part:
    """A file with some members of a task, as its name tells: parts/<task>-<first>-<last>.<writer>.h5."""

    task: int
    first: int
    last: int
    writer: str  # <jobid>-<restart>

    @property
    def name(self) -> str:
        return f"{self.task}-{self.first}-{self.last}.{self.writer}.h5"

    @property
    def interval(self) -> Interval:
        return self.first, self.last


def slices(first: int, last: int, size: int) -> list[Interval]:
    """Intervals of at most `size` places that follow each other."""
    return [(begin, min(begin + size, last)) for begin in range(first, last, size)]


def united(intervals: Iterable[Interval]) -> list[Interval]:
    """The same places in as few intervals as possible, in their order."""
    found: list[Interval] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        elif first < last:
            found.append((first, last))
    return found


def gaps(intervals: Iterable[Interval], first: int, last: int) -> list[Interval]:
    """The places from `first` to `last` that no interval holds."""
    found, at = [], first
    for begin, end in united(intervals):
        if at < begin and at < last:
            found.append((at, min(begin, last)))
        at = max(at, end)
    return [*found, (at, last)] if at < last else found


def count(intervals: Iterable[Interval]) -> int:
    """How many places they hold together."""
    return sum(last - first for first, last in united(intervals))
