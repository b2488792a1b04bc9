"""How far a campaign is, from the files that are there and the jobs that are alive; pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpcfit.cluster.queue import Account, Entry
from hpcfit.cluster.scripts import LEAVE_EARLY
from hpcfit.records import Campaign, Interval
from hpcfit.records.campaigns import count
from hpcfit.records.submissions import Standing, TaskStanding

HELD = ("JobHeldUser", "JobHeldAdmin", "launch failed requeued held", "job requeued in held state")


@dataclass(frozen=True)
class Files:
    """What a campaign's folder holds, by the names of its files."""

    finished: frozenset[int]  # tasks
    unfinished: Mapping[int, Sequence[Interval]]  # tasks, and what of each no part holds
    notes: Mapping[int, Mapping[str, Any]]  # the last of each task
    paces: Mapping[int, float]  # members a second of unfinished tasks, by the times of their parts
    logs: Mapping[int, str]  # the last of each task
    merged: bool


@dataclass(frozen=True)
class Jobs:
    """What is alive, by task, and how tasks ended where that is known."""

    alive: Mapping[int, Entry]
    ended: Mapping[int, Account]
    local: frozenset[int] = frozenset()  # tasks that a process on this machine works on
    here: bool = False  # a process on this machine works through the tasks
    unseen: bool = False  # SLURM may work on them, and does not answer
    remarks: tuple[str, ...] = ()


def standing(
    plan: Campaign,
    folder: str,
    files: Files,
    jobs: Jobs,
    failed: Mapping[str, int],
    result: str,
) -> Standing:
    """The whole picture."""
    tasks = tuple(_task(plan, files, jobs, task) for task in range(len(plan.tasks)))
    open_members = {
        name: sum(task.members - task.done for task in tasks if task.state in states)
        for name, states in (
            ("running", ("running",)),
            ("waiting", ("waiting", "held")),
            ("unknown", ("unknown",)),
        )
    }
    done = sum(task.done for task in tasks)
    rate = _rate(files, [task.task for task in tasks if task.state == "running"])
    left = plan.members - done
    return Standing(
        name=plan.name,
        folder=folder,
        members=plan.members,
        done=done,
        failed=failed,
        **open_members,
        missing=left - sum(open_members.values()),
        rate=rate,
        seconds_left=left / rate if rate else 0.0 if not left else math.nan,
        tasks=tasks,
        merged=files.merged,
        result=result,
        remarks=jobs.remarks,
    )


def _task(plan: Campaign, files: Files, jobs: Jobs, task: int) -> TaskStanding:
    first, last = plan.tasks[task]
    members, log = last - first, files.logs.get(task, "")
    if task in files.finished:
        return TaskStanding(task, members, members, "done", log=log)
    done = members - count(files.unfinished.get(task, [(first, last)]))
    state, place, why = _course(files.notes.get(task, {}), jobs, task)
    return TaskStanding(task, members, done, state, place, why, log)


def _course(note: Mapping[str, Any], jobs: Jobs, task: int) -> tuple[str, str, str]:
    """State, place and reason of a task that is not done."""
    if entry := jobs.alive.get(task):
        if entry.running:
            return "running", f"job {entry.job} on {entry.nodes}", ""
        held = any(word in entry.reason for word in HELD)
        return "held" if held else "waiting", f"job {entry.job}", entry.reason
    if task in jobs.local:
        return "running", f"process {note.get('pid', '')} here".replace("  ", " "), ""
    if jobs.here:
        return "waiting", "here", ""
    if jobs.unseen and note.get("status") is None:
        return "unknown", "", "SLURM does not answer"
    account = jobs.ended.get(task)
    if account and account.state not in ("COMPLETED", "PENDING", "RUNNING"):
        return "failed", account.nodes, f"{account.state} {account.exit_code} after {account.elapsed}"
    if not note:
        return "missing", "", "not begun"
    place = str(note.get("host", ""))
    if note.get("status") == LEAVE_EARLY:
        return "left early", place, str(note.get("error", "") or "")
    if note.get("status") is None:
        return "failed", place, "ended without a word: killed, out of memory or a lost node"
    return "failed", place, str(note.get("error", "") or f"exit status {note['status']}")


def _rate(files: Files, running: Sequence[int]) -> float:
    """Members a second of all tasks that run; those that have not written twice go as fast as the others."""
    known = [files.paces[task] for task in running if task in files.paces]
    return sum(known) / len(known) * len(running) if known else 0.0
