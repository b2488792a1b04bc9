"""Looking at a campaign: its folder, its jobs, and the two together."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.queue import Account, Entry, alive_tasks
from hpcfit.cluster.standing import Files, Jobs, standing
from hpcfit.files import campaigns
from hpcfit.files.locks import holder
from hpcfit.files.submissions import read_submissions
from hpcfit.records import Campaign, Part
from hpcfit.records.submissions import CANCELLED, LOCAL, RELEASED, Standing, Submission

_LOG = re.compile(r"(\d+)\.(.+)\.out")


def look(folder: Path) -> Standing:
    """How far a campaign is; an unreachable SLURM is a remark, not an error."""
    plan = campaigns.read_plan(folder)
    jobs = jobs_of(folder)
    files = files_of(folder, plan)
    result = campaigns.result_file(folder)
    return standing(plan, str(folder), files, jobs, failures(folder, files), str(result))


def jobs_of(folder: Path) -> Jobs:
    """What works on a campaign, here or in SLURM."""
    submissions = [each for each in read_submissions(folder) if each.state == RELEASED]
    held = holder(folder)
    local = frozenset(_local_tasks(folder)) if held else frozenset()
    here = held is not None and held.get("what") == LOCAL
    if not submissions:
        return Jobs({}, {}, local, here)
    try:
        alive = alive_tasks(slurm.queue(), offsets_of(submissions))
    except slurm.Unreachable as error:
        return Jobs({}, {}, local, here, (f"SLURM does not answer: {error}",))
    return Jobs(alive, _accounts(submissions), local, here)


def offsets_of(submissions: Sequence[Submission]) -> dict[str, int]:
    """What is added to the indices of each array."""
    return {array.job: array.offset for each in submissions for array in each.arrays}


def alive_jobs(submissions: Sequence[Submission], entries: Sequence[Entry]) -> list[str]:
    """The recorded jobs that run or wait."""
    known = {job for each in submissions if each.state != CANCELLED for job in each.jobs}
    return sorted({entry.job for entry in entries if entry.alive and entry.job in known}, key=int)


def files_of(folder: Path, plan: Campaign) -> Files:
    unfinished = campaigns.unfinished_tasks(folder, plan)
    return Files(
        finished=frozenset(task for task in range(len(plan.tasks)) if task not in unfinished),
        unfinished=unfinished,
        notes={task: note for task, _, note in campaigns.notes(folder)},
        written=_last_parts(folder),
        logs=_logs(folder),
        merged=campaigns.result_file(folder).exists(),
    )


def _accounts(submissions: Sequence[Submission]) -> dict[int, Account]:
    offsets = offsets_of(submissions)
    found = slurm.accounts(list(offsets))
    return {index + offsets[job]: account for (job, index), account in found.items() if index >= 0}


def _last_parts(folder: Path) -> dict[int, tuple[Part, float]]:
    """By task, the part that lies furthest on, and when it was written."""
    last: dict[int, Part] = {}
    for part in campaigns.parts(folder):
        if part.task not in last or part.last > last[part.task].last:
            last[part.task] = part
    found = {}
    for task, part in last.items():
        try:
            found[task] = part, campaigns.part_file(folder, part).stat().st_mtime
        except FileNotFoundError:
            continue  # its task has just joined its parts
    return found


def _logs(folder: Path) -> dict[int, str]:
    """By task, the log that was written last."""
    found: dict[int, tuple[float, str]] = {}
    try:
        entries = list(os.scandir(folder / "logs"))
    except FileNotFoundError:
        return {}
    for entry in entries:
        if match := _LOG.fullmatch(entry.name):
            task, when = int(match[1]), entry.stat().st_mtime
            found[task] = max(found.get(task, (0.0, "")), (when, f"logs/{entry.name}"))
    return {task: name for task, (_, name) in found.items()}
