"""Figures and pages of fits and ensembles: what is drawn where; self-contained and escaped."""

from __future__ import annotations

import re
from pathlib import Path as File

import numpy as np
import pytest

from hpcfit.records import FitResult
from hpcfit.reporting import page
from hpcfit.reporting.ensembles import figures as ensemble_figures
from hpcfit.reporting.ensembles.chi_square_figure import chi_square
from hpcfit.reporting.fits import convergence, residuals, stretches, trajectories
from hpcfit.reporting.fits import page as fit_page
from tests.reporting.fit_material import AWKWARD, ENSEMBLES, ensemble, fit, hostile, stopped
from tests.reporting.reporting_material import JOB, PROVENANCE
from tests.reporting.test_page import Reader


def lines_of(axis: object) -> dict[str, object]:
    return {line.get_label(): line for line in axis.lines}  # type: ignore[attr-defined]


def test_a_panel_for_each_state_and_quantity() -> None:
    panels = trajectories.trajectories(fit()).axes
    assert [axis.get_ylabel() for axis in panels] == ["x [m]", "v [m/s]\nhidden", "square"]
    assert panels[-1].get_xlabel() == "t [s]"
    assert {"initial trajectory", "fitted trajectory"} <= set(lines_of(panels[0]))
    assert len(panels[0].containers) == 1  # data with bars
    assert not panels[1].containers
    assert len(panels[0].collections) == 1 + 1  # band and bars


def test_axes_hold_data_and_fit_but_not_all_of_the_initial_trajectory() -> None:
    shown = fit()
    wild = shown.initial.states * 1e6
    panels = trajectories.trajectories(fit(initial=type(shown.initial)(shown.initial.times, wild))).axes
    low, high = panels[0].get_ylim()
    assert -2.0 < low < np.nanmin(shown.experiments[0].values[:, 0])
    assert np.nanmax(shown.experiments[0].values[:, 0]) < high < 2.0
    assert "cut off" in fit_page.figures(shown)[0][0]


def test_the_initial_trajectory_is_discontinuous_and_the_final_one_is_not() -> None:
    drawn = lines_of(trajectories.trajectories(fit()).axes[0])
    assert np.isnan(drawn["initial trajectory"].get_ydata()).sum() == 39  # type: ignore[attr-defined]
    assert np.isfinite(drawn["fitted trajectory"].get_ydata()).all()  # type: ignore[attr-defined]


def test_each_experiment_has_its_own_pieces() -> None:
    shown = fit(n_experiments=2)
    shown.final.states[39:] += 7.0
    for experiment, least in ((0, -2.0), (1, 5.0)):
        line = lines_of(trajectories.trajectories(shown, experiment).axes[1])["fitted trajectory"]
        assert (line.get_ydata() > least).all()  # type: ignore[attr-defined]
        assert (line.get_ydata() < least + 4.0).all()  # type: ignore[attr-defined]


def test_a_long_series_is_seen_from_near_and_as_a_whole() -> None:
    shown = fit(3_000)
    captions = [caption for caption, _ in fit_page.figures(shown)]
    assert captions[0].startswith("The first 120 of 3,000 data times")
    assert captions[1].startswith("Around the largest residuals (rings), 51 data times each")
    assert captions[2].startswith("All 3,000 data times: data and fitted")
    near = trajectories.trajectories(shown, stretch=stretches.begin(shown, 0)).axes[0]
    assert near.get_xlim()[1] < shown.experiments[0].times[125]
    whole = trajectories.trajectories(shown).axes[0]
    assert all(len(line.get_xdata()) <= 5_000 for line in whole.lines)
    assert "initial trajectory" not in lines_of(whole)


def test_many_states_are_a_few_panels() -> None:
    names = tuple(f"s{k}" for k in range(40))
    shown = fit()
    many = np.repeat(shown.final.states[..., :1], 40, axis=2)
    wide = fit(
        state_names=names,
        nodes=np.zeros((40, 40)),
        node_errors=np.zeros((40, 40)),
        final=type(shown.final)(shown.final.times, many),
        initial=type(shown.final)(shown.final.times, many),
    )
    assert len(trajectories.trajectories(wide).axes) <= trajectories.MOST_PANELS
    assert "quantities are shown" in fit_page.figures(wide)[0][0]


