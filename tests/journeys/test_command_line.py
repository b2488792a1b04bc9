"""The command as users type it: real processes, real ranks, interrupts, pipes, --help."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hpcfit.__main__ import VERBS
from hpcfit.files.results import load
from tests.conftest import Mpirun

HPCFIT = [sys.executable, "-m", "hpcfit"]


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HPCFIT, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_give_the_bits_of_the_serial_run(ranks: int, job: Path, mpirun: Mpirun) -> None:
    job.write_text(job.read_text() + "sensitivities = true\n")
    assert call("run", "job.toml", "-o", "serial.h5", cwd=job.parent).returncode == 0
    done = mpirun(ranks, "-m", "hpcfit", "run", "job.toml", "-o", "ranks.h5", cwd=job.parent)
    assert done.returncode == 0, done.stderr
    serial, parallel = (load(job.parent / name) for name in ("serial.h5", "ranks.h5"))
    assert parallel.provenance["ranks"] == ranks
    for name in ("states", "by_start", "by_parameters"):
        np.testing.assert_array_equal(getattr(serial.record, name), getattr(parallel.record, name))
    shown = call("show", "serial.h5", "ranks.h5", cwd=job.parent).stdout
    assert "identical" in shown


def test_show_on_a_login_node_loads_neither_mpi_nor_matplotlib(job: Path) -> None:
    assert call("run", "job.toml", cwd=job.parent).returncode == 0
    code = (
        "import sys; from hpcfit.__main__ import main; main(['show', 'job.h5']);"
        "print([name for name in ('mpi4py', 'matplotlib', 'petsc4py') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=job.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("method", ["taylor", "extrapolation"])
def test_an_interrupt_leaves_nothing_and_says_so(method: str, job: Path) -> None:
    job.write_text(job.read_text().replace("count = 11", "count = 4000000") + f'method = "{method}"\n')
    process = subprocess.Popen(
        [*HPCFIT, "run", "job.toml"], cwd=job.parent, stderr=subprocess.PIPE, text=True
    )
    time.sleep(1.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; nothing was written" in err
    assert "Traceback" not in err
    assert [path.name for path in job.parent.iterdir()] == ["job.toml"]


@pytest.mark.parametrize("method", ["taylor", "extrapolation"])
def test_long_work_tells_how_far_it_is_in_plain_lines(method: str, job: Path) -> None:
    job.write_text(job.read_text().replace("count = 11", "count = 4000000") + f'method = "{method}"\n')
    process = subprocess.Popen(
        [*HPCFIT, "run", "job.toml"], cwd=job.parent, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    process.kill()
    process.communicate()
    assert line.startswith("simulating lorenz: ")
    assert "to go" in line
    assert "\r" not in line


def test_a_closed_pipe_is_no_error(job: Path) -> None:
    assert call("run", "job.toml", cwd=job.parent).returncode == 0
    command = f"{' '.join(HPCFIT)} show job.h5 --csv | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=job.parent, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("t,x,y,z")
    assert done.stderr == ""


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_with_an_example(verb: str, tmp_path: Path) -> None:
    done = call(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"example:\n  hpcfit {verb}" in done.stdout
