"""The tasks of a campaign on this machine's cores: as many at once as there is room for."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hpcfit.cluster.slurm import environment
from hpcfit.records import InputError, Mistake

POLL = 0.05  # seconds
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Stop:
    """Set when somebody asks this process to end: TERM, INT or USR1."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Signals ask to stop instead of ending the process; the tasks then leave at the end of a chunk."""
    stop = Stop()
    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def run_tasks(
    folder: Path,
    tasks: Iterable[int],
    *,
    ranks: int,
    slots: int,
    stop: Stop,
    watch: Callable[[set[int]], None] | None = None,
) -> dict[int, int]:
    """Work on tasks in their order; exit statuses by task. `watch` sees the tasks that run, now and then."""
    waiting, running, ended = list(tasks)[::-1], dict[int, subprocess.Popen[bytes]](), dict[int, int]()
    told = False
    try:
        while running or (waiting and not stop.asked):
            while waiting and len(running) < slots and not stop.asked:
                task = waiting.pop()
                running[task] = _begin(folder, task, ranks)
            if stop.asked and not told:
                told = True
                _tell(running.values(), signal.SIGUSR1)  # mpirun hands this on, and ends its ranks on TERM
            for task in [task for task, process in running.items() if process.poll() is not None]:
                ended[task] = running.pop(task).returncode
            if watch is not None:
                watch(set(running))
            time.sleep(POLL)
    finally:
        _tell(running.values(), signal.SIGTERM)
    return ended


def ask_to_leave(holder: Mapping[str, Any]) -> None:
    """Tell the process that works through a campaign to leave; it must be on this machine."""
    if holder.get("host") != platform.node():
        problem = f"its tasks run on {holder.get('host')}"
        raise InputError(Mistake("cancel", problem, "give the command there"))
    try:
        os.kill(int(holder["pid"]), signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        problem = f"process {holder['pid']} belongs to another user"
        raise InputError(Mistake("cancel", problem, "ask them")) from None


def _begin(folder: Path, task: int, ranks: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hpcfit", "task", str(folder), str(task)]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), *command]
    with open(folder / "logs" / f"{task}.local-{os.getpid()}.out", "ab") as log:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(folder, ranks),
                start_new_session=True,  # Ctrl-C of a terminal is for this process, which tells the others
                preexec_fn=_end_with_parent,
            )
        except FileNotFoundError:
            problem, remedy = "there is no mpirun here", "load the MPI module, or give --ranks 1"
            raise InputError(Mistake("--local", problem, remedy)) from None


def _end_with_parent() -> None:
    """Have the kernel tell the child when this process dies: nobody waits for it any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGUSR1)


def _environment(folder: Path, ranks: int) -> dict[str, str]:
    """What a script of SLURM would set, and what Open MPI wants on one machine."""
    own = {
        "HPCFIT_CACHE": str((folder / "kernels").resolve()),
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    if ranks > 1:
        own["H5PY_ALWAYS_USE_MPI"] = "1"
    if os.geteuid() == 0:
        own |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment() | own


def _tell(processes: Iterable[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)
