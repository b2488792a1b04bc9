"""Statistics of ensembles against numbers that can be worked out by hand."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from hpcfit.records import Outcome
from hpcfit.reporting.ensembles import summary
from hpcfit.reporting.ensembles.chi_square import probabilities
from hpcfit.reporting.ensembles.members import outcomes
from hpcfit.reporting.tables import as_csv, as_json, as_text, compare
from tests.reporting.fit_material import ENSEMBLES, ensemble
from tests.reporting.reporting_material import PROVENANCE


def test_statistics_of_four_members() -> None:
    four = ensemble(
        4,
        failed=0,
        names=("p0",),
        parameter_names=("p0",),
        estimates=np.array([[1.0], [2.0], [3.0], [10.0]]),
        errors=np.array([[1.0], [1.0], [0.1], [2.0]]),
        degrees_of_freedom=np.full(4, 10),  # quantile 2.228
        truth={"p0": 2.0},
        outcomes=(Outcome.CONVERGED,) * 3 + (Outcome.STALLED,),
    )
    (row,) = summary.rows(four)
    assert (row.mean, row.spread) == (2.0, 1.0)
    assert row.error == pytest.approx(0.7)
    assert row.bias == 0.0
    assert row.coverage95 == pytest.approx(2 / 3)
    assert row.ratio == pytest.approx(1.0 / np.sqrt(2.01 / 3))
    assert row.chance == pytest.approx(0.5)
    assert outcomes(four) == {Outcome.CONVERGED: 3, Outcome.STALLED: 1}


def test_bias_is_in_standard_errors_of_the_mean() -> None:
    shown = ensemble(truth={"p0": 0.1, "p1": -1.0})
    rows = {row.name: row for row in summary.rows(shown)}
    assert abs(rows["p0"].bias) < 4.0
    assert rows["p1"].bias == pytest.approx((rows["p1"].mean + 1.0) / (rows["p1"].spread / np.sqrt(195)))
    assert rows["p0"].coverage95 > 0.88
    assert rows["p1"].coverage95 < 0.2
    assert rows["x"].coverages == ()
    assert np.isnan(rows["x"].coverage95)
    assert rows["p0"].ratio == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_json_is_strict(name: str) -> None:
    page = as_json(ENSEMBLES[name], PROVENANCE)
    assert json.loads(json.dumps(page, allow_nan=False)) == page
    assert page["kind"] == "ensemble"
    assert sum(page["outcomes"].values()) == page["members"]  # type: ignore[attr-defined]
    assert list(page["parameters"]) == ["p0", "p1"]  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_csv_has_one_row_a_member_and_all_digits(name: str) -> None:
    shown = ENSEMBLES[name]
    rows = list(csv.DictReader(io.StringIO(as_csv(shown))))
    assert [int(row["member"]) for row in rows] == shown.members.tolist()
    assert [row["outcome"] for row in rows] == [outcome.name for outcome in shown.outcomes]
    back = np.array([float(row["p1_error"] or "nan") for row in rows])
    np.testing.assert_array_equal(back, shown.errors[:, 2])
    objective = np.array([float(row["objective"] or "nan") for row in rows])
    np.testing.assert_array_equal(objective, shown.objective)
    chances = np.array([float(row["chi_square_probability"] or "nan") for row in rows])
    np.testing.assert_array_equal(chances, probabilities(shown))


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("name", ENSEMBLES)
def test_text_fits_a_terminal(name: str, unicode: bool) -> None:
    page = as_text(ENSEMBLES[name], PROVENANCE, unicode=unicode)
    assert max(map(len, page.splitlines())) <= 105
    assert page.isascii() or unicode
    assert "outcome" in page


@pytest.mark.parametrize("name", ENSEMBLES)
def test_an_ensemble_equals_itself(name: str) -> None:
    page = compare(ENSEMBLES[name], ENSEMBLES[name], ("a", "b"))
    assert "identical" in page
    assert "differs" not in page
    assert page.count(" equal") == 3


def test_means_are_compared_by_their_standard_errors() -> None:
    first = ensemble()
    second = ensemble(estimates=first.estimates + 0.01)
    line = next(line for line in compare(first, second, ("a", "b")).splitlines() if line.startswith("p0"))
    assert line.split()[-2] == "-0.01"
    spread = np.nanstd(first.estimates[:, 1], ddof=1)
    assert float(line.split()[-1]) == pytest.approx(-0.01 / (spread * np.sqrt(2 / 195)), abs=0.006)