def test_residuals_and_their_histogram() -> None:
    shown = fit()
    axes = residuals.residuals(shown).axes
    assert [axis.get_ylabel() for axis in axes[:2]] == ["x", "square"]
    assert "79 residuals" in axes[-1].get_title(loc="left")
    drawn = axes[0].lines[-1].get_ydata()
    np.testing.assert_array_equal(drawn, shown.residuals[0][:, 0])
    counts, edges, _ = axes[-1].patches[0].get_data()
    assert (counts * np.diff(edges)).sum() == pytest.approx(1.0)


def test_convergence_marks_the_phases() -> None:
    axis = convergence.convergence(fit()).axes[0]
    assert [text.get_text() for text in axis.texts] == ["presolve", "weak", "exact"]
    assert axis.get_yscale() == "log"
    np.testing.assert_allclose(lines_of(axis)["increment"].get_ydata()[0], 10.0)  # type: ignore[attr-defined]
    np.testing.assert_allclose(lines_of(axis)["defect"].get_ydata()[3], 1e-3)  # type: ignore[attr-defined]


def test_correlations_are_a_picture() -> None:
    axis = convergence.correlations(fit()).axes[0]
    np.testing.assert_allclose(axis.images[0].get_array(), fit().unknowns.correlations)
    assert len(axis.texts) == 4 * 3
    assert not convergence.correlations(fit(n_parameters=30)).axes[0].texts


def test_ensembles_show_deviations_or_estimates() -> None:
    known, unknown = (ensemble_figures.estimates(ENSEMBLES[name]) for name in ("usual", "without truth"))
    assert [axis.get_xlabel() for axis in known.axes] == ["(estimate − truth) / error"] * 2
    assert [axis.get_xlabel() for axis in unknown.axes] == ["estimate"] * 2
    axis = chi_square(ensemble()).axes[0]
    assert "93 degrees of freedom" in axis.get_title(loc="left")
    x, density = axis.lines[0].get_data()
    assert density.sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=0.01)
    assert axis.get_ylim()[1] < 2.0 * density.max()


@pytest.mark.parametrize("name", ["stopped", "without sigma", "two times", "30 parameters", "no history"])
def test_pages_of_awkward_fits(name: str) -> None:
    check(page.html(AWKWARD[name], PROVENANCE, JOB, "a title"))


def test_page_of_an_ensemble_without_a_converged_member() -> None:
    text = page.html(ENSEMBLES["none converged"], PROVENANCE, JOB, "a title")
    check(text)
    assert 'class="badge bad"' in text
    assert "0 of 4 converged" in text


def test_page_of_an_ensemble() -> None:
    text = page.html(ensemble(failed=0), PROVENANCE, JOB, "a title")
    check(text)
    assert text.count("<img") == 4
    assert "200 of 200 converged" in text


def test_page_of_a_usual_fit_has_it_all() -> None:
    text = page.html(fit(truth={"p0": 0.1}), PROVENANCE, JOB, "a title")
    check(text)
    read = Reader(text)
    assert text.count("<img") == 4
    assert text.index("Parameters") < text.index("<img")
    for words in ("converged", "joint", "truth", "Strongest correlations", "Fixed parameters", "9.81"):
        assert words in read.text


def test_what_a_user_wrote_is_escaped() -> None:
    text = page.html(hostile(), {"<k>": "<v>"}, JOB, "<title> & more")
    check(text)
    assert "<script" not in text
    assert not {"b", "i", "k", "v"} & set(Reader(text).tags)


@pytest.mark.parametrize("shown", [stopped(), fit(3_000), ensemble(50)], ids=["stopped", "long", "ensemble"])
def test_pdf_and_png(shown: FitResult, tmp_path: File) -> None:
    for suffix, magic in ((".pdf", b"%PDF"), (".png", b"\x89PNG")):
        page.write_report(shown, PROVENANCE, JOB, "title", tmp_path / "part", suffix)
        assert (tmp_path / "part").read_bytes().startswith(magic)


def check(text: str) -> None:
    """Nothing is fetched or run, and the page is small."""
    read = Reader(text)
    assert "script" not in read.tags
    assert all((value or "").startswith("data:image/") for name, value in read.attributes if name == "src")
    assert not {"href", "srcset", "style", "onload"} & {name for name, _ in read.attributes}
    assert not re.search(r"url\(|@import", text)
    assert len(text) < 3_000_000
