"""Ensembles as users run them: rows go to the file as members end, and memory does not grow."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hpcfit.files.results import load
from hpcfit.records import EnsembleResult

DECAY = """
kind = "ensemble"
seed = 1
[model]
states = ["x"]
parameters = ["k"]
equations = {x = "-k*x"}
[truth]
start = {x = 1.0}
parameters = {k = 0.5}
times = {start = 0.0, spacing = 0.5, count = 4}
noise = {sd = 0.01}
[guess]
k = 0.4
[ensemble]
of = "fit"
members = MEMBERS
"""
PEAK = """
import resource, sys
from hpcfit.__main__ import main
status = main(["run", sys.argv[1], "--overwrite"])
print(status, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_megabytes(folder: Path, members: int) -> float:
    """Of a run with so many members."""
    (folder / "decay.toml").write_text(DECAY.replace("MEMBERS", str(members)))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "decay.toml"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    status, kilobytes = done.stdout.split()
    assert status == "0", done.stderr
    return float(kilobytes) / 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_members(tmp_path: Path) -> None:
    """100,000 rows more would be 8 MB if they were kept."""
    few, many = peak_megabytes(tmp_path, 20_000), peak_megabytes(tmp_path, 120_000)
    assert many - few < 4.0
    record = load(tmp_path / "decay.h5").record
    assert isinstance(record, EnsembleResult)
    np.testing.assert_array_equal(record.members, np.arange(1, 120_001))
    assert record.converged
    assert np.unique(record.objective).size == 120_000  # every member once


def test_an_ended_run_leaves_nothing_behind(tmp_path: Path) -> None:
    """SIGTERM is what mpirun and SLURM send."""
    (tmp_path / "decay.toml").write_text(DECAY.replace("MEMBERS", "1000000"))
    run = subprocess.Popen(
        [sys.executable, "-m", "hpcfit", "run", "decay.toml"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob(".decay.h5.*.part")):
        assert run.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    run.terminate()
    _, said = run.communicate(timeout=30)
    assert run.returncode == 130
    assert "interrupted; nothing was written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["decay.toml"]
