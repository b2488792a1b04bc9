"""What squeue and sacct say, as records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

QUEUE_FORMAT = "%F|%K|%A|%t|%r|%N|%k"  # array, indices, job, state, reason, nodes, comment
ACCOUNT_FORMAT = "JobID,State,ExitCode,Elapsed,NodeList"
ENDED = frozenset(("BF", "CA", "CD", "DL", "F", "NF", "OOM", "PR", "RV", "TO"))
RUNNING = frozenset(("R", "CG", "S", "ST", "SI", "SO"))  # holds its nodes
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


@dataclass(frozen=True)
class Entry:
    """A line of squeue: a job, or the part of an array that is in one state."""

    job: str  # the array's, if it is one
    own: str  # its own number
    indices: tuple[int, ...]  # none: no array
    state: str  # SLURM's short code
    reason: str
    nodes: str
    comment: str

    @property
    def alive(self) -> bool:
        """True if it runs or may still run."""
        return self.state not in ENDED

    @property
    def running(self) -> bool:
        return self.state in RUNNING


def parse_queue(text: str) -> list[Entry]:
    """Lines in QUEUE_FORMAT; a comment may hold bars, what is no such line is left out."""
    found = []
    for line in text.splitlines():
        fields = line.split("|", 6)
        if len(fields) == 7 and fields[0].strip().isdigit():
            job, indices, own, state, reason, nodes, comment = (field.strip() for field in fields)
            found.append(Entry(job, own, expanded(indices), state, reason, nodes, comment))
    return found


def expanded(indices: str) -> tuple[int, ...]:
    """0-5,7,8-20:4%2 as numbers; N/A of a plain job as none."""
    found: list[int] = []
    for piece in indices.strip("[]").partition("%")[0].split(","):
        if match := _RANGE.fullmatch(piece.strip()):
            first, last = int(match[1]), int(match[2] or match[1])
            found += range(first, last + 1, int(match[3] or 1))
    return tuple(found)


@dataclass(frozen=True)
class Account:
    """How a job or a task of an array ended, as SLURM's accounting tells."""

    state: str  # COMPLETED, FAILED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, CANCELLED, ...
    exit_code: str
    elapsed: str
    nodes: str


def parse_accounts(text: str) -> dict[tuple[str, int], Account]:
    """By (array, index), from `sacct -X -n -P`; the last line of a task that was queued again counts."""
    found = {}
    for line in text.splitlines():
        job, *rest = line.split("|")
        array, underscore, index = job.partition("_")
        if len(rest) != 4 or not array.isdigit():
            continue
        state, exit_code, elapsed, nodes = rest
        account = Account(state.split()[0] if state else "", exit_code, elapsed, nodes)
        for k in expanded(index) if underscore else (-1,):
            found[array, k] = account
    return found


def alive_tasks(entries: Iterable[Entry], offsets: Mapping[str, int]) -> dict[int, Entry]:
    """The tasks that run or wait, by the arrays' numbers and the offsets of their indices."""
    found: dict[int, Entry] = {}
    for entry in entries:
        if entry.alive and entry.job in offsets:
            for index in entry.indices:
                task = index + offsets[entry.job]
                if task not in found or entry.running:
                    found[task] = entry
    return found
