"""Handing tasks to SLURM: all of them, or none."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.queue import Entry
from hpcfit.cluster.scripts import Array, Work, array_script, arrays_of, merge_script
from hpcfit.records.submissions import BEGUN, CANCELLED, RELEASED, Submission, SubmittedArray

FOLDER = "scripts"
Record = Callable[[Submission], None]


@dataclass(frozen=True)
class Script:
    """A script before it is submitted: where it will stand, and its text, which may wait for jobs."""

    file: str  # relative to the campaign's folder
    array: Array | None  # None: the merge
    text: Callable[[Sequence[str]], str]  # given the jobs that it waits for


def new_submission(state: str = BEGUN, **values: Any) -> Submission:
    token = f"hpcfit-{secrets.token_hex(8)}"
    return Submission(token, datetime.now(UTC).isoformat(timespec="seconds"), state, **values)


def scripts(profile: Profile, work: Work, tasks: Iterable[int], max_array_size: int) -> list[Script]:
    """The scripts of arrays that hold these tasks, and of the merge behind them."""

    def of_array(array: Array) -> Script:
        return Script(
            f"{FOLDER}/tasks-{array.tasks[0]}.sh",
            array,
            lambda after: array_script(profile, work, array, after),
        )

    merge = Script(f"{FOLDER}/merge.sh", None, lambda after: merge_script(profile, work, after))
    return [*map(of_array, arrays_of(tasks, max_array_size)), merge]


def submit(
    folder: Path,
    submission: Submission,
    wanted: Sequence[Script],
    record: Record,
    *,
    one_by_one: bool,
    after: Sequence[str] = (),
) -> Submission:
    """Submit held, record, release; what goes wrong on the way cancels all. The merge waits for `after` too.

    one_by_one: each array waits for the one before it, so that its throttle holds for all of them.
    """
    record(submission)
    try:
        for script in wanted:
            submission = _submit_one(folder, submission, script, one_by_one, after)
            record(submission)
        slurm.release(submission.jobs)
    except BaseException:
        slurm.cancel(submission.jobs)
        record(replace(submission, state=CANCELLED))
        raise
    submission = replace(submission, state=RELEASED)
    record(submission)
    return submission


def _submit_one(
    folder: Path, submission: Submission, script: Script, one_by_one: bool, after: Sequence[str]
) -> Submission:
    before = [array.job for array in submission.arrays]
    waits_for = [*after, *before] if script.array is None else before[-1:] if one_by_one else []
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / script.file).write_text(script.text(waits_for), encoding="utf-8")
    job = slurm.submit_held(folder, script.file)
    if script.array is None:
        return replace(submission, merge=job)
    array = SubmittedArray(job, script.array.offset, len(script.array.indices))
    return replace(submission, arrays=(*submission.arrays, array))


def cancel_interrupted(submissions: Iterable[Submission], entries: Iterable[Entry], record: Record) -> None:
    """End the held jobs of submissions that were interrupted, also those that were not recorded any more."""
    for submission in submissions:
        if submission.state == BEGUN:
            own = {entry.job for entry in entries if entry.alive and entry.comment == submission.token}
            slurm.cancel(sorted(own | set(submission.jobs)))
            record(replace(submission, state=CANCELLED))
