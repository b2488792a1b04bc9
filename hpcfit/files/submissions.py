"""What was handed to a batch system, and when: submissions.json in the folder of a campaign."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hpcfit.files.replacing import replacing
from hpcfit.records import InputError, Mistake

FORMAT = 1
BEGUN, RELEASED, CANCELLED = "begun", "released", "cancelled"


@dataclass(frozen=True)
class Submitted:
    """An array of jobs: task = offset + index."""

    job: str
    offset: int
    tasks: int  # how many


@dataclass(frozen=True)
class Submission:
    """Arrays and the merge that follows them. The token is in every job's comment.

    A submission that stays `begun` was interrupted: its jobs wait, held, and may be missing here.
    """

    token: str
    created: str
    state: str = BEGUN
    cluster: str = ""  # the profile's name; what it says is read again, never taken from the folder
    options: Mapping[str, Any] = field(default_factory=dict)  # of the command line
    arrays: tuple[Submitted, ...] = ()
    merge: str = ""  # the job

    @property
    def jobs(self) -> tuple[str, ...]:
        return (*(array.job for array in self.arrays), *([self.merge] if self.merge else []))


def read_submissions(folder: Path) -> list[Submission]:
    """All submissions of a campaign, the oldest first."""
    file = folder / "submissions.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] > FORMAT:
            raise InputError(Mistake(str(file), f"format {found['format']} is newer", "upgrade hpcfit"))
        return [_submission(each) for each in found["submissions"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(
            Mistake(str(file), f"cannot be read: {error.strerror}", "check its permissions")
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        remedy = "its jobs must be ended by hand; then remove it and resume"
        raise InputError(Mistake(str(file), f"is damaged: {error}", remedy)) from None


def write_submissions(folder: Path, submissions: Sequence[Submission]) -> None:
    text = json.dumps({"format": FORMAT, "submissions": [asdict(each) for each in submissions]}, indent=1)
    with replacing(folder / "submissions.json") as part:
        part.write_text(text + "\n", encoding="utf-8")


def record(folder: Path, submission: Submission) -> None:
    """Add a submission, or put it in the place of the one with its token."""
    others = [each for each in read_submissions(folder) if each.token != submission.token]
    write_submissions(folder, [*others, submission])


def cancelled(submission: Submission) -> Submission:
    return replace(submission, state=CANCELLED)


def _submission(values: Mapping[str, Any]) -> Submission:
    known = {**values, "arrays": tuple(Submitted(**each) for each in values["arrays"])}
    found = Submission(**known)
    if not all(job.isdigit() for job in found.jobs):
        raise ValueError(f"{found.jobs} are no numbers of jobs")  # scancel is given what stands here
    return found
