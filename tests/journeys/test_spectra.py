"""Spectra as users run them: ranks, kills and what goes on afterwards, checkpoints that are damaged."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from hpcfit.__main__ import main
from hpcfit.files.checkpoints import paths
from hpcfit.files.results import load
from hpcfit.records import Spectrum
from tests.conftest import Mpirun
from tests.drill.spectra import JOB, LEFT_EARLY, drill, identical, start

WIDE = """
kind = "lyapunov"
[model]
name = "lorenz96"
size = 70
[lyapunov]
duration = 4
transient = 1
block = 0.5
interval = 0.25
"""


def spectrum_in(path: Path) -> Spectrum:
    record = load(path).record
    assert isinstance(record, Spectrum)
    return record


@pytest.mark.parametrize("text", [JOB.replace("DURATION", "300"), WIDE], ids=["trajectories", "columns"])
def test_ranks_give_the_bits_of_the_serial_run(text: str, tmp_path: Path, mpirun: Mpirun) -> None:
    """Three trajectories are dealt out; of one large system the columns of the frame."""
    (tmp_path / "job.toml").write_text(text)
    found = []
    for ranks in (1, 2, 3):
        done = mpirun(
            ranks, "-m", "hpcfit", "run", "job.toml", "-o", f"{ranks}.h5", cwd=tmp_path, seconds=120
        )
        assert done.returncode == 0, done.stderr
        found.append(spectrum_in(tmp_path / f"{ranks}.h5"))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].growth, other.growth)
        np.testing.assert_array_equal(found[0].exponents, other.exponents)
        assert (found[0].divergence, found[0].steps) == (other.divergence, other.steps)


def test_killed_runs_come_to_the_same_end(tmp_path: Path) -> None:
    tally = drill(tmp_path, kills=3, duration=30_000.0, seed=4, longest=3.0)
    assert tally["kills"] == 3
    assert tally["with other numbers"] == 0
    assert tally["files left behind"] == 0


def interrupted(folder: Path) -> str:
    """A run that was told to leave when it had kept two checkpoints, and what it said."""
    run = start(folder, 1, "cut.h5")
    while not all(path.exists() for path in paths(folder / "cut.h5")):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGUSR1)
    _, said = run.communicate(timeout=30)
    assert run.returncode == LEFT_EARLY
    return said


@pytest.fixture
def left_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(JOB.replace("DURATION", "40000"))
    said = interrupted(tmp_path)
    assert "left early (SIGUSR1)" in said
    assert "the same command goes on" in said
    return tmp_path


def newest(folder: Path) -> Path:
    return max(paths(folder / "cut.h5"), key=lambda path: path.stat().st_mtime_ns)


def test_a_damaged_checkpoint_falls_back_to_the_other(
    left_early: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = newest(left_early)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert main(["run", "job.toml", "-o", "cut.h5"]) == 0
    assert f"{path.name} is damaged" in caplog.text
    assert "going on from block" in caplog.text
    assert main(["run", "job.toml", "-o", "whole.h5"]) == 0
    assert identical(left_early)
    assert not any(path.exists() for path in paths(left_early / "cut.h5"))


def test_if_both_are_cut_off_it_begins_anew(left_early: Path, caplog: pytest.LogCaptureFixture) -> None:
    for path in paths(left_early / "cut.h5"):
        os.truncate(path, path.stat().st_size // 3)
    assert main(["run", "job.toml", "-o", "cut.h5", "--set", "lyapunov.duration=200"]) == 0
    assert caplog.text.count("beginning anew") == 2


def test_checkpoints_of_another_job_are_not_touched_without_leave(
    left_early: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ["run", "job.toml", "-o", "cut.h5", "--set", "lyapunov.duration=200"]
    before = newest(left_early).read_bytes()
    assert main(other) == 2
    said = capsys.readouterr().err
    assert "is a checkpoint of another job; choose another -o, or give --overwrite" in said
    assert newest(left_early).read_bytes() == before
    assert main([*other, "--overwrite"]) == 0
    assert not any(path.exists() for path in paths(left_early / "cut.h5"))


def test_an_escape_is_told_and_ends_with_status_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(
        'kind = "lyapunov"\n[model]\nstates = ["x"]\nparameters = ["e"]\nequations = {x = "e*x**2"}\n'
        '[truth]\nstart = {x = 1.0}\nparameters = {e = "1/37.2"}\n[lyapunov]\nduration = 100\n'
    )
    assert main(["run", "job.toml"]) == 3
    record = spectrum_in(tmp_path / "job.h5")
    assert "trajectory 0 stopped at t = 37.2" in record.cause
    assert main(["run", "job.toml"]) == 3  # complete: nothing is done again


def test_progress_tells_rate_and_exponents(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB.replace("DURATION", "10000000"))
    run = start(tmp_path, 1, "out.h5")
    assert run.stderr is not None
    line = run.stderr.readline()
    run.send_signal(signal.SIGKILL)
    run.communicate()
    for part in ("spectrum of lorenz:", "to go", "time units/s"):
        assert part in line


def test_show_and_report_load_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(JOB.replace("DURATION", "100"))
    assert main(["run", "job.toml"]) == 0
    assert main(["show", "job.h5"]) == 0
    assert main(["show", "job.h5", "--json"]) == 0
    assert main(["report", "job.h5", "-o", "page.html"]) == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_spectrum_of_a_fitted_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.toml").write_text(
        'kind = "fit"\n[model]\nname = "lorenz"\n[truth]\nstart = {x = 5.7654, y = 10.50547, z = 30.58941}\n'
        'parameters = {sigma = 10.0, r = 46.0, b = "8/3"}\ntimes = {spacing = 0.1, count = 40}\n'
        "noise = {sd = 1.0}\n[guess]\nsigma = 5.0\nr = 20.0\nb = 1.0\n"
    )
    (tmp_path / "job.toml").write_text(
        'kind = "lyapunov"\n[model]\nname = "lorenz"\n[lyapunov]\nfrom = "fit.h5"\ndraws = 5\nduration = 50\n'
    )
    assert main(["check", "job.toml"]) == 2  # the fit is not there yet
    assert main(["run", "fit.toml"]) == 0
    assert main(["check", "job.toml"]) == 0
    assert main(["run", "job.toml"]) == 0
    record = spectrum_in(tmp_path / "job.h5")
    assert record.draw_exponents is not None
    assert record.draw_exponents.shape == (5, 3)
    assert len(np.unique(record.parameters, axis=0)) == 6
