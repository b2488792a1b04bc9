"""What was handed to a batch system, and how far a campaign is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BEGUN, RELEASED, CANCELLED, LOCAL = "begun", "released", "cancelled", "local"


@dataclass(frozen=True)
class SubmittedArray:
    """An array of jobs: task = offset + index."""

    job: str
    offset: int
    tasks: int  # how many


@dataclass(frozen=True)
class Submission:
    """Arrays and the merge that follows them; the token is the comment of each of these jobs.

    One that stays `begun` was interrupted: its jobs wait, held, and may be missing here.
    """

    token: str
    created: str
    state: str = BEGUN
    cluster: str = ""  # the profile's name; what it says is read again, never taken from the folder
    options: Mapping[str, Any] = field(default_factory=dict)  # of the command line
    seconds: int = 0  # limit of a task
    arrays: tuple[SubmittedArray, ...] = ()
    merge: str = ""  # the job

    @property
    def jobs(self) -> tuple[str, ...]:
        return (*(array.job for array in self.arrays), *([self.merge] if self.merge else []))


@dataclass(frozen=True)
class TaskStanding:
    """Where one task is."""

    task: int
    members: int
    done: int
    state: str  # done, running, waiting, held, unknown, left early, failed, missing
    place: str = ""  # the job or process, and its nodes
    why: str = ""
    log: str = ""  # relative to the folder


@dataclass(frozen=True)
class Standing:
    """How far a campaign is."""

    name: str
    folder: str
    members: int
    done: int
    failed: Mapping[str, int]  # members that ended without success, by reason
    running: int  # members of tasks that run, as far as they are not done
    waiting: int
    unknown: int  # of tasks that may be alive in a SLURM that does not answer
    missing: int  # that nobody works on or will
    rate: float  # members a second, now; 0 where it is not known
    seconds_left: float  # NaN where it is not known
    tasks: tuple[TaskStanding, ...]
    merged: bool
    result: str
    remarks: tuple[str, ...] = ()  # what could not be seen
