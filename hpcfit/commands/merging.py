"""The result of a campaign: rows of all tasks in one file, and what they cost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcfit.cluster.machine import describe
from hpcfit.commands.opening import Opened
from hpcfit.commands.tasks import put_away
from hpcfit.files.campaigns import (
    finished_tasks,
    notes,
    part_file,
    partial_file,
    parts,
    remove_leftovers,
    result_file,
    task_file,
)
from hpcfit.files.checksums import added
from hpcfit.files.joining import (
    Head,
    Piece,
    TaskFile,
    is_joined,
    open_task,
    rows_of_parts,
    rows_of_task,
    write_joined,
)
from hpcfit.files.parts import read_part
from hpcfit.records import EnsembleResult, InputError, Interval, Mistake, gaps, united
from hpcfit.records.campaigns import count

MOST_NAMED = 12  # tasks in a message


@dataclass(frozen=True)
class Found:
    """What there is of a campaign."""

    tasks: tuple[TaskFile, ...]  # in the order of their places
    parts: tuple[Path, ...]  # of unfinished tasks
    held: tuple[Interval, ...]  # places
    made: tuple[dict[str, Any], ...]  # how every part was made


def merged(campaign: Opened, *, partial: bool) -> tuple[Path, str]:
    """Make the result, unless it is there; its path, and what was done. A partial one has its own name."""
    found = look(campaign, with_parts=partial)
    missing = gaps(found.held, 0, campaign.plan.members)
    if missing and not partial:
        raise InputError(_missing(campaign, found, missing))
    if not found.held:
        raise InputError(Mistake(str(campaign.folder), "no member is there", "wait for the first tasks"))
    target = result_file(campaign.folder) if not missing else partial_file(campaign.folder)
    members = count(found.held)
    if not missing and is_joined(target, campaign.job_hash, found.held, _sums(found)):
        os.utime(target)  # it is not older than its tasks
        return target, f"all {members:,} members are merged already"
    write_joined(target, _head(campaign, found, partial=bool(missing)), found.held, _pieces(found))
    if not missing:
        remove_leftovers(campaign.folder)
    said = f"{members:,} members of {len(found.tasks):,} tasks"
    return target, said + (f", {count(missing):,} are missing" if missing else "")


def look(campaign: Opened, *, with_parts: bool) -> Found:
    """The files of the tasks; those that cannot be used are set aside, and said."""
    plan, folder = campaign.plan, campaign.folder
    tasks = []
    for task in sorted(finished_tasks(folder) & set(range(len(plan.tasks)))):
        file = task_file(folder, task)
        try:
            found = open_task(file)
            if (found.first, found.last) != plan.tasks[task] or found.identity != plan.identity:
                raise InputError(f"{file}: holds other members, or those of another job")
            tasks.append(found)
        except InputError as error:
            put_away(file, error)
    held = [(task.first, task.last) for task in tasks]
    made = [{**each, "task": k} for k, task in enumerate(tasks) for each in task.provenance["parts"]]
    files = []
    for part in parts(folder) if with_parts else []:
        file = part_file(folder, part)
        if part.interval in held or gaps(held, *part.interval) != [part.interval]:
            continue  # of a twin
        try:
            head, _ = read_part(file)
        except InputError as error:
            put_away(file, error)
            continue
        made.append({**json.loads(head["provenance"]), "task": part.task, "writer": part.writer})
        files.append(file)
        held.append(part.interval)
    return Found(tuple(tasks), tuple(files), tuple(united(held)), tuple(made))


def _missing(campaign: Opened, found: Found, missing: Sequence[Interval]) -> Mistake:
    there = {(task.first, task.last) for task in found.tasks}
    tasks = [str(k) for k, interval in enumerate(campaign.plan.tasks) if interval not in there]
    named = ", ".join(tasks[:MOST_NAMED]) + (", ..." if len(tasks) > MOST_NAMED else "")
    problem = f"{count(missing):,} of {campaign.plan.members:,} members are missing, of task {named}"
    remedy = "continue with hpcfit resume, or give --partial"
    return Mistake(str(campaign.folder), problem, remedy)


def _sums(found: Found) -> dict[str, int]:
    """The checksums of all tasks together."""
    sums: dict[str, int] = {}
    for task in found.tasks:
        sums = added(sums, task.sums)
    return sums


def _pieces(found: Found) -> Iterator[Piece]:
    """All rows; a file that cannot be read to its end is set aside."""
    for task in found.tasks:
        try:
            yield from rows_of_task(task)
        except InputError as error:
            put_away(task.path, error)
            raise InputError(f"{task.path}: cannot be used; continue with hpcfit resume") from None
    for file in found.parts:
        head, _ = read_part(file)
        yield from rows_of_parts([file], [(int(head["first"]), int(head["last"]))])


def _head(campaign: Opened, found: Found, *, partial: bool) -> Head:
    plan, inputs = campaign.plan, campaign.inputs
    if not found.tasks:
        problem = "no task is finished yet"
        raise InputError(Mistake(str(campaign.folder), problem, "wait for the first, or look at the status"))
    seconds = sum(each["seconds"] for each in found.made)
    numbers, rows = np.empty(0, dtype=np.int64), np.empty((0, len(found.tasks[0].head["names"])))
    head = {**found.tasks[0].head, "seconds": seconds, "grid": plan.grid}
    record = EnsembleResult(
        members=numbers,
        outcomes=(),
        estimates=rows,
        errors=rows,
        objective=np.empty(0),
        degrees_of_freedom=numbers,
        iterations=numbers,
        linearisations=numbers,
        **head,
    )
    provenance = {
        **describe(commit=False),
        "job_file": plan.job_file,
        "overrides": list(plan.overrides),
        "seed": plan.seed,
        "sha256": dict(inputs.hashes),
        "campaign": costs(campaign, found),
        "tasks": [_short(task) for task in found.tasks],
    }
    job_hash = f"{campaign.job_hash}-partial" if partial else campaign.job_hash
    return Head(record, inputs.job.document.text, job_hash, provenance, {"kernel": plan.kernel})


def costs(campaign: Opened, found: Found) -> dict[str, Any]:
    """What the members took: core-hours, bytes, attempts, hosts."""
    plan = campaign.plan
    core_seconds = sum(each["seconds"] * each["ranks"] for each in found.made)
    files = [*(task.path for task in found.tasks), *found.parts]
    attempts = [note for _, _, note in notes(campaign.folder)]
    return {
        "name": plan.name,
        "created": plan.created,
        "finished": max(each["ended"] for each in found.made),
        "members": count(found.held),
        "planned": plan.members,
        "tasks": len(plan.tasks),
        "ranks": plan.ranks,
        "attempts": len(attempts),
        "left_early": sum(note.get("status") == 75 for note in attempts),
        "core_hours": core_seconds / 3600.0,
        "bytes": sum(file.stat().st_size for file in files),
        "hosts": sorted({host for each in found.made for host in each["hosts"]}),
        "kernel": plan.kernel,
        "version": plan.version,
    }


def _short(task: TaskFile) -> dict[str, Any]:
    """The provenance of one task, without what it repeats."""
    own = task.provenance
    names = ("hosts", "ranks", "slurm", "started", "cpu", "hpcfit", "numpy", "h5py", "kernel", "seed")
    return {
        "first": task.first,
        "last": task.last,
        **{name: own.get(name) for name in names},
        "seconds": round(sum(each["seconds"] for each in own["parts"]), 3),
        "parts": len(own["parts"]),
        "ended": max(each["ended"] for each in own["parts"]),
    }
