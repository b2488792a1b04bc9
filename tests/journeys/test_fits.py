"""Fits as users run them: jobs of the papers, any number of ranks, both solvers, from job to page."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcfit.files.results import load
from hpcfit.records import EnsembleResult, FitResult
from tests.conftest import ROOT, Mpirun

HPCFIT = [sys.executable, "-m", "hpcfit"]
S18 = str(ROOT / "jobs" / "kallrath_1993" / "s18.toml")
ENSEMBLE = ("--set", 'kind="ensemble"', "--set", 'ensemble.of="fit"', "--set", "ensemble.members=7")


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HPCFIT, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60)


def fitted(path: Path) -> FitResult:
    record = load(path).record
    assert isinstance(record, FitResult)
    return record


@pytest.mark.parametrize("solver", ["dense", "petsc"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_number_of_ranks_gives_the_serial_answer(
    ranks: int, solver: str, tmp_path: Path, mpirun: Mpirun
) -> None:
    assert call("run", S18, "-o", "serial.h5", cwd=tmp_path).returncode == 0
    arguments = ("-m", "hpcfit", "run", S18, "-o", "ranks.h5", "--set", f'fit.solver="{solver}"')
    done = mpirun(ranks, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    serial, parallel = fitted(tmp_path / "serial.h5"), fitted(tmp_path / "ranks.h5")
    tolerance = 0.0 if solver == "dense" else 1e-9
    np.testing.assert_allclose(parallel.unknowns.values, serial.unknowns.values, rtol=tolerance)
    np.testing.assert_allclose(parallel.unknowns.errors, serial.unknowns.errors, rtol=tolerance)
    np.testing.assert_allclose(parallel.nodes, serial.nodes, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_the_members_of_an_ensemble(ranks: int, tmp_path: Path, mpirun: Mpirun) -> None:
    assert call("run", S18, *ENSEMBLE, "-o", "serial.h5", cwd=tmp_path).returncode == 0
    done = mpirun(ranks, "-m", "hpcfit", "run", S18, *ENSEMBLE, "-o", "ranks.h5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    serial, parallel = (load(tmp_path / name).record for name in ("serial.h5", "ranks.h5"))
    assert isinstance(serial, EnsembleResult)
    assert isinstance(parallel, EnsembleResult)
    for name in ("members", "estimates", "errors", "objective", "iterations", "linearisations"):
        np.testing.assert_array_equal(getattr(serial, name), getattr(parallel, name))


def test_a_member_of_an_ensemble_can_be_fitted_alone(tmp_path: Path) -> None:
    assert call("run", S18, *ENSEMBLE, "-o", "all.h5", cwd=tmp_path).returncode == 0
    assert call("run", S18, "--member", "5", "-o", "five.h5", cwd=tmp_path).returncode == 0
    assert call("run", S18, *ENSEMBLE, "--member", "5", cwd=tmp_path).returncode == 0
    ensemble = load(tmp_path / "all.h5").record
    assert isinstance(ensemble, EnsembleResult)
    for name in ("five.h5", "s18-5.h5"):  # of the fit's job, and of the ensemble's
        alone = fitted(tmp_path / name)
        np.testing.assert_array_equal(ensemble.estimates[4], alone.unknowns.values)
        np.testing.assert_allclose(ensemble.errors[4], alone.unknowns.errors, rtol=1e-14)
        assert (ensemble.objective[4], ensemble.iterations[4]) == (alone.objective, alone.iterations)


def test_the_worst_members_are_named_with_commands_that_run_them(tmp_path: Path) -> None:
    assert call("run", S18, *ENSEMBLE, "-o", "all.h5", cwd=tmp_path).returncode == 0
    page = call("show", "all.h5", cwd=tmp_path).stdout
    (command, *_) = [line for line in page.splitlines() if line.startswith("hpcfit run")]
    arguments = shlex.split(command)
    assert call(*arguments[1:], cwd=tmp_path).returncode == 0
    worst = json.loads(call("show", "all.h5", "--json", cwd=tmp_path).stdout)["worst"]
    member = int(arguments[arguments.index("--member") + 1])
    assert member in [each["member"] for each in worst]
    assert fitted(tmp_path / f"s18-{member}.h5").member == member


def test_from_job_to_page(tmp_path: Path) -> None:
    assert call("run", S18, "-o", "s18.h5", cwd=tmp_path).returncode == 0
    shown = json.loads(call("show", "s18.h5", "--json", cwd=tmp_path).stdout)
    assert shown["converged"]
    c = shown["parameters"]["c"]
    low, high = c["joint95"]
    assert low < c["truth"] < high
    assert call("report", "s18.h5", "-o", "s18.html", cwd=tmp_path).returncode == 0
    assert "<svg" in (tmp_path / "s18.html").read_text() or "<img" in (tmp_path / "s18.html").read_text()
    again = call("run", S18, "-o", "s18.h5", cwd=tmp_path)
    assert again.returncode == 0
    assert "complete" in again.stderr


def test_a_fit_that_does_not_converge_says_so_and_is_written(tmp_path: Path) -> None:
    done = call("run", S18, "-o", "s18.h5", "--set", "fit.max_iterations=1", cwd=tmp_path)
    assert done.returncode == 3
    assert not fitted(tmp_path / "s18.h5").converged


@pytest.mark.parametrize("name", ["bounded", "periodic"])
def test_examples_with_constraints_from_job_to_page_on_any_number_of_ranks(
    name: str, tmp_path: Path, mpirun: Mpirun
) -> None:
    job = str(ROOT / "jobs" / "examples" / f"{name}.toml")
    assert call("run", job, cwd=tmp_path).returncode == 0
    serial = fitted(tmp_path / f"{name}.h5")
    assert serial.converged
    assert serial.constraints
    for each in serial.constraints:
        assert abs(each.value) < 1e-11 if each.active else each.value > 0.0
    for row in (*serial.unknowns.names, *serial.at_bounds):
        half = 4.0 * serial.errors[row]
        assert abs(serial.unknowns.by_name()[row] - serial.truth[row]) <= half
    assert (serial.at_bounds == {"y": "y@start = 0"}) == (name == "periodic")
    assert ("k3" in serial.at_bounds) == (name == "bounded")
    for ranks in (2, 3):
        done = mpirun(ranks, "-m", "hpcfit", "run", job, "-o", f"{ranks}.h5", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        parallel = fitted(tmp_path / f"{ranks}.h5")
        np.testing.assert_array_equal(parallel.unknowns.values, serial.unknowns.values)
        np.testing.assert_array_equal(parallel.unknowns.errors, serial.unknowns.errors)
        assert [each.multiplier for each in parallel.constraints] == [
            each.multiplier for each in serial.constraints
        ]
    shown = call("show", f"{name}.h5", cwd=tmp_path)
    assert shown.returncode == 0
    assert "Constraints (pull: multiplier / its error)" in shown.stdout
    assert call("report", f"{name}.h5", "-o", "page.html", cwd=tmp_path).returncode == 0
    assert serial.constraints[0].text in (tmp_path / "page.html").read_text()
