"""Tables: strict JSON, CSV that reads back, pages of text, comparisons."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from hpcfit.records import Path
from hpcfit.reporting.tables import as_csv, as_json, as_text, compare
from tests.reporting.reporting_material import AWKWARD, PROVENANCE, failed, hostile, path, recorded


def read_back(text: str) -> dict[str, np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text))
    columns = np.array([[float(field) if field else np.nan for field in row] for row in rows])
    return {name: columns[:, k] for k, name in enumerate(header)}


@pytest.mark.parametrize("shown", AWKWARD.values(), ids=AWKWARD.keys())
def test_json_is_strict(shown: Path) -> None:
    page = as_json(shown, PROVENANCE)
    assert json.loads(json.dumps(page, allow_nan=False)) == page


def test_json_of_a_usual_path() -> None:
    shown = recorded()
    page = json.loads(json.dumps(as_json(shown, PROVENANCE)))
    assert page["kind"] == "simulate"
    assert page["outcome"] == "done"
    assert page["converged"] is True
    assert page["parameters"] == {"p0": 0.0, "p1": 1 / 3, "p2": 2 / 3}
    assert page["final_state"]["x2"] == shown.states[-1, 1]
    assert page["times"]["count"] == 60
    assert page["observed"]["energy"]["sigma_mean"] == pytest.approx(0.1)
    assert 0.07 < page["observed"]["energy"]["rms_noise"] < 0.13
    assert page["data"]["x1"]["rms_residual"] == pytest.approx(0.2)
    assert page["data"]["x1"]["rms_residual_in_sigma"] == pytest.approx(2.0)
    assert page["invariant"]["drift"] == np.abs(shown.invariant - shown.invariant[0]).max()
    assert page["sensitivities"]["largest_by_start"] == np.abs(shown.by_start).max()
    assert page["provenance"]["seconds"] is None


def test_json_of_a_failed_path() -> None:
    page = as_json(failed(), {})
    assert page["converged"] is False
    assert page["final_state"] == dict.fromkeys(("x1", "x2", "x3", "x4"))
    assert page["times"]["last_finite"] == failed().times[19]  # type: ignore[index]


def test_csv_reads_back_to_the_same_doubles() -> None:
    shown = failed()
    assert shown.observed is not None
    columns = read_back(as_csv(shown))
    assert list(columns) == ["t", "x1", "x2", "x3", "x4", "energy", "x1_observed", "energy_observed"]
    assert columns["t"].tobytes() == shown.times.tobytes()
    for k in range(4):
        np.testing.assert_array_equal(columns[f"x{k + 1}"], shown.states[:, k])
    np.testing.assert_array_equal(columns["energy_observed"], shown.observed.values[:, 1])
    assert "nan" not in as_csv(shown)


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("shown", AWKWARD.values(), ids=AWKWARD.keys())
def test_text_fits_a_terminal(shown: Path, unicode: bool) -> None:
    page = as_text(shown, PROVENANCE, unicode=unicode, width=90)
    assert max(map(len, page.splitlines())) <= 100
    assert page.isascii() or unicode
    assert "\x1b" not in page
    assert as_csv(shown).count("\n") == len(shown.times) + 1


def test_text_says_what_matters() -> None:
    page = as_text(recorded(), PROVENANCE)
    for words in ("waves", "done", "seed 7", "rad", "1/s", "recording", "invariant", "numpy 1.26"):
        assert words in page
    assert "largest component <1e200>" in " ".join(as_text(failed(), {}).split())


def test_a_path_is_identical_to_itself() -> None:
    for shown in AWKWARD.values():
        assert "differ" not in compare(shown, shown, ("a.h5", "b.h5")).replace("largest difference", "")
    page = compare(failed(), failed(), ("a.h5", "b.h5"))
    assert page.count("identical") == 1 + 4 + 2 + 1 + 2  # times, states, sensitivities, invariant, observed


def test_comparison_finds_the_largest_difference() -> None:
    first = path()
    states, parameters = first.states.copy(), first.parameters.copy()
    states[17, 2] += 0.25
    parameters[1] = np.nextafter(parameters[1], 1.0)
    second = dataclasses.replace(first, states=states, parameters=parameters, by_start=None, model="other")
    page = compare(first, second, ("a.h5", "b.h5"))
    line = next(row for row in page.splitlines() if row.startswith("x3"))
    assert line.split()[1] == "0.25"
    assert line.split()[-1] == "1.7"
    assert "differs: waves | other" in page
    assert repr(float(parameters[1])) in page
    assert "only in the first" in page
    assert compare(first, second, ("a", "b"), unicode=False).isascii()


def test_comparison_of_different_times_and_names() -> None:
    later = dataclasses.replace(path(), times=path().times + 0.05)
    assert "No common times" in compare(path(), later, ("a", "b"))
    assert "300" not in compare(path(), path(n_times=30), ("a", "b"))
    assert "30 of them in common" in compare(path(), path(n_times=30), ("a", "b"))
    compare(path(2), hostile(), ("a", "b"))
    many, other = path(400, 30, 2, by_start=None), path(400, 30, 2, by_start=None)
    other.states[:, :200] += 1e-3
    page = compare(many, other, ("a", "b"))
    assert "… 200 others  " in page
    assert len(page.splitlines()) < 60


def test_tables_do_not_load_matplotlib() -> None:
    code = "import sys, hpcfit.reporting.tables; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
