"""A private SLURM for tests, from slurm/minicluster; stopped by the pids of its daemons."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "slurm" / "minicluster"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")


def command(verb: str, folder: Path, *arguments: object, **variables: str) -> str:
    done = subprocess.run(
        [SCRIPT, verb, folder, *map(str, arguments)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def minicluster(nodes: int = 2, cpus: int = 2, **variables: str) -> Iterator[Path]:
    """The folder of a cluster that runs; SLURM_CONF points to it."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if missing:
        pytest.skip(f"no {missing[0]} here")
    folder = Path(tempfile.mkdtemp(prefix="mini", dir="/tmp"))  # a short name, for sockets
    before = os.environ.get("SLURM_CONF")
    try:
        command("start", folder, nodes, cpus, **variables)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        yield folder
    finally:
        if before is None:
            os.environ.pop("SLURM_CONF", None)
        else:
            os.environ["SLURM_CONF"] = before
        command("stop", folder)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(condition: Callable[[], bool], seconds: float, what: str = "") -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}\n{queue()}"
        time.sleep(0.1)


def queue() -> str:
    """What squeue shows, for messages."""
    return subprocess.run(["squeue", "--states=all"], capture_output=True, text=True).stdout


def empty_queue() -> bool:
    done = subprocess.run(["squeue", "--noheader"], capture_output=True, text=True)
    return done.returncode == 0 and not done.stdout.strip()
