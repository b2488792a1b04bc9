"""Ensembles with a grid: every row is the fit of its cell and realisation, in whatever company."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcfit.__main__ import main
from hpcfit.files.results import load
from hpcfit.records import EnsembleResult, FitResult, Spectrum
from tests.conftest import Mpirun

SWEEP = """
kind = "ensemble"
seed = 18
[ensemble]
of = "fit"
members = 3
[ensemble.grid]
"guess.a" = [1, 10]
E = {from = "1/12", to = "1/8", count = 2}
"truth.noise.sd" = [0.01, 0.03]
"fit.observe" = [["x1", "x2", "x3", "x4"], ["x1", "x2"]]
[model]
name = "henon_heiles"
[truth]
start = {x1 = 0.0, x2 = 0.0, x3 = "sqrt(2*E - 0.04)", x4 = -0.2}
parameters = {a = 1.0, b = 1.0, c = -1.0}
times = {start = 0.0, spacing = 0.2, count = 40}
noise = {sd = 0.03, beyond_3_sigma = "redraw"}
[guess]
b = 2.0
c = -1.5
"""
SAME = ("members", "outcomes", "estimates", "errors", "objective", "iterations", "linearisations")


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnsembleResult:
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SWEEP)
    main(["-q", "run", "sweep.toml"])
    return ensemble(Path("sweep.h5"))


def ensemble(path: Path) -> EnsembleResult:
    record = load(path).record
    assert isinstance(record, EnsembleResult)
    return record


def test_rows_are_the_fits_of_their_cells(sweep: EnsembleResult) -> None:
    assert len(sweep.members) == 16 * 3
    assert len(np.unique(sweep.objective)) > 40
    for member in (1, 2, 3, 5, 16, 17, 40, 48):
        main(["-q", "run", "sweep.toml", "--member", str(member)])
        single = load(Path(f"sweep-{member}.h5")).record
        assert isinstance(single, FitResult)
        assert single.outcome is sweep.outcomes[member - 1]
        np.testing.assert_array_equal(sweep.estimates[member - 1], single.unknowns.values)
        assert sweep.objective[member - 1] == single.objective


def test_the_file_says_what_cells_are(sweep: EnsembleResult) -> None:
    assert list(sweep.grid) == ["guess.a", "E", "truth.noise.sd", "fit.observe"]
    assert sweep.cells.tolist() == [*range(16)] * 3
    assert set(sweep.truth) == {"x1", "x2", "x4", "a", "b", "c"}
    energy = np.repeat([1 / 12, 1 / 8], 4)
    expected = np.sqrt(2 * np.tile(energy, 2) - 0.04)
    np.testing.assert_allclose(sweep.cell_truth["x3"], expected, rtol=1e-15)
    np.testing.assert_array_equal(sweep.true("x3")[16:32], sweep.cell_truth["x3"])
    # the same noise in all cells, so that twice the noise is nearly twice the error
    few, many = sweep.errors[0], sweep.errors[2]
    np.testing.assert_allclose(many / few, 3.0, rtol=0.3)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_do_not_matter(sweep: EnsembleResult, ranks: int, mpirun: Mpirun) -> None:
    done = mpirun(ranks, "-m", "hpcfit", "run", "sweep.toml", "-o", "other.h5")
    assert done.returncode in (0, 3), done.stderr
    other = ensemble(Path("other.h5"))
    for name in SAME:
        np.testing.assert_array_equal(getattr(other, name), getattr(sweep, name), err_msg=name)


def test_more_members_leave_those_that_are_there_as_they_are(sweep: EnsembleResult) -> None:
    main(["-q", "run", "sweep.toml", "--set", "ensemble.members=5", "-o", "more.h5"])
    more = ensemble(Path("more.h5"))
    for name in ("members", "estimates", "objective"):
        np.testing.assert_array_equal(getattr(more, name)[:48], getattr(sweep, name))


def test_a_guess_that_leads_nowhere_is_a_finding_of_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes at zero and a guess that drives them to infinity within an interval."""
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text(
        """
kind = "ensemble"
[ensemble]
of = "fit"
members = 2
[ensemble.grid]
"guess.k" = [900.0, 0.5]
[model]
states = ["x"]
parameters = ["k"]
equations = {x = "k*x*x"}
[truth]
start = {x = 0.5}
parameters = {k = 0.4}
times = {start = 0.0, spacing = 0.5, count = 8}
noise = {sd = 0.01}
[guess]
"""
    )
    assert main(["-q", "run", "bad.toml"]) == 3
    names = [outcome.name for outcome in ensemble(Path("bad.h5")).outcomes]
    assert names[1] == names[3] == "CONVERGED"
    assert "CONVERGED" not in (names[0], names[2])


SPECTRA = """
kind = "ensemble"
[ensemble]
of = "lyapunov"
[ensemble.grid]
E = {from = "1/12", to = "1/6", count = 3}
scale = [1.0, 1.1]
[model]
name = "henon_heiles"
[truth]
start = {x1 = 0.0, x2 = 0.1, x3 = "sqrt(2*E - 0.01)", x4 = 0.05}
parameters = {a = "scale", b = 1.0, c = -1.0}
[lyapunov]
duration = 100.0
"""


def test_spectra_of_a_grid_are_those_of_their_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpirun: Mpirun, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("energy.toml").write_text(SPECTRA)
    assert main(["-q", "run", "energy.toml"]) == 0
    sweep = ensemble(Path("energy.h5"))
    assert sweep.of == "lyapunov"
    assert sweep.converged
    assert sweep.names == (
        "lambda1",
        "lambda2",
        "lambda3",
        "lambda4",
        "dimension",
        "entropy",
        "regular",
        "drift",
    )
    for member in (1, 4, 6):
        assert main(["-q", "run", "energy.toml", "--member", str(member)]) == 0
        single = load(Path(f"energy-{member}.h5")).record
        assert isinstance(single, Spectrum)
        np.testing.assert_array_equal(sweep.estimates[member - 1, :4], single.exponents)
        errors = np.where(np.isnan(single.errors), single.bounds, single.errors)
        np.testing.assert_array_equal(sweep.errors[member - 1, :4], errors)
    done = mpirun(2, "-m", "hpcfit", "run", "energy.toml", "-o", "other.h5")
    assert done.returncode == 0, done.stderr
    other = ensemble(Path("other.h5"))
    for name in ("members", "outcomes", "estimates", "errors"):
        np.testing.assert_array_equal(getattr(other, name), getattr(sweep, name), err_msg=name)
    assert main(["show", "energy.h5"]) == 0
    assert "6 cells of E, scale" in capsys.readouterr().out
    assert main(["-q", "report", "energy.h5", "-o", "energy.html"]) == 0
    assert Path("energy.html").read_text().count("<figure>") >= 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('of = "lyapunov"', 'of = "lyapunov"\nmembers = 3'), "the spectra of a cell would all be the same"),
        (("duration = 100.0", "duration = 0.0"), "lyapunov.duration"),
        (('E = {from = "1/12", to = "1/6", count = 3}', "E = [-1.0, 0.1]"), "has no finite value"),
        (("scale = [1.0, 1.1]", 'scale = [1.0, 1.1]\n"lyapunov.exponents" = [1, 2]'), "other unknowns"),
    ],
)
def test_mistakes_in_sweeps_of_spectra(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("energy.toml").write_text(SPECTRA.replace(*change))
    assert main(["run", "energy.toml"]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert "Traceback" not in found
    assert not Path("energy.h5").exists()
