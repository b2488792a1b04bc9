"""Spectra as text, JSON and CSV; two of them compared."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import numpy as np
import pytest

from hpcfit.records import InputError
from hpcfit.reporting.layout import plain
from hpcfit.reporting.spectra import summary
from hpcfit.reporting.tables import as_csv, as_json, as_text, compare
from tests.reporting.fit_material import fit
from tests.reporting.spectrum_material import AWKWARD, hamiltonian, spectrum

PROVENANCE = {"hpcfit": "0.1.0"}


def row(text: str, first: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [first])


@pytest.mark.parametrize("name", AWKWARD)
def test_text_of_awkward_spectra(name: str) -> None:
    shown = AWKWARD[name]
    text = as_text(shown, PROVENANCE)
    assert shown.outcome.value.split(":")[0] in text
    assert "\x1b" not in text
    assert all(len(line) <= 110 for line in text.splitlines())
    ascii_text = as_text(shown, PROVENANCE, unicode=False, plots=False)
    assert ascii_text.isascii()
    with_plots = as_text(shown, PROVENANCE, unicode=True, plots=False)
    assert [len(line) for line in plain(with_plots).splitlines()] == [
        len(line) for line in with_plots.splitlines()
    ]


def test_exponents_have_errors_and_zeros_have_bounds() -> None:
    text = as_text(spectrum(), {})
    assert row(text, "λ1") == ["λ1", "0.90000", "0.009", "±", "0.0189", "1.298"]
    assert row(text, "λ2")[:4] == ["λ2", "0.00000", "<", "0.006"]
    assert "vanishes" in text
    assert "Kaplan-Yorke dimension  2.062100 ± 0.0004" in text
    assert "errors double in        0.77016 ± 0.008" in text


def test_what_must_hold_is_checked() -> None:
    text = as_text(hamiltonian(), {})
    assert "isolating integrals     1 (half of 2 zeros)" in text
    assert "pairing" in text
    assert "3.2e-14" in text
    assert "more than allowed" not in text
    assert "more than allowed" in as_text(spectrum(divergence=-13.0), {})
    broken = dataclasses.replace(hamiltonian(), exponents=np.array([0.05, 0.0, 0.0, -0.06]), divergence=-0.01)
    assert "more than allowed" in as_text(broken, {})


def test_bits_per_orbit_are_shown_where_turns_are_known() -> None:
    assert "bits / orbit" not in as_text(spectrum(), {})
    text = as_text(hamiltonian(), {})
    assert row(text, "λ1")[-2:] == ["0.07213", "0.4508"]
    assert "An orbit takes 6.25 units of time" in text


def test_trajectories_are_told_apart() -> None:
    text = as_text(hamiltonian(), {})
    assert "3 chaotic, 1 regular, 1 failed" in text
    assert row(text, "0")[:2] == ["0", "regular"]
    assert row(text, "4")[:2] == ["4", "failed"]
    assert "trajectory 4 stopped at t = 250.125" in text
    many = as_text(AWKWARD["200 trajectories"], {})
    assert "165 chaotic, 30 regular, 5 failed" in many
    assert sum(line.split()[1:2] == ["regular"] for line in many.splitlines()) == 30
    assert not any(line.split()[1:2] == ["chaotic"] for line in many.splitlines())


def test_json_has_all_that_is_known() -> None:
    shown = hamiltonian()
    found = json.loads(json.dumps(as_json(shown, PROVENANCE), allow_nan=False))
    assert found["kind"] == "lyapunov"
    assert found["exponents"] == [0.05, 0.0, 0.0, -0.05]
    assert found["errors"] == [pytest.approx(0.0005), None, None, pytest.approx(0.0005)]
    assert found["bounds"] == [None, 0.006, 0.006, None]
    assert found["confidence95"][0] == pytest.approx([0.05 - 0.00105, 0.05 + 0.00105])
    assert found["confidence95"][1] == pytest.approx([-0.006, 0.006])
    assert (found["dimension"], found["duration"], found["trajectories"]) == (4.0, 500.0, 5)
    assert (found["drift"], found["pairing"], found["integrals"], found["zeros"]) == (3.2e-14, 0.0, 1, 2)
    assert (found["regular"], found["failed"]) == ([0], [4])
    assert [each["kind"] for each in found["each"]] == ["regular", *["chaotic"] * 3, "failed"]
    assert found["each"][4]["stopped"] == 250.125
    assert found["each"][1]["exponents"][0] == pytest.approx(shown.growth[1, :, 0].sum() / 500.0)
    assert found["section"] == {"surface": "x1", "direction": 1, "axes": ["x2", "x4"], "points": 500}
    assert len(found["history"]["times"]) == 30
    assert found["warnings"] == ["the orbit sticks: <often>"]
    for other in AWKWARD.values():
        json.dumps(as_json(other, PROVENANCE), allow_nan=False)


def test_csv_reads_back_to_the_same_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(spectrum()))))
    assert [float(each["exponent"]) for each in rows] == [0.9, 0.0, -14.6]
    assert [each["error"] for each in rows][1] == ""
    assert float(rows[1]["bound"]) == 0.006
    assert float(rows[0]["confidence95_high"]) == 0.9 + 2.1 * 0.009
    assert float(rows[2]["bits_per_time"]) == pytest.approx(-14.6 / np.log(2.0), rel=1e-15)


def test_spectra_are_compared() -> None:
    first, second = spectrum(), spectrum((0.92, 0.0, -14.6), parameters=np.tile([10.0, 29.0], (3, 1)))
    text = compare(first, second, ("a.h5", "b.h5"))
    assert "differs: sigma = 10, r = 28 | sigma = 10, r = 29" in text
    ratio = -0.02 / np.hypot(0.009, 0.0092)
    assert row(text, "λ1")[-2:] == ["-0.02", f"{ratio:+.2f}"]
    assert row(text, "λ3")[-1] == "equal"
    assert "identical" in compare(first, spectrum(), ("a.h5", "b.h5"))
    assert "only in the first" in compare(hamiltonian(), spectrum(), ("a.h5", "b.h5"))
    with pytest.raises(InputError, match="is a spectrum"):
        compare(first, fit(), ("a.h5", "b.h5"))


def test_draws_of_a_fit_are_not_averaged_in() -> None:
    shown = AWKWARD["drawn"]
    text = as_text(shown, {})
    assert "trajectories            3 chaotic" in text
    assert "draws of a fit          3 of 4 with a spectrum" in text
    assert "time has one more exponent" in text
    assert shown.draw_exponents is not None
    known = shown.draw_exponents[[0, 1, 3], 0]
    cells = next(line.split() for line in text.splitlines() if line.startswith("λ1") and "±" not in line)
    assert float(cells[4]) == pytest.approx(known.std(ddof=1), rel=0.01)
    assert [float(each) for each in cells[5:]] == pytest.approx([known.min(), known.max()], rel=1e-3)
    assert summary.averaged(shown).tolist() == [True] * 3 + [False] * 8
    found = as_json(shown, {})
    assert [each["draw"] for each in found["each"]] == shown.draws.tolist()  # type: ignore[attr-defined,index,union-attr]
    assert found["draws"]["exponents"][2] == [None, None, None]  # type: ignore[index]


def test_trajectories_in_the_means() -> None:
    assert summary.averaged(hamiltonian()).tolist() == [False, True, True, True, False]
    assert summary.averaged(AWKWARD["torus"]).all()
    assert not summary.averaged(AWKWARD["missing"]).any()
