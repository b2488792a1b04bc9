"""Long recordings: ranks read the rows that they need, and write those that they have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from hpcfit.commands.loading import load
from hpcfit.commands.work import WORK
from hpcfit.files import rows
from hpcfit.files.results import load as load_result
from hpcfit.models.catalogue import find
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import FitResult, InputError, Series
from hpcfit.studies.simulate import simulate
from tests.conftest import Mpirun

ROWS, EVERY = 120_000, 100
TRUTH = {"sigma": 10.0, "r": 28.0, "b": 8.0 / 3.0}
JOB = """
kind = "fit"
[model]
name = "lorenz"
[truth]
parameters = {sigma = 10.0, r = 28.0, b = "8/3"}
start = {x = 1.0, y = 1.0, z = 20.0}
[data]
file = "long.h5"
columns = {x = "seen/x", y = "seen/y"}
sigma = {x = 1.0, y = "error"}
[guess]
sigma = 9.0
r = 27.0
b = 2.5
[nodes]
z = 25.0
[fit]
nodes = 100
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job and its recording: x and y by rows of a table, with gaps; z is hidden."""
    where, rng = tmp_path_factory.mktemp("long"), np.random.default_rng(1)
    times = 0.001 * np.arange(ROWS)
    path = simulate(
        find("lorenz"), start={"x": 1.0, "y": 1.0, "z": 20.0}, parameters=TRUTH, times=times
    ).states
    noisy = path[:, :2] + rng.normal(size=(ROWS, 2))
    noisy[rng.uniform(size=noisy.shape) < 0.1] = np.nan
    noisy[30_000:60_500, 1] = np.nan
    with h5py.File(where / "long.h5", "w") as file:
        file["t"], file["error"] = times, np.ones(ROWS)
        file["seen"] = noisy
        file["seen"].attrs["names"] = ["x", "y"]
    (where / "job.toml").write_text(JOB.replace("seen/", ""))
    return where


def run(folder: Path, output: str) -> FitResult:
    command = [sys.executable, "-m", "hpcfit", "run", "job.toml", "-o", output]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return fitted(folder / output)


def fitted(path: Path) -> FitResult:
    record = load_result(path).record
    assert isinstance(record, FitResult)
    return record


@pytest.fixture(scope="module")
def serial(folder: Path) -> FitResult:
    return run(folder, "serial.h5")


def test_the_fit_finds_the_truth(serial: FitResult) -> None:
    assert serial.converged
    assert serial.experiments[0].count == ROWS
    assert len(serial.nodes) == ROWS // EVERY + 1
    for name, value in TRUTH.items():
        assert abs(serial.parameters[name] - value) < 5.0 * serial.errors[name]
    assert serial.beta2 == pytest.approx(1.0, abs=0.03)


def test_rows_read_later_are_those_read_at_once(folder: Path) -> None:
    eager, later = (load(folder / "job.toml", by_rows=by_rows).recordings[0] for by_rows in (False, True))
    assert isinstance(eager, Series)
    assert not isinstance(later, Series)
    assert (later.names, later.count, later.has_sigma) == (eager.names, ROWS, True)
    for first, last in ((0, ROWS), (17, 40_000), (ROWS - 1, ROWS), (5, 5)):
        ours, theirs = later.rows(first, last), eager.rows(first, last)
        np.testing.assert_array_equal(ours.times, theirs.times)
        np.testing.assert_array_equal(ours.values, theirs.values)
        assert ours.sigma is not None
        np.testing.assert_array_equal(ours.sigma, theirs.sigma)


def same(ours: FitResult, theirs: FitResult) -> None:
    """To the last bit: the tree of segments is the same on any ranks."""
    pairs = [
        (ours.unknowns.values, theirs.unknowns.values),
        (ours.unknowns.covariance, theirs.unknowns.covariance),
        (ours.nodes, theirs.nodes),
        (ours.node_errors, theirs.node_errors),
        (ours.node_times, theirs.node_times),
        (ours.residuals[0], theirs.residuals[0]),
        (ours.experiments[0].times, theirs.experiments[0].times),
        (ours.experiments[0].values, theirs.experiments[0].values),
        (ours.experiments[0].sigma, theirs.experiments[0].sigma),
        (ours.initial.states, theirs.initial.states),
        (ours.final.times, theirs.final.times),
        (ours.final.states, theirs.final.states),
    ]
    for mine, other in pairs:
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_read_and_write_rows_give_the_serial_file(
    ranks: int, folder: Path, serial: FitResult, mpirun: Mpirun
) -> None:
    done = mpirun(ranks, "-m", "hpcfit", "run", "job.toml", "-o", f"{ranks}.h5", cwd=folder, seconds=150)
    assert done.returncode == 0, done.stderr
    same(fitted(folder / f"{ranks}.h5"), serial)


ONE_WRITER = """
import sys
from hpcfit.files import rows
rows.can_share_files = lambda comm: False
from hpcfit.__main__ import main
sys.exit(main())
"""


def test_without_parallel_hdf5_one_rank_writes_the_same_file(
    folder: Path, serial: FitResult, mpirun: Mpirun
) -> None:
    done = mpirun(2, "-c", ONE_WRITER, "run", "job.toml", "-o", "turns.h5", cwd=folder, seconds=150)
    assert done.returncode == 0, done.stderr
    same(fitted(folder / "turns.h5"), serial)


SMALL_PIECES = """
import sys
from hpcfit.files import rows
rows.AT_ONCE = 7_000
from hpcfit.__main__ import main
sys.exit(main())
"""


def test_ranks_with_more_pieces_than_others_write_with_them(
    folder: Path, serial: FitResult, mpirun: Mpirun
) -> None:
    """Those who have none left take part in every write; else all wait for ever."""
    done = mpirun(3, "-c", SMALL_PIECES, "run", "job.toml", "-o", "pieces.h5", cwd=folder, seconds=150)
    assert done.returncode == 0, done.stderr
    same(fitted(folder / "pieces.h5"), serial)


def test_pieces_end_where_chunks_of_the_file_do(serial: FitResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", 50_000)
    found = [piece for piece in rows.pieces(serial) if piece.path == "experiments/1/values"]
    assert [piece.first for piece in found] == [0, 50_000, 100_000]
    np.testing.assert_array_equal(
        np.concatenate([piece.values for piece in found]), serial.experiments[0].values
    )


FULL_DISK = """
import sys
from hpcfit.files import rows
name, sharing = sys.argv.pop(1), sys.argv.pop(1) == "together"
if not sharing:
    rows.can_share_files = lambda comm: False
