"""Pages and figures of ensembles: what is shown and drawn where."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hpcfit.records import EnsembleResult, Outcome
from hpcfit.reporting import page
from hpcfit.reporting.ensembles import chi_square, coverage_figure, summary
from hpcfit.reporting.ensembles import chi_square_figure as pictures
from hpcfit.reporting.ensembles import page as ensemble_page
from hpcfit.reporting.layout import plain
from hpcfit.reporting.tables import as_json, as_text, compare
from tests.reporting.fit_material import ENSEMBLES, ensemble
from tests.reporting.reporting_material import JOB
from tests.reporting.test_fit_pages import check
from tests.reporting.test_page import Reader

PROVENANCE = {"job_file": "jobs/waves & more.toml", "overrides": ["fit.level=T1"]}
COMMAND = "hpcfit run 'jobs/waves & more.toml' --set fit.level=T1 --member "


def off(n_members: int = 400) -> EnsembleResult:
    """The errors of p1 are half of what they should be; one converged member is suspicious."""
    shown = ensemble(n_members)
    shown.errors[:, 2] *= 0.5
    shown.objective[17] = 1e3
    return shown


def many(n_members: int, n_unknowns: int) -> EnsembleResult:
    rng = np.random.default_rng(6)
    names = tuple(f"p{k}" for k in range(n_unknowns))
    return ensemble(
        n_members,
        failed=0,
        names=names,
        parameter_names=names,
        truth=dict.fromkeys(names, 0.0),
        estimates=rng.standard_normal((n_members, n_unknowns)),
        errors=np.ones((n_members, n_unknowns)),
    )


def test_text_shows_ratios_bands_marks_and_commands() -> None:
    text = as_text(off(), PROVENANCE)
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
    rows = {row.name: row for row in summary.rows(off())}
    assert f"{rows['p0'].ratio:.3f} ± 0.036" in text
    assert lines["p1"].count("!") == 4
    assert lines["p0"].count("!") == 0
    band = [each.part(count) for each in rows["p0"].coverages for count in (each.low, each.high)]
    assert [float(word) for word in lines["band"].split()[1:] if word != "–"] == pytest.approx(
        100.0 * np.array(band), abs=0.05
    )
    assert lines["but"].split()[-1] == "1"
    assert all(COMMAND + str(member) in text.splitlines() for member in range(5))
    assert "p1 off by" in text


def test_short_commands_stand_beside_their_members() -> None:
    line = next(line for line in as_text(off(), {"job_file": "s.toml"}).splitlines() if "--member 3" in line)
    assert line.split()[0] == "3"
    assert line.endswith("hpcfit run s.toml --member 3")


def test_ascii_has_the_same_columns() -> None:
    text = as_text(off(), PROVENANCE)
    assert [len(line) for line in plain(text).splitlines()] == [len(line) for line in text.splitlines()]
    assert "+-0.036" in as_text(off(), PROVENANCE, unicode=False)


def test_json_has_all_statistics() -> None:
    found = json.loads(json.dumps(as_json(off(), PROVENANCE), allow_nan=False))
    assert found["chi_square"]["implausible"] == 1
    assert found["chi_square"]["members"] == 395
    assert set(found["chi_square"]["kolmogorov_smirnov"]) == {"distance", "probability"}
    covered = found["parameters"]["p1"]["coverage"]
    assert list(covered) == ["50", "90", "95", "99"]
    assert covered["95"]["outside"] is True
    assert covered["95"]["observed"] == found["parameters"]["p1"]["coverage95"]
    assert covered["95"]["low"] < 0.95 < covered["95"]["high"]
    assert found["parameters"]["p1"]["ratio"] == pytest.approx(2.0, abs=0.2)
    assert found["worst"][0] == {
        "member": 0,
        "outcome": "STALLED",
        "measure": "beta^2",
        "unknown": None,
        "command": COMMAND + "0",
        "value": off().objective[0] / 93,
    }
    assert found["worst"][5]["unknown"] == "p1"
    assert "coverage" not in as_json(ENSEMBLES["without truth"], {})["parameters"]["p0"]  # type: ignore[index]


def test_comparison_shows_outcomes_ratios_and_coverage() -> None:
    text = compare(ensemble(400), off(), ("a", "b"))
    reasons = next(line for line in text.splitlines() if line.startswith("no descent"))
    assert reasons.split()[-2:] == ["5", "5"]
    quality = [line for line in text.splitlines() if line.startswith("p1")][1]
    assert quality.count("±") == 2
    assert quality.count("!") == 1
    failed = ensemble(400, outcomes=(Outcome.NOT_INTEGRABLE,) * 400)
    ends = [line.split() for line in compare(off(), failed, ("a", "b")).splitlines() if "integrated" in line]
    assert ends[0][-2:] == ["0", "400"]


def test_coverage_is_drawn_with_its_bands() -> None:
    rows = coverage_figure.shown_rows(off())
    panels = coverage_figure.coverage(rows).axes
    assert [axis.get_title(loc="left") for axis in panels] == [f"{n} % intervals" for n in (50, 90, 95, 99)]
    assert [text.get_text() for text in panels[0].get_yticklabels()] == ["p0", "p1", "x"]
    for k, axis in enumerate(panels):
        found = [row.coverages[k] for row in rows]
        high, _, low = axis.patches[0].get_data()
        np.testing.assert_allclose(high, [100.0 * (each.part(each.high) - each.level) for each in found])
        np.testing.assert_allclose(low, [100.0 * (each.part(each.low) - each.level) for each in found])
        points = axis.lines[1]  # inside; then outside, beyond on the left, beyond on the right
        np.testing.assert_allclose(
            points.get_xdata(), [100.0 * (each.observed - each.level) for each in found if not each.outside]
        )
        np.testing.assert_array_equal(points.get_ydata(), [0, 2])
        assert sum(len(line.get_xdata()) for line in axis.lines[2:]) == 1  # p1


def test_probabilities_are_drawn_against_the_diagonal() -> None:
    shown = ensemble(2_000, failed=0)
    _, upper, lower = pictures.chi_square(shown).axes
    test = chi_square.chi_square_test(shown)
    x, part = upper.lines[-1].get_data()
    assert (x[0], part[0], x[-1], part[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert (np.diff(x) >= 0.0).all()
    assert (np.diff(part) >= 0.0).all()
    distance = lower.lines[-1].get_ydata()
    assert np.abs(distance).max() == pytest.approx(test.distance)
    assert f"probability {test.probability:.3g}" in upper.get_title(loc="left")
    band = chi_square.distance_band(2_000)
    assert lower.patches[0].get_extents().transformed(lower.transData.inverted()).y1 == pytest.approx(band)


def test_the_density_is_left_out_where_it_has_no_place() -> None:
    axis = pictures.chi_square(ENSEMBLES["sigma not known"]).axes[0]
    assert not axis.lines
    assert "far from" in axis.get_title(loc="left")
    counts, edges, _ = axis.patches[0].get_data()
    assert (counts * np.diff(edges)).sum() > 0.9


def test_large_ensembles_are_drawn_with_few_points() -> None:
    shown = many(200_000, 6)
    figure = pictures.chi_square(shown)
    assert all(len(line.get_xdata()) <= 5_000 for axis in figure.axes for line in axis.lines)
    distance = np.abs(figure.axes[2].lines[-1].get_ydata()).max()
    assert distance == pytest.approx(chi_square.chi_square_test(shown).distance)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_pages_of_awkward_ensembles(name: str) -> None:
    text = page.html(ENSEMBLES[name], PROVENANCE, JOB, "a title")
    check(text)
    assert ("Coverage, per cent" in text) == (name in ("usual", "one member", "sigma not known"))
    assert page._PAGES[EnsembleResult].overview(ENSEMBLES[name], "title").axes


def test_page_has_all_statistics() -> None:
    read = Reader(page.html(off(), PROVENANCE, JOB, "a title")).text
    for words in ("Outcomes", "Coverage, per cent", "band", "Worst members", "but chi-square", "1 ±"):
        assert words in read
    assert COMMAND + "0" in read
    assert "cut off" in ensemble_page.figures(off())[-1][0]


def test_many_unknowns_are_a_page() -> None:
    shown = many(50, 300)
    assert len(coverage_figure.shown_rows(shown)) == 40
    captions = [caption for caption, _ in ensemble_page.figures(shown)]
    assert any("40 of 300 unknowns are shown" in caption for caption in captions)
    assert len(as_text(shown, {}).splitlines()) < 140
