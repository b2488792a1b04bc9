"""show and report of fits and ensembles, from their files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from hpcfit.__main__ import main
from hpcfit.files.results import Saved, save
from tests.reporting.fit_material import ensemble, fit


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a fit, another fit and an ensemble; it is the current one."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "fit.h5", Saved(fit(), "fit", 'kind = "fit"\n', "1", {"hpcfit": "0.1.0"}))
    save(tmp_path / "other.h5", Saved(fit(50), "fit", "", "2", {}))
    save(tmp_path / "many.h5", Saved(ensemble(), "ensemble", "", "3", {}))
    return tmp_path


def test_a_fit_as_text_json_and_csv(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "fit.h5"]) == 0
    assert "strongest correlations" in capsys.readouterr().out
    assert main(["show", "fit.h5", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["parameters"]["p0"]["estimate"] == fit().parameters["p0"]
    assert page["provenance"] == {"hpcfit": "0.1.0"}
    assert main(["show", "fit.h5", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"] for row in rows] == ["p0", "p1", "x", "v", "energy"]


def test_an_ensemble_as_text_json_and_csv(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "many.h5"]) == 0
    assert "coverage" in capsys.readouterr().out
    assert main(["show", "many.h5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"CONVERGED": 195, "STALLED": 5}
    assert main(["show", "many.h5", "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 201


def test_two_fits_are_compared(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "fit.h5", "fit.h5"]) == 0
    assert "identical" in capsys.readouterr().out
    assert main(["show", "fit.h5", "other.h5"]) == 0
    assert "differs: 79 values | 99 values" in capsys.readouterr().out


def test_a_fit_is_not_compared_with_an_ensemble(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "fit.h5", "many.h5"]) == 2
    assert "fit.h5 is a fit, many.h5 is an ensemble; give two results of the same kind" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["fit", "many"])
@pytest.mark.parametrize("suffix", [".html", ".png"])
def test_reports(name: str, suffix: str, results: Path) -> None:
    assert main(["-q", "report", f"{name}.h5", "-o", f"page{suffix}"]) == 0
    begins = {".html": b"<!DOCTYPE html>", ".png": b"\x89PNG"}[suffix]
    assert (results / f"page{suffix}").read_bytes().startswith(begins)


def test_a_cut_off_fit_is_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = (results / "fit.h5").read_bytes()
    (results / "cut.h5").write_bytes(content[: len(content) // 2])
    assert main(["show", "cut.h5"]) == 2
    assert "cut off; give the .h5 file" in capsys.readouterr().err


def test_a_pdf_is_made_in_silence(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        assert main(["report", "fit.h5", "-o", "page.pdf"]) == 0
    assert (results / "page.pdf").read_bytes().startswith(b"%PDF")
    assert {record.name.partition(".")[0] for record in caplog.records} <= {"hpcfit"}
