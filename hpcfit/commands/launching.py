"""Starting what is missing of a campaign: as jobs of SLURM, or on this machine's cores."""

from __future__ import annotations

import logging
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpcfit.cluster import slurm
from hpcfit.cluster.local import cores, run_tasks, stoppable
from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.queue import Entry, alive_tasks
from hpcfit.cluster.scripts import LEAVE_EARLY, Work
from hpcfit.cluster.submitting import Script, cancel_interrupted, new_submission, scripts, submit
from hpcfit.commands.merging import merged
from hpcfit.commands.opening import opened
from hpcfit.commands.progress import ProgressLine
from hpcfit.commands.standing import alive_jobs, offsets_of
from hpcfit.files.campaigns import done_members, is_merged, unfinished_tasks
from hpcfit.files.submissions import read_submissions, record_submission
from hpcfit.records import Campaign, InputError, Mistake
from hpcfit.records.campaigns import count
from hpcfit.records.submissions import LOCAL, RELEASED

log = logging.getLogger(__name__)
LOOK_SECONDS = 0.5  # between two looks at how far local tasks are


@dataclass(frozen=True)
class Launch:
    """How the missing tasks of a campaign are started."""

    folder: Path
    plan: Campaign
    profile: Profile
    options: Mapping[str, Any]  # of the command line, to be used again
    seconds: int  # limit of a task


def launch_slurm(launch: Launch) -> int:
    """Submit what is missing and not alive, and the merge behind all of it; the folder's lock is held."""
    folder, record = launch.folder, partial(record_submission, launch.folder)
    submissions, entries = read_submissions(folder), slurm.queue()
    cancel_interrupted(submissions, entries, record)
    submissions = [each for each in submissions if each.state == RELEASED]
    alive = alive_tasks(entries, offsets_of(submissions))
    _release_held(alive)
    missing = [task for task in unfinished_tasks(folder, launch.plan) if task not in alive]
    merges = [job for job in alive_jobs(submissions, entries) if job in {each.merge for each in submissions}]
    if not missing and (merges or (not alive and is_merged(folder))):
        said = f"{len(alive)} tasks are at work or waiting" if alive else "complete"
        log.info("%s: %s; nothing to submit", folder, said)
        return 0
    submission = new_submission(
        cluster=launch.profile.name, options=dict(launch.options), seconds=launch.seconds
    )
    arrays = sorted({entry.job for entry in alive.values()}, key=int)
    wanted = _scripts(launch, submission.token, missing)
    one_by_one = launch.profile.max_running > 0
    done = submit(folder, submission, wanted, record, one_by_one=one_by_one, after=arrays)
    slurm.cancel(merges)  # the new merge waits for what they waited for, and for more
    numbers = ", ".join(array.job for array in done.arrays)
    log.info(
        "submitted: %s; merge: job %s; look with: hpcfit status %s",
        f"{len(missing)} tasks, array {numbers}" if numbers else "no tasks",
        done.merge,
        shlex.quote(str(folder)),
    )
    return 0


def _release_held(alive: Mapping[int, Entry]) -> None:
    """Jobs that their user holds, or that a controller that died has forgotten to release."""
    held = sorted({entry.job for entry in alive.values() if entry.reason == "JobHeldUser"}, key=int)
    if held:
        slurm.release(held)
        log.info("released: job %s, which was held", ", ".join(held))


def show_scripts(launch: Launch, tasks: Sequence[int]) -> None:
    """Print what would be submitted; jobs that do not exist yet are called JOB1, JOB2, ..."""
    jobs: list[str] = []
    for script in _scripts(launch, "hpcfit-dry-run", tasks):
        before = jobs[-1:] if script.array and launch.profile.max_running else [] if script.array else jobs
        command = f"cd {shlex.quote(str(launch.folder))} && sbatch --parsable --hold {script.file}"
        print(f"# {script.file}: {command}\n{script.text(before)}")
        jobs.append(f"JOB{len(jobs) + 1}")


def show_missing(launch: Launch, *, local: bool) -> None:
    """What resume would do, without a lock: nothing is changed."""
    missing = unfinished_tasks(launch.folder, launch.plan)
    if not local:
        submissions = [each for each in read_submissions(launch.folder) if each.state == RELEASED]
        alive = alive_tasks(slurm.queue(), offsets_of(submissions))
        show_scripts(launch, [task for task in missing if task not in alive])
    else:
        log.info("%d tasks would be worked on here", len(missing))


def _scripts(launch: Launch, token: str, tasks: Sequence[int]) -> list[Script]:
    work = Work(launch.plan.name, sys.executable, launch.seconds, token)
    return scripts(launch.profile, work, tasks, slurm.max_array_size())


def launch_local(launch: Launch) -> int:
    """Work on what is missing with all cores, then merge; the folder's lock is held."""
    folder, plan, ranks = launch.folder, launch.plan, launch.profile.ranks
    _refuse_if_alive(folder)
    record_submission(folder, new_submission(LOCAL, options=dict(launch.options)))
    slots = launch.profile.max_running or max(cores() // ranks, 1)
    missing = list(unfinished_tasks(folder, plan))
    watch = _Watch(folder, plan)
    with stoppable() as stop:
        try:
            ended = run_tasks(folder, missing, ranks=ranks, slots=slots, stop=stop, watch=watch)
        finally:
            watch.line.close()
    go_on = f"continue with: hpcfit resume {shlex.quote(str(folder))}"
    if stop.asked:
        log.info("left early with %s members done; %s", f"{watch.done():,}", go_on)
        return LEAVE_EARLY
    for task in sorted(unfinished_tasks(folder, plan)):
        said = f"status {ended[task]}" if task in ended else "was not begun"
        log.warning("task %d ended with %s; its log: %s", task, said, folder / "logs" / f"{task}.*.out")
    if unfinished_tasks(folder, plan):
        log.warning(go_on)
        return LEAVE_EARLY
    target, said = merged(opened(folder), partial=False)
    log.info("%s -> %s", said, target)
    return 0


def _refuse_if_alive(folder: Path) -> None:
    """Tasks that SLURM still works on are not begun here, too."""
    submissions = [each for each in read_submissions(folder) if each.state == RELEASED]
    if not submissions:
        return
    if not slurm.is_here():
        problem = "was submitted to a SLURM that cannot be seen from here"
        raise InputError(Mistake(str(folder), problem, "go there, or hpcfit cancel it there first"))
    jobs = alive_jobs(submissions, slurm.queue())
    if jobs:
        problem = f"jobs {', '.join(jobs)} of SLURM work on this campaign"
        raise InputError(Mistake(str(folder), problem, "wait for them, or hpcfit cancel them"))


class _Watch:
    """Tells how far the campaign is, and when it will end."""

    def __init__(self, folder: Path, plan: Campaign) -> None:
        self._folder, self._plan = folder, plan
        self.line = ProgressLine(plan.name)
        self._next = 0.0

    def done(self) -> int:
        return count(done_members(self._folder, self._plan))

    def __call__(self, running: set[int]) -> None:
        if time.monotonic() >= self._next:
            self.line(self.done() / self._plan.members)
            self._next = time.monotonic() + LOOK_SECONDS
