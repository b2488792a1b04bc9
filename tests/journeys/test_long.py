"""Long fits as users run them: any number of ranks, both solvers, and ranks that fail on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hpcfit.files.results import load
from hpcfit.records import FitResult
from tests.conftest import ROOT, Mpirun

LONG = ROOT / "jobs" / "long"
THOUSAND, HUNDRED_THOUSAND = str(LONG / "lorenz_1e3.toml"), str(LONG / "lorenz_1e5.toml")
SECONDS = 10.0  # within which all ranks end after one has failed


def run(job: str, *arguments: str, cwd: Path) -> None:
    command = [sys.executable, "-m", "hpcfit", "run", job, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def fitted(path: Path) -> FitResult:
    record = load(path).record
    assert isinstance(record, FitResult)
    return record


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> FitResult:
    folder = tmp_path_factory.mktemp("serial")
    run(THOUSAND, "-o", "serial.h5", cwd=folder)
    return fitted(folder / "serial.h5")


@pytest.mark.parametrize("solver", ["dense", "petsc"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_that_share_the_nodes_give_the_serial_answer(
    ranks: int, solver: str, serial: FitResult, tmp_path: Path, mpirun: Mpirun
) -> None:
    arguments = ("run", THOUSAND, "-o", "ranks.h5", "--set", f'fit.solver="{solver}"')
    done = mpirun(ranks, "-m", "hpcfit", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    parallel = fitted(tmp_path / "ranks.h5")
    tolerance = 0.0 if solver == "dense" else 1e-9  # the tree of the segments is the same on any ranks
    for mine, theirs in (
        (parallel.unknowns.values, serial.unknowns.values),
        (parallel.unknowns.errors, serial.unknowns.errors),
        (parallel.nodes, serial.nodes),
        (parallel.node_errors, serial.node_errors),
        (parallel.residuals[0], serial.residuals[0]),
    ):
        size = np.abs(theirs).max()
        np.testing.assert_allclose(mine / size, theirs / size, rtol=0.0, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_hundred_thousand_points_go_through_petsc_and_its_log_tells_of_it(
    ranks: int, tmp_path: Path, mpirun: Mpirun
) -> None:
    job = ("run", HUNDRED_THOUSAND, "-o", "long.h5")
    done = mpirun(ranks, "-m", "hpcfit", *job, cwd=tmp_path, seconds=200)
    assert done.returncode == 0, done.stderr
    result = fitted(tmp_path / "long.h5")
    assert (result.converged, result.solver) == (True, "petsc")
    for name, estimate in result.parameters.items():
        assert abs(estimate - result.truth[name]) < 5 * result.errors[name]
    events = {line.split()[0]: line.split() for line in result.solver_log.splitlines() if line.split()}
    assert int(events["MatCholFctrNum"][1]) >= result.iterations  # a factorisation in every exact iteration
    assert int(events["MatSolve"][1]) > 3 * result.iterations
    assert f"with {ranks} processor" in result.solver_log


FAULTS = """
import os, resource, signal, sys
from hpcfit.shooting.slices import Slice
fault, linearise, calls = sys.argv.pop(1), Slice.linearise, []
def failing(self, comm, z):
    calls.append(1)
    if comm.rank == 1 and len(calls) == 5:
        print("fault", flush=True)
        if fault == "raise":
            raise ZeroDivisionError("rank 1 cannot go on")
        if fault == "memory":
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used, used))
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    return linearise(self, comm, z)
Slice.linearise = failing
from hpcfit.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("raise", "rank 1 cannot go on"), ("memory", "Unable to allocate"), ("kill", "signal 9 (Killed)")],
)
def test_a_rank_that_fails_ends_all_and_the_cause_is_told(
    fault: str, cause: str, tmp_path: Path, mpirun: Mpirun
) -> None:
    (tmp_path / "fault.py").write_text(FAULTS)
    job = ("run", str(LONG / "lorenz_1e5.toml"), "-o", "never.h5", "--set", "truth.times.count=60000")
    begin = time.monotonic()
    done = mpirun(3, str(tmp_path / "fault.py"), fault, *job, cwd=tmp_path, seconds=100)
    assert "fault" in done.stdout
    assert done.returncode not in (0, 2, 3)
    assert cause in done.stderr
    assert time.monotonic() - begin < 60.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fault.py"]


def test_all_ranks_end_soon_after_one_was_killed(tmp_path: Path) -> None:
    """Killed from outside, at any moment: the launcher ends the others and tells why."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    quiet = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", sys.executable, "-m", "hpcfit"]
    running = subprocess.Popen(
        [*launcher, "run", HUNDRED_THOUSAND, "-o", "never.h5"],
        cwd=tmp_path,
        env=os.environ | allowed | quiet,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(4.0)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    begin = time.monotonic()
    _, said = running.communicate(timeout=60)
    assert time.monotonic() - begin < SECONDS
    assert running.returncode != 0
    assert "signal 9 (Killed)" in said
    assert list(tmp_path.iterdir()) == []
