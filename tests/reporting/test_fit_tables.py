"""Tables of fits: strict JSON with its keys, CSV that reads back, text, comparisons."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import numpy as np
import pytest
from scipy.stats import chi2

from hpcfit.records import Estimates, InputError
from hpcfit.reporting.fits import summary
from hpcfit.reporting.tables import as_csv, as_json, as_text, compare
from tests.reporting.fit_material import AWKWARD, ensemble, fit, stopped, without_sigma
from tests.reporting.reporting_material import PROVENANCE, path

KEYS = (
    "kind model outcome outcome_text cause converged iterations linearisations objective degrees_of_freedom "
    "beta2 gamma parameters initial_states derived correlations covariance constraints at_bounds "
    "noise_levels time_shifts node_errors history timings provenance"
)


@pytest.mark.parametrize("name", AWKWARD)
def test_json_is_strict_and_has_its_keys(name: str) -> None:
    page = as_json(AWKWARD[name], PROVENANCE)
    assert json.loads(json.dumps(page, allow_nan=False)) == page
    assert list(page) == KEYS.split()


def test_json_of_a_usual_fit() -> None:
    shown, page = fit(), json.loads(json.dumps(as_json(fit(), PROVENANCE)))
    assert (page["kind"], page["outcome"], page["outcome_text"]) == ("fit", "CONVERGED", "converged")
    assert list(page["parameters"]) == ["p0", "p1"]
    assert list(page["initial_states"]) == ["x", "v"]
    entry, error = page["parameters"]["p0"], shown.errors["p0"]
    assert list(entry) == ["estimate", "error", "confidence95", "joint95", "guess", "truth"]
    assert entry["estimate"] == shown.parameters["p0"]
    assert entry["confidence95"] == [entry["estimate"] - 1.99 * error, entry["estimate"] + 1.99 * error]
    assert entry["joint95"] == [entry["estimate"] - 3.5 * error, entry["estimate"] + 3.5 * error]
    assert "truth" not in page["parameters"]["p1"]
    assert page["initial_states"]["x"]["guess"] == 1.5  # where the first node began
    assert page["derived"]["energy"]["error"] == pytest.approx(0.01)
    assert page["history"][2]["phase"] == "weak"
    assert page["timings"] == {"solve": 0.25}
    assert page["beta2"] == shown.objective / shown.degrees_of_freedom
    np.testing.assert_allclose(np.diag(page["correlations"]["matrix"]), 1.0)
    assert page["covariance"]["names"] == ["p0", "p1"]
    np.testing.assert_array_equal(page["covariance"]["matrix"], shown.covariance)
    same = dict.fromkeys(("first", "median", "largest", "last"), 0.01)
    assert page["node_errors"]["v"] == same | {"largest_at": 0.0}


def test_what_is_not_known_is_null() -> None:
    page = json.loads(json.dumps(as_json(stopped(), {})))
    assert page["converged"] is False
    assert page["objective"] is None
    assert page["parameters"]["p0"]["confidence95"] == [None, None]
    assert page["history"][0]["defect"] is None


@pytest.mark.parametrize("name", AWKWARD)
def test_csv_has_one_row_an_estimate_and_all_digits(name: str) -> None:
    shown = AWKWARD[name]
    header, *rows = csv.reader(io.StringIO(as_csv(shown)))
    assert all(len(row) == len(header) for row in rows)
    found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert len(rows) == len(shown.unknowns.names) + len(shown.derived.names)
    for each, value in shown.unknowns.by_name().items():
        assert float(found[each]["estimate"]) == value
        assert found[each]["error"] == "" or float(found[each]["error"]) == shown.errors[each]


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("name", AWKWARD)
def test_text_fits_a_terminal(name: str, unicode: bool) -> None:
    page = as_text(AWKWARD[name], PROVENANCE, unicode=unicode, width=90)
    assert max(map(len, page.splitlines())) <= 105
    assert page.isascii() or unicode
    assert unicode or "?" not in page
    assert "\x1b" not in page
    assert AWKWARD[name].outcome.value in " ".join(page.split())


def test_text_says_what_matters() -> None:
    shown = fit()
    page = as_text(shown, PROVENANCE)
    chance = chi2.sf(shown.objective, shown.degrees_of_freedom)
    for words in ("waves", "79 values", f"probability {chance:.3g}", "6 exact, 9 linearisations", "0.25 s"):
        assert words in page, words
    row = summary.rows(shown)[0]
    line = next(line for line in page.splitlines() if line.startswith("  p0"))
    assert f"{row.deviation:+.2f}" in line.split()
    assert line.split()[-1] == "1/s"
    strongest = summary.strongest(shown, 1)[0]
    assert f"strongest correlations: {strongest[0]} {strongest[1]} {strongest[2]:+.3f}" in page
    assert "g = 9.81" in page
    assert "log10 increment" in page


def test_without_known_sigma_there_is_no_probability() -> None:
    shown = without_sigma()
    assert np.isnan(summary.probability(shown))
    assert "probability" not in as_text(shown, {})
    assert summary.n_values(shown) == 39  # one column has weight 0, one value is missing
    assert np.isnan(summary.standardised(shown, 0, "square")).all()
    values = summary.standardised(shown, 0, "x")
    np.testing.assert_allclose(values, shown.residuals[0][:, 0] / np.sqrt(shown.beta2))


def test_the_largest_correlations_come_first() -> None:
    table = np.array([[1.0, 0.2, -0.9], [0.2, 1.0, 0.5], [-0.9, 0.5, 1.0]])
    shown = fit(n_parameters=1, unknowns=Estimates(("x", "v", "p0"), np.zeros(3), 4.0 * table))
    assert summary.strongest(shown, 2) == [("x", "p0", -0.9), ("v", "p0", 0.5)]


@pytest.mark.parametrize("name", AWKWARD)
def test_a_fit_equals_itself(name: str) -> None:
    page = compare(AWKWARD[name], AWKWARD[name], ("a.h5", "b.h5"))
    assert "identical" in page
    assert "differs" not in page
    assert page.count(" equal") >= min(len(AWKWARD[name].unknowns.names), 30)


def test_differences_are_in_combined_errors() -> None:
    first = fit()
    estimates = dataclasses.replace(first.unknowns, values=first.unknowns.values + 0.1)
    second = dataclasses.replace(first, unknowns=estimates, model="other", parameter_names=("p0",))
    page = compare(first, second, ("a.h5", "b.h5"))
    assert "identical" not in page
    assert "differs: waves | other" in page
    line = next(line for line in page.splitlines() if line.startswith("  x "))
    assert line.split()[-2] == "-0.1"
    assert float(line.split()[-1]) == pytest.approx(-0.1 / (np.sqrt(2.0) * first.errors["x"]), abs=0.006)
    assert "only in the first" in page
    assert compare(first, second, ("a", "b"), unicode=False).isascii()


def test_results_of_two_kinds_are_not_compared() -> None:
    for first, second in ((fit(), path()), (ensemble(), fit()), (path(), ensemble())):
        with pytest.raises(
            InputError, match=r"a\.h5 is an? .*, b\.h5 is an? .*; give two results of the same"
        ):
            compare(first, second, ("a.h5", "b.h5"))


def test_a_page_tells_which_phases_there_were_and_why() -> None:
    page = " ".join(as_text(fit(), {}, width=90).split())
    assert "all states observed; then weak continuity from 1, exact: the exact method stalled" in page
    assert "strategy" not in as_text(fit(strategy=()), {})


def test_constraints_are_shown_with_what_pulls_at_them() -> None:
    shown = AWKWARD["constrained"]
    text = as_text(shown, PROVENANCE)
    assert "1 exact, 1 of 2 inequalities active; held: p0 (p0 >= 0)" in " ".join(text.split())
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert rows["x@end = x@start"][-4:] == ["exact", "1.00e-14", "-2", "-4.00"]
    assert rows["p0 >= 0"][-4:] == ["active", "0.00e+00", "3", "+6.00"]
    assert rows["v@2.5 <= 1"][-2:] == ["free", "2.50e-01"]
    page = as_json(shown, PROVENANCE)
    assert page["at_bounds"] == {"p0": "p0 >= 0"}
    assert page["constraints"][1] == {  # type: ignore[index]
        "text": "p0 >= 0",
        "exact": False,
        "value": 0.0,
        "active": True,
        "multiplier": 3.0,
        "error": 0.5,
        "bounds": "p0",
        "pull": 6.0,
    }
    assert page["constraints"][2]["error"] is None  # type: ignore[index]
    assert page["history"][-1]["multipliers"] == [-2.0, 3.0, None]  # type: ignore[index]
