"""run: what it writes, when it writes it again, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hpcfit.__main__ import main
from hpcfit.files.results import load
from tests.conftest import GOOD_JOB


def out(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_the_result_has_the_name_of_the_job_and_stands_here(job: Path) -> None:
    assert main(["run", "job.toml"]) == 0
    saved = load(job.parent / "job.h5")
    assert saved.job_text == GOOD_JOB
    assert saved.record.states.shape == (11, 3)
    for key in (
        "hpcfit",
        "commit",
        "numpy",
        "h5py",
        "compiler",
        "ranks",
        "seed",
        "started",
        "seconds",
        "cpu",
    ):
        assert key in saved.provenance, key


def test_a_complete_result_is_left_alone(job: Path) -> None:
    assert main(["run", "job.toml"]) == 0
    before = (job.parent / "job.h5").stat()
    assert main(["run", "job.toml"]) == 0
    assert (job.parent / "job.h5").stat().st_mtime_ns == before.st_mtime_ns


def test_comments_and_the_order_of_keys_make_no_other_job(job: Path) -> None:
    assert main(["run", "job.toml"]) == 0
    job.write_text(
        "# a comment\n" + GOOD_JOB.replace("x = 1.0, y = 2.0, z = 20.0", "z = 20.0, y = 2.0, x = 1.0")
    )
    assert main(["run", "job.toml"]) == 0


@pytest.mark.parametrize(
    "change",
    [["--set", "seed=8"], ["--member", "1", "-o", "job.h5"], ["--set", "simulate.tolerance=1e-9"]],
)
def test_another_job_needs_leave_to_overwrite(change: list[str], job: Path) -> None:
    assert main(["run", "job.toml"]) == 0
    before = (job.parent / "job.h5").read_bytes()
    assert main(["run", "job.toml", *change]) == 2
    assert (job.parent / "job.h5").read_bytes() == before
    assert main(["run", "job.toml", *change, "--overwrite"]) == 0
    assert (job.parent / "job.h5").read_bytes() != before


def test_a_damaged_result_is_replaced_with_leave(job: Path) -> None:
    import h5py

    assert main(["run", "job.toml"]) == 0
    with h5py.File("job.h5", "r+") as file:
        del file["states"]
    assert main(["run", "job.toml"]) == 2
    assert main(["run", "job.toml", "--overwrite"]) == 0
    assert load(job.parent / "job.h5").record.states.shape == (11, 3)


def test_members_differ_in_their_noise_only(job: Path) -> None:
    for member in ("0", "1"):
        assert main(["run", "job.toml", "--member", member]) == 0
    first, second = (load(job.parent / f"job-{member}.h5").record for member in "01")
    np.testing.assert_array_equal(first.states, second.states)
    assert first.observed is not None
    assert second.observed is not None
    assert not np.array_equal(first.observed.values, second.observed.values)


def test_a_path_that_ends_early_is_written_and_the_status_is_3(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text(
        'kind = "simulate"\n[model]\nstates = ["x"]\nequations = {x = "x**2"}\n'
        "[truth]\nstart = {x = 1}\ntimes = [0, 0.5, 2]\n"
    )
    assert main(["run", "job.toml"]) == 3
    assert main(["run", "job.toml"]) == 3  # complete, and still not converged
    assert main(["show", "job.h5", "--json"]) == 0
    shown = json.loads(out(capsys))
    assert shown["converged"] is False
    assert "blows up" in shown["outcome"]


def test_a_model_file_is_run_and_that_is_said(job: Path, caplog: pytest.LogCaptureFixture) -> None:
    (job.parent / "m.py").write_text(
        "from hpcfit import model\n"
        '@model(states="x", parameters="k", opaque=True)\n'
        "def switch(t, u, p):\n"
        "    return [-p.k if u.x > 0 else p.k]\n"
    )
    job.write_text(
        'kind = "simulate"\n[model]\nfile = "m.py"\n'
        "[truth]\nstart = {x = 1}\nparameters = {k = 1}\ntimes = [0, 0.5]\n"
    )
    with caplog.at_level("INFO"):
        assert main(["run", "job.toml"]) == 0
    assert "running the model file" in caplog.text
    assert load(job.parent / "job.h5").record.states[-1, 0] == pytest.approx(0.5, rel=1e-12)


def test_data_set_the_times_and_are_compared(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = np.array([0.0, 0.3, 0.7, 1.5])
    rows = "\n".join(f"{t!r},{np.cos(2 * t) + 0.5!r},7" for t in times.tolist())
    (job.parent / "d.csv").write_text(f"time,position,other\n{rows}\n")
    job.write_text(
        'kind = "simulate"\n[model]\nstates = ["x", "v"]\nequations = {x = "v", v = "-4*x"}\n'
        "[truth]\nstart = {x = 1, v = 0}\n"
        '[data]\nfile = "d.csv"\ntime = "time"\ncolumns = {x = "position"}\nsigma = 0.25\n'
    )
    assert main(["run", "job.toml"]) == 0
    record = load(job.parent / "job.h5").record
    np.testing.assert_array_equal(record.times, times)
    assert main(["show", "job.h5", "--json"]) == 0
    assert json.loads(out(capsys))["data"]["x"]["rms_residual"] == pytest.approx(0.5, rel=1e-9)


def test_show_csv_gives_all_digits_back(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-q", "run", "job.toml"]) == 0
    assert main(["show", "job.h5", "--csv"]) == 0
    header, *rows = out(capsys).splitlines()
    assert header.split(",")[:4] == ["t", "x", "y", "z"]
    table = np.array([[float(field) for field in row.split(",")] for row in rows])
    np.testing.assert_array_equal(table[:, 1:4], load(job.parent / "job.h5").record.states)


@pytest.mark.parametrize("suffix", [".html", ".pdf", ".png"])
def test_report_writes_each_form(suffix: str, job: Path) -> None:
    assert main(["-q", "run", "job.toml"]) == 0
    assert main(["report", "job.h5", "-o", f"page{suffix}"]) == 0
    begins = {".html": b"<!DOCTYPE html>", ".pdf": b"%PDF", ".png": b"\x89PNG"}[suffix]
    assert (job.parent / f"page{suffix}").read_bytes().lower().startswith(begins.lower())


def test_every_catalogue_model_prints_a_job_that_runs(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    names = [line.split()[0] for line in out(capsys).splitlines()]
    assert len(names) == 21
    for name in names:
        assert main(["models", name]) == 0
        page = out(capsys)
        job.write_text(page[page.index('kind = "simulate"') :])
        assert main(["check", "job.toml"]) == 0, name
