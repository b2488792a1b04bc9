"""Jobs of many experiments: from tables, from one file, from HDF5, simulated; all the same fit."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from hpcfit import Experiment, fit, simulate
from hpcfit.__main__ import main
from hpcfit.files.results import load
from hpcfit.models import catalogue
from hpcfit.records import FitResult, Noise
from tests.conftest import ROOT, Mpirun

LORENZ = catalogue.find("lorenz", None)
GUESS = {"sigma": 9.0, "r": 26.0, "b": 2.5}
SETUP = """kind = "fit"
[model]
name = "lorenz"
[guess]
sigma = 9.0
r = 26.0
b = 2.5
[fit]
local = ["r"]
"""
COUNTS, R = (21, 26, 31), (28.0, 30.0, 25.0)


def values(e: int) -> tuple[np.ndarray, np.ndarray]:
    times = 0.5 * e + 0.05 * np.arange(COUNTS[e])
    parameters = {"sigma": 10.0, "r": R[e], "b": 8 / 3}
    start = {"x": 1.0 + e, "y": 2.0, "z": 20.0}
    path = simulate(
        LORENZ, start=start, parameters=parameters, times=times, noise=Noise(sd=0.2), seed=1, experiment=e
    )
    assert path.observed is not None
    table = path.observed.values.copy()
    if e == 1:
        table[:, 2] = np.nan  # a channel that is missing
    table[3, 0] = np.nan
    return times, table


@pytest.fixture(scope="module")
def expected() -> FitResult:
    experiments = []
    for e in range(3):
        times, table = values(e)
        names = ("x", "y") if e == 1 else ("x", "y", "z")
        columns = {name: table[:, j] for j, name in enumerate(names)}
        experiments.append(Experiment(times, columns, sigma={"x": 0.2, "y": 0.2, "z": 0.1 + 0.1 * e}))
    result = fit(LORENZ, experiments, guess=GUESS, local=("r",))
    assert result.converged
    return result


def same(path: str, expected: FitResult) -> None:
    record = load(Path(path)).record
    assert isinstance(record, FitResult)
    assert record.unknowns.names == expected.unknowns.names
    np.testing.assert_array_equal(record.unknowns.values, expected.unknowns.values)
    np.testing.assert_array_equal(record.unknowns.covariance, expected.unknowns.covariance)
    assert [series.names for series in record.experiments] == [each.names for each in expected.experiments]


def csv_text(tables: dict[int, tuple[np.ndarray, np.ndarray]], run: bool = False) -> str:
    lines = ["t,x,y,z,s" + (",run" if run else "")]
    for e, (times, table) in tables.items():
        for t, row in zip(times, table, strict=True):
            cells = ["" if np.isnan(cell) else repr(float(cell)) for cell in row]
            lines.append(
                ",".join([repr(float(t)), *cells, repr(0.1 + 0.1 * e)] + ([str(7 - e)] if run else []))
            )
    return "\n".join(lines) + "\n"


def test_tables_of_files(job: Path, expected: FitResult) -> None:
    for e in range(3):
        (job.parent / f"d{e}.csv").write_text(csv_text({e: values(e)}))
    job.write_text(
        SETUP + '[[data]]\nfile = "d0.csv"\nsigma = {x = 0.2, y = 0.2, z = "s"}\n'
        '[[data]]\nfile = "d1.csv"\ncolumns = {x = "x", y = "y"}\n'
        '[[data]]\nfile = "d2.csv"\n'
    )
    assert main(["run", "job.toml"]) == 0
    same("job.h5", expected)


def test_one_file_whose_rows_are_mixed(
    job: Path, expected: FitResult, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows = csv_text({e: values(e) for e in range(3)}, run=True).splitlines()
    order = np.argsort([float(row.split(",")[0]) for row in rows], kind="stable")  # by time, over all runs
    (job.parent / "d.csv").write_text("\n".join([head, *(rows[k] for k in order)]) + "\n")
    job.write_text(
        SETUP + '[data]\nfile = "d.csv"\nsigma = {x = 0.2, y = 0.2, z = "s"}\nexperiment = "run"\n'
    )
    assert main(["check", "job.toml"]) == 0
    assert "3 experiments, 78 times 0..2.5" in capsys.readouterr().out
    assert main(["run", "job.toml"]) == 0
    same("job.h5", expected)


@pytest.mark.parametrize("wide", [False, True])
def test_hdf5(job: Path, expected: FitResult, wide: bool) -> None:
    parts = [values(e) for e in range(3)]
    times, table = np.concatenate([t for t, _ in parts]), np.concatenate([v for _, v in parts])
    run = np.repeat([7, 6, 5], COUNTS)
    with h5py.File(job.parent / "series.h5", "w") as file:
        if wide:
            columns = [times, *table.T, 0.1 + 0.1 * (7 - run), run]
            file["all"] = np.stack(columns, axis=1)
            file["all"].attrs["names"] = ["t", "x", "y", "z", "s", "run"]
        else:
            for name, column in zip("txyz", [times, *table.T], strict=True):
                file[name] = column
            file["s"], file["run"] = 0.1 + 0.1 * (7 - run), run
        file["calibration"] = np.zeros(3)  # something else
    job.write_text(
        SETUP + '[data]\nfile = "series.h5"\nsigma = {x = 0.2, y = 0.2, z = "s"}\nexperiment = "run"\n'
    )
    assert main(["run", "job.toml"]) == 0
    same("job.h5", expected)


def test_a_result_of_a_simulation_is_a_recording(job: Path) -> None:
    assert main(["run", "job.toml", "-o", "path.h5"]) == 0
    chosen = ", ".join(f'{name} = "observed/values/{name}"' for name in "xyz")
    spread = ", ".join(f'{name} = "observed/sigma/{name}"' for name in "xyz")
    source = (
        f'[data]\nfile = "path.h5"\ntime = "observed/times"\ncolumns = {{{chosen}}}\nsigma = {{{spread}}}\n'
    )
    Path("fit.toml").write_text(SETUP + source)
    assert main(["run", "fit.toml"]) == 0
    path, found = load(Path("path.h5")).record, load(Path("fit.h5")).record
    np.testing.assert_array_equal(found.experiments[0].values, path.observed.values)  # type: ignore[union-attr]
    assert abs(found.parameters["r@1"] - 28.0) < 5.0 * found.errors["r@1"]  # type: ignore[union-attr]


SIMULATED = (
    SETUP
    + """[[truth]]
