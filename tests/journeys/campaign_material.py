"""Campaigns as users run them: the command line in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).parents[2]
S18 = """
kind = "ensemble"
seed = 18
[ensemble]
of = "fit"
members = 2000
[model]
name = "henon_heiles"
[truth]
start = {x1 = 0.0, x2 = 0.0, x3 = "sqrt(0.1275)", x4 = -0.35}
parameters = {a = 1.0, b = 1.0, c = -1.0}
times = {start = 0.0, spacing = 0.2, count = 100}
noise = {sd = 0.03, beyond_3_sigma = "redraw"}
[guess]
a = 10.0
b = 10.0
c = 2.0
"""


def start(*arguments: object, cwd: Path, **variables: str) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "hpcfit", *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def hpcfit(
    *arguments: object, cwd: Path, seconds: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The same, awaited."""
    run = start(*arguments, cwd=cwd, **variables)
    out, said = run.communicate(timeout=seconds)
    return subprocess.CompletedProcess(run.args, run.returncode, out, said)


def numbers(file: Path) -> dict[str, np.ndarray]:
    """All numeric datasets of a result; timings and provenance are attributes."""
    found = {}

    def visit(name: str, entry: object) -> None:
        if isinstance(entry, h5py.Dataset) and entry.dtype.kind in "iufb":
            found[name] = entry[()]

    with h5py.File(file, "r") as opened:
        opened.visititems(visit)
    return found


def assert_same_numbers(first: Path, second: Path) -> None:
    """To the last bit."""
    one, other = numbers(first), numbers(second)
    assert set(one) == set(other)
    for name in one:
        assert one[name].dtype == other[name].dtype, name
        assert one[name].tobytes() == other[name].tobytes(), name
