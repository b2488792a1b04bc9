"""How a task of a campaign is computed: what is there already, the missing chunks, the joined file."""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hpcfit.cluster.machine import describe, slurm_job
from hpcfit.commands.leaving import Leaving
from hpcfit.commands.opening import Opened
from hpcfit.commands.progress import ProgressLine
from hpcfit.commands.sweeps import Sweep
from hpcfit.files.campaigns import part_file, parts, task_file, write_note
from hpcfit.files.ensembles import columns_of
from hpcfit.files.joining import Head, rows_of_parts, verify_task, write_joined
from hpcfit.files.parts import read_part, set_aside, write_part
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, InputError, Interval, Part, gaps, slices
from hpcfit.records.campaigns import count
from hpcfit.studies.ensemble import shared_rows
from hpcfit.studies.members import no_rows

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """A slice of a campaign's members."""

    campaign: Opened
    number: int

    @property
    def interval(self) -> Interval:
        return self.campaign.plan.tasks[self.number]

    @property
    def file(self) -> Path:
        return task_file(self.campaign.folder, self.number)

    def parts(self) -> list[Part]:
        """Those whose names say that they belong to it, in the order of their places."""
        own = [part for part in parts(self.campaign.folder) if part.task == self.number]
        return sorted(own, key=lambda part: (part.first, part.last, part.writer))

    def path(self, part: Part) -> Path:
        return part_file(self.campaign.folder, part)


def survey(task: Task) -> list[Interval] | None:
    """The places that are there already, read and verified; None: the task is complete.

    What cannot be read is set aside and said; it will be computed again.
    """
    if task.file.exists():
        try:
            found = verify_task(task.file)
            if (found.first, found.last) == task.interval and found.identity == task.campaign.plan.identity:
                remove_parts(task)  # of a twin, or of a join that was interrupted
                return None
            raise InputError(f"{task.file}: holds other members, or those of another job")
        except InputError as error:
            put_away(task.file, error)
    held = []
    for part in task.parts():
        try:
            head, _ = read_part(task.path(part))
            if (int(head["first"]), int(head["last"])) != part.interval:
                raise InputError(f"{task.path(part)}: holds other members than its name says")
            if head["identity"] != task.campaign.plan.identity:
                raise InputError(f"{task.path(part)}: belongs to another job")
            held.append(part.interval)
        except InputError as error:
            if task.path(part).exists():  # else a twin has joined it
                put_away(task.path(part), error)
    return held


def put_away(path: Path, error: InputError) -> None:
    """Set a file aside that cannot be used."""
    log.warning("%s; set aside as %s, its members are computed again", error, set_aside(path).name)


def remove_parts(task: Task) -> None:
    for part in task.parts():
        task.path(part).unlink(missing_ok=True)


