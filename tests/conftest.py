"""What several rooms' tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GOOD_JOB = """
kind = "simulate"
seed = 7
[model]
name = "lorenz"
[truth]
start = {x = 1.0, y = 2.0, z = 20.0}
parameters = {sigma = 10.0, r = 28.0, b = "8/3"}
times = {start = 0.0, spacing = 0.1, count = 11}
noise = {sd = 0.5}
[simulate]
observe = ["x", "y", "z"]
"""

Mpirun = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A good job file in an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "job.toml"
    path.write_text(GOOD_JOB)
    return path


@pytest.fixture
def mpirun() -> Mpirun:
    """mpirun(ranks, *arguments of python): real ranks on this machine."""

    def start(
        ranks: int, *arguments: str, cwd: Path | None = None, seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        quiet = {"OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1"}
        command = [
            "mpirun",
            "--oversubscribe",
            "--bind-to",
            "none",
            "-n",
            str(ranks),
            sys.executable,
            *arguments,
        ]
        return subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | allowed | quiet,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    return start
