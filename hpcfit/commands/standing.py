"""Looking at a campaign: its folder, its jobs, and the two together."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.queue import Account, Entry, alive_tasks
from hpcfit.cluster.standing import Files, Jobs, standing
from hpcfit.files import campaigns
from hpcfit.files.locks import holder, is_alive
from hpcfit.files.outcomes import failed_members
from hpcfit.files.submissions import read_submissions
from hpcfit.records import Campaign
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
        return Jobs({}, {}, local, here, True, (f"SLURM does not answer: {error}",))
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
        notes=_last_notes(folder),
        paces=_paces(folder),
        logs=_logs(folder),
        merged=not unfinished and campaigns.is_merged(folder),
    )


def _accounts(submissions: Sequence[Submission]) -> dict[int, Account]:
    offsets = offsets_of(submissions)
    found = slurm.accounts(list(offsets))
    return {index + offsets[job]: account for (job, index), account in found.items() if index >= 0}


def _last_notes(folder: Path) -> dict[int, dict[str, Any]]:
    """By task, what was noted by the attempt that began last."""
    found: dict[int, tuple[float, dict[str, Any]]] = {}
    for task, _, note in campaigns.notes(folder):
        began = note.get("began")
        when = float(began) if isinstance(began, int | float) else 0.0
        if task not in found or when >= found[task][0]:
            found[task] = when, note
    return {task: note for task, (_, note) in found.items()}


def _paces(folder: Path) -> dict[int, float]:
    """Members a second, by task, between the first and the last part of its last writer."""
    parts: dict[tuple[int, str], list[tuple[float, int]]] = {}
    for part in campaigns.parts(folder):
        try:
            when = campaigns.part_file(folder, part).stat().st_mtime
        except FileNotFoundError:
            continue  # its task has just joined its parts
        parts.setdefault((part.task, part.writer), []).append((when, part.last - part.first))
    found: dict[int, tuple[float, float]] = {}
    for (task, _), written in parts.items():
        written.sort()
        seconds = written[-1][0] - written[0][0]
        if seconds > 0:
            pace = sum(members for _, members in written[1:]) / seconds
            found[task] = max(found.get(task, (0.0, 0.0)), (written[-1][0], pace))
    return {task: pace for task, (_, pace) in found.items()}


def failures(folder: Path, files: Files) -> dict[str, int]:
    """Members that ended without success, by reason."""
    if files.merged:
        return failed_members([campaigns.result_file(folder)])
    tasks = [campaigns.task_file(folder, task) for task in sorted(files.finished)]
    parts = [campaigns.part_file(folder, part) for part in campaigns.parts(folder)]
    return failed_members([*tasks, *parts])


def _local_tasks(folder: Path) -> list[int]:
    """Tasks on which a process of this machine works, by their notes."""
    own = platform.node()
    return [
        task
        for task, _, note in campaigns.notes(folder)
        if note.get("status") is None and note.get("host") == own and is_alive(note.get("pid"))
    ]


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
