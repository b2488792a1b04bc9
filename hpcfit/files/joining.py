"""Parts become a task's file, tasks' files the result: rows are copied and counted, checksums compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.files.checksums import added, checksums
from hpcfit.files.ensembles import Columns, EnsembleRows, blocks_of_rows, get_head
from hpcfit.files.hdf5 import put_attributes, reading
from hpcfit.files.parts import read_part
from hpcfit.files.results import put_provenance, writing
from hpcfit.records import EnsembleResult, InputError, Interval, Mistake, Outcome, united

AT_ONCE = 1 << 14  # rows
OVERHEAD = 1 << 20  # bytes
_NAMES = {number: outcome.name for number, outcome in enumerate(Outcome)}

Piece = tuple[NDArray[np.int64], Columns]  # places among all members, and their rows


@dataclass
class Tally:
    """What has been copied: rows, their checksums, how they ended."""

    rows: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, places: NDArray[np.int64], rows: Columns) -> None:
        self.rows += len(places)
        self.sums = added(self.sums, checksums(places, rows))
        codes = np.bincount(rows["outcomes"], minlength=1)
        self.outcomes.update({_NAMES[k]: int(codes[k]) for k in np.flatnonzero(codes)})


@dataclass(frozen=True)
class Head:
    """What stands in a joined file beside its rows."""

    record: EnsembleResult  # without rows
    job_text: str
    job_hash: str
    provenance: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Seats:
    """Where the places of some intervals lie in a file that holds nothing else."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        spans = united(intervals)
        self._firsts = np.array([first for first, _ in spans], dtype=np.int64)
        self._ends = np.cumsum([last - first for first, last in spans])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows (m,) of places (m,)."""
        which = np.searchsorted(self._firsts, places, side="right") - 1
        return places - self._firsts[which] + self._begins[which]

    def places(self, first: int, count: int) -> NDArray[np.int64]:
        """The places of some rows that follow each other (count,)."""
        rows = np.arange(first, first + count)
        which = np.searchsorted(self._ends, rows, side="right")
        return rows - self._begins[which] + self._firsts[which]

    @property
    def _begins(self) -> NDArray[np.int64]:
        return np.concatenate([[0], self._ends[:-1]])


def write_joined(target: Path, head: Head, held: Sequence[Interval], pieces: Iterable[Piece]) -> Tally:
    """Write the rows of all places in `held`, each in one piece; they count when they are read back."""
    seats, tally, width = Seats(held), Tally(), len(head.record.names)
    size = len(seats) * 8 * (2 * width + 8) + OVERHEAD

    def check(file: Any) -> None:
        if _tally_of(file, seats).sums != tally.sums:
            raise InputError(Mistake(str(target), "what was written reads back differently", "try again"))

    with writing(target, "ensemble", head.job_text, head.job_hash, check, size) as file:
        out = EnsembleRows(file, head.record, len(seats))
        for own, rows in pieces:
            out.put_columns(seats.of(own), rows)
            tally.add(own, rows)
        if tally.rows != len(seats) or not out.complete:
            raise InputError(Mistake(str(target), f"{tally.rows} rows for {len(seats)} members", "resume"))
        told = {"checksums": json.dumps(tally.sums), "ended": json.dumps(tally.outcomes)}
        put_attributes(file, {**told, **head.attributes})
        put_provenance(file, head.provenance)
    return tally


def is_joined(path: Path, job_hash: str, held: Sequence[Interval], sums: Mapping[str, int]) -> bool:
    """Whether a file has the rows of these places already, all of which are read."""
    if not path.exists():
        return False
    try:
        with reading(path) as file:
            seats = Seats(held)
            same = str(file.attrs["job_hash"]) == job_hash and len(file["members"]) == len(seats)
            return bool(same and _tally_of(file, seats).sums == dict(sums))
    except InputError:
        return False


def _tally_of(file: Any, seats: Seats) -> Tally:
    found = Tally()
    for first, rows in _numbered(file):
        found.add(seats.places(first, len(rows["members"])), rows)
    return found


def _numbered(file: Any) -> Iterator[tuple[int, Columns]]:
    first = 0
    for rows in blocks_of_rows(file, AT_ONCE):
        yield first, rows
        first += len(rows["members"])


def rows_of_parts(files: Sequence[Path], wanted: Sequence[Interval]) -> Iterator[Piece]:
    """The rows of the places in `wanted`, each once: several parts may hold the same."""
    taken: list[Interval] = []
    for file in files:
        head, rows = read_part(file)
        places = np.arange(int(head["first"]), int(head["last"]))
        new = within(places, wanted) & ~within(places, taken)
        taken.append((int(head["first"]), int(head["last"])))
        if new.any():
            yield places[new], {name: values[new] for name, values in rows.items()}


def within(places: NDArray[np.int64], intervals: Sequence[Interval]) -> NDArray[np.bool_]:
    """Which places lie in one of the intervals (m,)."""
    found = np.zeros(len(places), dtype=bool)
    for first, last in intervals:
        found |= (places >= first) & (places < last)
    return found


@dataclass(frozen=True)
class TaskFile:
    """What a finished task's file says of itself; its rows are looked at when they are read."""

    path: Path
    first: int
    last: int
    identity: str
    sums: Mapping[str, int]
    outcomes: Mapping[str, int]
    head: Mapping[str, Any]  # as EnsembleResult calls it
    provenance: Mapping[str, Any]


def open_task(path: Path) -> TaskFile:
    """The head of a task's file; anything wrong with it is an InputError."""
    with reading(path) as file:
        return TaskFile(
            path,
            int(file.attrs["first"]),
            int(file.attrs["last"]),
            str(file.attrs["identity"]),
            json.loads(file.attrs["checksums"]),
            json.loads(file.attrs["ended"]),
            get_head(file),
            json.loads(file["provenance"].attrs["json"]),
        )


def rows_of_task(task: TaskFile) -> Iterator[Piece]:
    """All rows of a task's file; at the end an InputError if they are not those that were written."""
    tally = Tally()
    with reading(task.path) as file:
        if len(file["members"]) != task.last - task.first:
            raise InputError(Mistake(str(task.path), "does not have the rows that it should have"))
        for first, rows in _numbered(file):
            places = task.first + np.arange(first, first + len(rows["members"]))
            tally.add(places, rows)
            yield places, rows
    if tally.sums != task.sums:
        raise InputError(Mistake(str(task.path), "its checksums are wrong"))


def verify_task(path: Path) -> TaskFile:
    """A task's file whose rows have all been looked at."""
    task = open_task(path)
    for _ in rows_of_task(task):
        pass
    return task