def failing(*given):
    raise OSError("no space is left")
setattr(rows, name, failing)
from hpcfit.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("name", "how"), [("serial_h5py", "together"), ("_write", "together"), ("serial_h5py", "in turns")]
)
def test_a_file_that_cannot_be_filled_leaves_nothing(
    name: str, how: str, folder: Path, mpirun: Mpirun
) -> None:
    job = ("run", "job.toml", "-o", "never.h5")
    done = mpirun(2, "-c", FULL_DISK, name, how, *job, cwd=folder, seconds=50)
    assert done.returncode == 1
    assert "no space is left" in done.stderr
    assert not [path for path in folder.iterdir() if "never" in path.name]


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("t", 70_000, 0.0, "times must increase: 0 (row 70001) after 69.999"),
        ("t", 70_000, np.nan, "row 70001 has no time"),
        ("error", 90_000, -1.0, "row 90001: the standard deviation of y is -1"),
    ],
)
def test_rows_that_are_wrong_are_named_as_they_stand_in_the_file(
    column: str, row: int, value: float, message: str, folder: Path
) -> None:
    with h5py.File(folder / "long.h5", "r+") as file:
        before = file[column][row]
        file["seen"][row] = 0.0
        file[column][row] = value
    try:
        with pytest.raises(InputError) as raised:
            WORK["fit"](SERIAL, load(folder / "job.toml", by_rows=True), 0)
        assert message in str(raised.value)
        assert "job.toml:" in str(raised.value)
    finally:
        with h5py.File(folder / "long.h5", "r+") as file:
            file[column][row] = before


def test_a_column_that_is_not_there_is_named_before_anything_is_read(folder: Path) -> None:
    for key, wanted in (("sigma", "{x=1.0, y='errors'}"), ("columns", "{x='q'}"), ("time", "'time'")):
        with pytest.raises(InputError, match=r"long\.h5 has no column|no column"):
            load(folder / "job.toml", [f"data.{key}={wanted}"], by_rows=True)