class Worker:
    """All ranks of a task at work; what they have is kept chunk by chunk."""

    def __init__(self, comm: Any, task: Task, sweep: Sweep, leaving: Leaving) -> None:
        self.comm, self.task, self.sweep, self.leaving = comm, task, sweep, leaving
        self._members, self._seconds, self._outcomes = 0, 0.0, Counter[str]()
        job = slurm_job()
        usual = f"local{os.getpid()}-0"
        self.writer = on_root(
            comm, lambda: f"{job['job_id']}-{job.get('restart_count', 0)}" if job else usual
        )
        hosts = sorted(set(comm.allgather(platform.node())))
        self._note: dict[str, Any] = {
            **on_root(comm, lambda: describe(commit=False)),
            "hosts": hosts,
            "pid": os.getpid(),
            "ranks": comm.size,
            "slurm": job,
            "kernel": task.campaign.plan.kernel,
            "seed": task.campaign.plan.seed,
            "began": time.time(),
            "started": _now(),
            "status": None,
        }

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A note in the folder says who works, and how it ended, if only by an error."""
        on_root(self.comm, self._write_note)
        try:
            yield
        except Exception as error:
            status = 2 if isinstance(error, InputError) else 1
            self._note |= {"status": status, "error": str(error), "ended": _now()}
            if self.comm.rank == 0:  # others may not know of the error
                self._write_note()
            raise

    def ended(self, status: int, error: str = "") -> int:
        """Note and tell how it ended."""
        self._note |= {"status": status, "error": error, "ended": _now()}
        on_root(self.comm, self._write_note)
        if self.comm.rank == 0:
            rate = f", {self._members / self._seconds:.0f} a second" if self._seconds else ""
            said = error or "complete"
            log.info("task %d: %s; %s members%s", self.task.number, said, f"{self._members:,}", rate)
        return status

    def compute(self, held: list[Interval]) -> str:
        """Compute and keep what is missing; why it left early, or ''."""
        first, last = self.task.interval
        missing = gaps(held, first, last)
        todo = [chunk for gap in missing for chunk in slices(*gap, self.task.campaign.plan.chunk)]
        self._note["members_before"] = last - first - count(missing)
        if self.comm.rank == 0:
            log.info(
                "task %d: %s of %s members are there", self.task.number,
                f"{last - first - count(missing):,}", f"{last - first:,}",
            )  # fmt: skip
        if todo:
            self.sweep.bench.check(self.comm, strict=self.sweep.strict)
        progress = ProgressLine(f"task {self.task.number}") if self.comm.rank == 0 else None
        try:
            for chunk in todo:
                if why := self.leaving.agreed(self.comm):
                    return why
                if on_root(self.comm, self.task.file.exists):
                    return ""  # a twin was faster
                self._compute_chunk(chunk, progress)
        finally:
            if progress is not None:
                progress.close()
        return ""

    def _compute_chunk(self, chunk: Interval, progress: ProgressLine | None) -> None:
        clock, (first, last) = time.perf_counter(), chunk
        numbers = np.array(self.task.campaign.plan.numbers(first, last), dtype=np.int64)
        begin, end = self.task.interval

        def watch(part: float) -> None:
            if progress is not None:
                progress((first - begin + part * (last - first)) / (end - begin))

        places, columns = shared_rows(self.comm, self.sweep.bench, self.sweep.wanted(numbers), watch)
        rows = self._table(numbers[places], columns)
        outcomes = Counter(outcome.name for outcome in rows.outcomes)
        for each in self.comm.allgather(outcomes):
            self._outcomes.update(each)
        seconds = time.perf_counter() - clock
        file = self.task.path(Part(self.task.number, first, last, self.writer))
        write_part(self.comm, file, self._head(rows, seconds), chunk, columns_of(rows))
        seconds = time.perf_counter() - clock
        self.leaving.chunk_took(seconds)
        self._members += last - first
        self._seconds += seconds

    def join(self) -> bool:
        """Make the task's file of its parts; False if one of them was unreadable after all."""
        known = everywhere(self.comm, self.sweep.known)
        return on_root(self.comm, lambda: self._joined(known))

    def _joined(self, known: dict[str, Any]) -> bool:
        plan, (first, last) = self.task.campaign.plan, self.task.interval
        if self.task.file.exists():
            return False  # a twin's, to be verified
        found = self.task.parts()
        files = [self.task.path(part) for part in found]
        made = []
        for part, file in zip(found, files, strict=True):
            try:
                made.append({**json.loads(read_part(file)[0]["provenance"]), "writer": part.writer})
            except InputError as error:
                if file.exists():
                    put_away(file, error)
                return False
        empty = self._table(np.empty(0, dtype=np.int64), no_rows(self.sweep.bench)[1:], **known)
        provenance = {**self._note, "parts": made}
        attributes = {
            "task": self.task.number,
            "first": first,
            "last": last,
            "identity": plan.identity,
            "kernel": plan.kernel,
            "version": plan.version,
        }
        job = self.task.campaign.inputs.job.document.text
        head = Head(empty, job, f"{self.task.campaign.job_hash}-task", provenance, attributes)
        tally = write_joined(self.task.file, head, [(first, last)], rows_of_parts(files, [(first, last)]))
        self._note["task_outcomes"] = dict(tally.outcomes)
        remove_parts(self.task)
        return True

    def _table(self, numbers: Any, columns: Any, **known: Any) -> EnsembleResult:
        known = known or {"truth": {}, "grid": self.sweep.plan.grid}
        return self.sweep.bench.table(numbers, columns, **known)

    def _head(self, rows: EnsembleResult, seconds: float) -> dict[str, Any]:
        """What a part says of itself."""
        plan = self.task.campaign.plan
        made = {
            "hosts": self._note["hosts"],
            "ranks": self.comm.size,
            "slurm": self._note["slurm"],
            "seconds": round(seconds, 3),
            "ended": _now(),
        }
        return {
            "format_version": 1,
            "identity": plan.identity,
            "kernel": plan.kernel,
            "version": plan.version,
            "task": self.task.number,
            "names": list(rows.names),
            "units": json.dumps(dict(rows.units)),
            "provenance": json.dumps(made),
        }

    def _write_note(self) -> None:
        note = {**self._note, "members": self._members, "outcomes": dict(self._outcomes)}
        note |= {"host": ", ".join(note["hosts"][:4]), "seconds": round(self._seconds, 3)}
        try:
            write_note(self.task.campaign.folder, self.task.number, self.writer, note)
        except (InputError, OSError) as error:  # the members matter more
            log.warning("the note of this task was not written: %s", error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