start = {x = 1.0, y = 2.0, z = 20.0}
parameters = {sigma = 10.0, r = 28.0, b = "8/3"}
times = {spacing = 0.05, count = 21}
noise = {sd = 0.2}
[[truth]]
start = {x = -4.0, y = 2.0, z = 25.0}
parameters = {r = 30.0}
times = {start = 1.0, spacing = 0.05, count = 26}
observe = ["x", "y"]
"""
)


def test_simulated_experiments_and_their_truth(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.write_text(SIMULATED)
    assert main(["run", "job.toml"]) == 0
    record = load(Path("job.h5")).record
    assert isinstance(record, FitResult)
    assert [len(series.times) for series in record.experiments] == [21, 26]
    assert record.experiments[1].names == ("x", "y")
    assert record.truth["r@2"] == 30.0
    assert record.truth["x@2"] == -4.0
    assert "r" not in record.truth
    capsys.readouterr()
    assert main(["show", "job.h5", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert list(page["parameters"]) == ["sigma", "b", "r@1", "r@2"]
    for entry in page["parameters"].values():
        assert abs(entry["estimate"] - entry["truth"]) < 5.0 * entry["error"]
    assert main(["report", "job.h5", "-o", "job.html"]) == 0
    html = Path("job.html").read_text()
    assert "Experiment 2 of 2" in html
    assert "r@2" in html


def test_the_noise_of_an_experiment_is_its_own_and_that_of_the_first_as_before(job: Path) -> None:
    twice = SIMULATED.split("[[truth]]")
    job.write_text("[[truth]]".join([twice[0], twice[1], "\n"]))  # the same experiment again
    assert main(["run", "job.toml", "-o", "two.h5"]) == 0
    job.write_text("[truth]".join(twice[:2]))
    assert main(["run", "job.toml", "-o", "one.h5"]) == 0
    two, one = (load(Path(name)).record for name in ("two.h5", "one.h5"))
    assert isinstance(two, FitResult)
    assert isinstance(one, FitResult)
    np.testing.assert_array_equal(two.experiments[0].values, one.experiments[0].values)
    assert not np.isclose(two.experiments[1].values, one.experiments[0].values).any()


def test_an_ensemble_of_two_experiments(job: Path) -> None:
    job.write_text(SIMULATED.replace('"fit"', '"ensemble"') + '[ensemble]\nof = "fit"\nmembers = 3\n')
    assert main(["run", "job.toml"]) == 0
    assert main(["run", "job.toml", "--member", "2"]) == 0
    table, alone = load(Path("job.h5")).record, load(Path("job-2.h5")).record
    row = dict(zip(table.names, table.estimates[1], strict=True))  # type: ignore[union-attr]
    assert row == pytest.approx(alone.parameters | alone.initial_states, rel=1e-9)  # type: ignore[union-attr]
    assert table.truth["r@2"] == 30.0  # type: ignore[union-attr]
    assert main(["show", "job.h5"]) == 0
    assert main(["report", "job.h5", "-o", "job.html"]) == 0
    assert "r@2" in Path("job.html").read_text()


def test_the_example_of_the_project_on_one_and_two_ranks(
    job: Path, capsys: pytest.CaptureFixture[str], mpirun: Mpirun
) -> None:
    example = ROOT / "jobs" / "examples" / "many_experiments.toml"
    assert main(["run", str(example), "-o", "one.h5"]) == 0
    done = mpirun(2, "-m", "hpcfit", "run", str(example), "-o", "two.h5", cwd=job.parent)
    assert done.returncode == 0, done.stderr
    one, two = (load(Path(name)).record for name in ("one.h5", "two.h5"))
    assert isinstance(one, FitResult)
    assert isinstance(two, FitResult)
    assert len(one.experiments) == 20
    assert {series.names for series in one.experiments} == {("x", "y", "z"), ("x", "y"), ("x", "z")}
    assert all(
        abs(value - one.truth[name]) < 5.0 * one.errors[name] for name, value in one.parameters.items()
    )
    np.testing.assert_allclose(two.unknowns.values, one.unknowns.values, rtol=1e-9)
