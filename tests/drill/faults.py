"""What goes wrong with campaigns on real clusters, made to go wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.journeys.campaign_material import hpcfit, start
from tests.minicluster import command


@dataclass
class Scene:
    """A campaign at work on a private cluster, and the dice."""

    folder: Path
    cluster: Path
    dice: random.Random
    on_small_disk: bool
    twins: list[subprocess.Popen[str]] = field(default_factory=list)

    def ranks(self) -> dict[int, list[int]]:
        """The processes that work on each task."""
        found: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                here = entry.name.isdigit() and os.readlink(entry / "cwd") == str(self.folder)
            except OSError:
                continue
            if here and "task" in words and "hpcfit" in words and "srun" not in words[0]:
                found.setdefault(int(words[words.index("task") + 2]), []).append(int(entry.name))
        return found

    def busy_task(self) -> int | None:
        """A task that runs; None if none does for a while."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            tasks = sorted(self.ranks())
            if tasks:
                return self.dice.choice(tasks)
            time.sleep(0.1)
        return None

    def jobs_running(self) -> list[str]:
        """As scancel calls them."""
        shown = subprocess.run(
            ["squeue", "--noheader", "--states=R", "--format=%F_%K|%o"], capture_output=True, text=True
        )
        return [line.partition("|")[0] for line in shown.stdout.splitlines() if "tasks-" in line]

    def pause(self, longest: float) -> None:
        time.sleep(self.dice.uniform(0.0, longest))


def kill_rank(scene: Scene) -> str:
    """kill -9 of one rank: srun ends the others, the task is missing."""
    task = scene.busy_task()
    if task is None:
        return ""
    scene.pause(1.0)
    pids = scene.ranks().get(task, [])
    return _kill(scene.dice.sample(pids, min(1, len(pids))))


def kill_task(scene: Scene) -> str:
    """kill -9 of all ranks of a task at once."""
    task = scene.busy_task()
    if task is None:
        return ""
    scene.pause(1.0)
    return _kill(scene.ranks().get(task, []))


def kill_slurmd(scene: Scene) -> str:
    """kill -9 of a node's daemon; away for long, its jobs are queued again though their ranks still write."""
    node = scene.dice.choice(["n1", "n2"])
    told = _kill([int((scene.cluster / "run" / f"slurmd-{node}.pid").read_text())])
    scene.pause(20.0)
    command("start", scene.cluster)
    return f"{node}: {told}"


def fill_disk(scene: Scene) -> str:
    """No room for parts, notes and logs for some seconds."""
    if not scene.on_small_disk or scene.busy_task() is None:
        return ""
    ballast = scene.folder.parent / "ballast"
    written = 0
    try:
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        written += file.write(b"\0" * size)
                except OSError:
                    continue
    except OSError:
        pass  # no room when it is closed
    time.sleep(scene.dice.uniform(2.0, 6.0))
    ballast.unlink(missing_ok=True)
    return f"{written >> 20} MB"


def damage_part(scene: Scene) -> str:
    """A file that somebody's disk has spoilt: cut, changed or emptied."""
    files: list[Path] = []
    end = time.monotonic() + 20
    while not files and time.monotonic() < end:
        files = sorted((scene.folder / "parts").glob("[0-9]*.h5"))
        time.sleep(0.02)
    if not files:
        return ""
    file, how = scene.dice.choice(files), scene.dice.choice(["cut", "changed", "emptied"])
    try:
        with file.open("r+b") as spoilt:
            size = os.fstat(spoilt.fileno()).st_size
            if how == "changed":
                spoilt.seek(scene.dice.randrange(size // 2, size))
                spoilt.write(bytes(scene.dice.randrange(256) for _ in range(64)))
            else:
                spoilt.truncate(size // 2 if how == "cut" else 0)
    except (OSError, ValueError):
        return ""  # joined in the meantime
    return f"{file.name} {how}"


def controller_away(scene: Scene) -> str:
    """Resume must refuse: who cannot see what is alive would submit it twice."""
    pid = int((scene.cluster / "run" / "slurmctld.pid").read_text())
    how = scene.dice.choice([signal.SIGKILL, signal.SIGTERM])
    os.kill(pid, how)
    time.sleep(0.5)
    try:
        refused = hpcfit("resume", ".", cwd=scene.folder)
        assert refused.returncode == 2, refused.stderr
        assert "try again when SLURM answers" in refused.stderr
        looked = hpcfit("status", ".", cwd=scene.folder)
        assert looked.returncode == 0, looked.stderr
        assert "SLURM does not answer" in looked.stdout
    finally:
        command("start", scene.cluster)
    return f"{how.name}, resume refused"


def two_resumes(scene: Scene) -> str:
    """One of them submits what is missing, if anything is; no task is alive twice."""
    runs = [start("resume", ".", cwd=scene.folder) for _ in range(2)]
    said = [run.communicate(timeout=120)[1] for run in runs]
    statuses = [run.returncode for run in runs]
    assert set(statuses) <= {0, 2}, said
    assert statuses != [2, 2], said
    for status, each in zip(statuses, said, strict=True):
        assert status == 0 or "another hpcfit is at work here" in each, each
    alive = _alive_tasks(scene)
    assert len(alive) == len(set(alive)), f"alive twice: {sorted(alive)}"
    return "one refused" if 2 in statuses else "one after the other"


def send_signal(scene: Scene) -> str:
    """What preemption and the end of the time send: the ranks leave after a chunk and are queued again."""
    if scene.busy_task() is None or not (jobs := scene.jobs_running()):
        return ""
    name, job = scene.dice.choice(["TERM", "USR1"]), scene.dice.choice(jobs)
    scene.pause(1.0)
    subprocess.run(["scancel", f"--signal={name}", job], capture_output=True)
    return f"{name} to {job}"


def add_twin(scene: Scene) -> str:
    """The same task a second time, while the first still writes."""
    task = scene.busy_task()
    if task is None:
        return ""
    own = {"SLURM_JOB_ID": str(900000 + len(scene.twins)), "HPCFIT_CACHE": str(scene.folder / "kernels")}
    scene.twins.append(start("task", ".", task, cwd=scene.folder, **own))
    return f"of task {task}"


FAULTS: dict[str, Callable[[Scene], str]] = {
    "a rank killed": kill_rank,
    "a task killed": kill_task,
    "slurmd killed": kill_slurmd,
    "the disk full": fill_disk,
    "a part unreadable": damage_part,
    "the controller away": controller_away,
    "two resumes at once": two_resumes,
    "TERM or USR1": send_signal,
    "a twin of a task": add_twin,
}


def _kill(pids: list[int]) -> str:
    done = []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        done.append(str(pid))
    return " ".join(done)


def _alive_tasks(scene: Scene) -> list[int]:
    """Tasks by the jobs that wait or run, with as many entries as they have jobs."""
    record = json.loads((scene.folder / "submissions.json").read_text())
    offsets = {array["job"]: array["offset"] for each in record["submissions"] for array in each["arrays"]}
    shown = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%F|%K"], capture_output=True, text=True, check=True
    )
    entries = [line.split("|") for line in shown.stdout.splitlines()]
    return [int(index) + offsets[job] for job, index in entries if job in offsets]


assert sys.platform == "linux", "faults are found in /proc"
