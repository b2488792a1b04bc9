"""Figures and pages of spectra: what is drawn where; self-contained and escaped."""

from __future__ import annotations

from pathlib import Path as File

import numpy as np
import pytest

from hpcfit.reporting import page
from hpcfit.reporting.spectra import convergence, section_figure, spectrum_figure, stretches
from hpcfit.reporting.spectra import page as spectrum_page
from hpcfit.reporting.spectra.draws_figure import draws_figure
from hpcfit.reporting.spectra.sweep import sweep, sweep_map
from tests.reporting.reporting_material import JOB, PROVENANCE
from tests.reporting.spectrum_material import AWKWARD, hamiltonian, spectrum
from tests.reporting.test_fit_pages import check
from tests.reporting.test_page import Reader

OTHERWISE_TESTED = {"usual", "hamiltonian", "equilibrium", "huge", "map", "tiny"}  # pages cost a second


@pytest.mark.parametrize("name", [name for name in AWKWARD if name not in OTHERWISE_TESTED])
def test_pages_of_awkward_spectra(name: str) -> None:
    text = page.html(AWKWARD[name], PROVENANCE, JOB, "a title")
    check(text)


@pytest.mark.parametrize("name", ["map", "hostile", "missing", "equilibrium", "huge"])
def test_pdf_and_png_of_awkward_spectra(name: str, tmp_path: File) -> None:
    for suffix, magic in ((".pdf", b"%PDF"), (".png", b"\x89PNG")):
        target = tmp_path / f"page{suffix}"
        page.write_report(AWKWARD[name], PROVENANCE, JOB, "a title", target, suffix)
        assert target.read_bytes().startswith(magic)


def test_the_page_has_what_the_figures_show() -> None:
    read = Reader(page.html(hamiltonian(), PROVENANCE, JOB, "a title")).text
    for words in (
        "Exponents",
        "Diagnostics",
        "Trajectories",
        "pairing",
        "the orbit sticks: <often>.",
        "Parameters",
    ):
        assert words in read
    captions = [caption for caption, _ in spectrum_page.figures(hamiltonian())]
    assert ["permits" in text for text in captions].count(True) == 1
    assert any("mirror images" in text for text in captions)
    assert any("Regular trajectories" in text for text in captions)


def test_bands_are_drawn_around_running_exponents() -> None:
    shown = spectrum()
    assert shown.history is not None
    assert shown.half_widths is not None
    first, last, zeros = convergence.convergence(shown).axes
    assert [axis.get_ylabel() for axis in (first, last)] == ["λ1", "λ3"]
    np.testing.assert_array_equal(first.lines[-1].get_ydata(), shown.history.exponents[:, 0])
    band = first.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(
        (shown.history.exponents + shown.history.half_widths)[:, 0].max()
    )
    low, high = first.get_ylim()
    assert low < 0.9 - 0.0189
    assert high > 0.9 + 0.0189
    assert first.get_xscale() == zeros.get_yscale() == "log"
    assert {line.get_label() for line in zeros.lines} == {"|λ2|", "ln t / t"}
    assert "0.90000 ± 0.019" in [text.get_text() for text in first.texts]


def test_of_pairs_the_first_half_is_drawn() -> None:
    assert [axis.get_ylabel() for axis in convergence.convergence(hamiltonian()).axes] == [
        "λ1",
        "exponents that vanish",
    ]


def test_the_dimension_is_where_the_sums_pass_zero() -> None:
    left, right = spectrum_figure.spectrum_figure(spectrum()).axes
    sums, mark = right.lines[1].get_ydata(), right.lines[2]
    np.testing.assert_allclose(sums, [0.0, 0.9, 0.9, -13.7])
    assert mark.get_xdata() == [2.0621]
    assert "D = 2.062100 ± 0.00078" in right.get_title(loc="right")
    assert len(left.containers) == 3


def test_sections_hold_points_and_border() -> None:
    axis = section_figure.section_figure(hamiltonian()).axes[0]
    assert [len(line.get_xdata()) for line in axis.lines] == [250, 250, 101]
    assert axis.get_title(loc="left") == "500 points at x1 = 0, rising"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("x2", "x4")


def test_stretches_are_lines_for_few_trajectories_and_colours_for_many() -> None:
    few = stretches.stretches(spectrum())
    assert len(few.axes) == 1
    assert len(few.axes[0].patches) == 3
    total = few.axes[0].patches[0].get_data()
    assert (total.values * np.diff(total.edges)).sum() == pytest.approx(spectrum().growth[0, :, 0].sum())
    many = stretches.stretches(AWKWARD["200 trajectories"])
    assert many.axes[0].collections[0].get_array().shape == (165, 120)


def test_regular_trajectories_are_drawn_with_their_law() -> None:
    axis = stretches.regular_figure(hamiltonian()).axes[0]
    assert len(axis.lines) == 1 + 1
    assert axis.lines[0].get_ydata()[-1] == pytest.approx(np.log(201.0) / 500.0)


def test_draws_are_drawn_beside_the_estimate() -> None:
    first, last = draws_figure(AWKWARD["drawn"]).axes
    assert [axis.get_title(loc="left") for axis in (first, last)] == ["λ1", "λ3"]
    points = first.containers[0].lines[0]
    assert len(points.get_xdata()) == 3
    assert (np.diff(points.get_ydata()) >= 0.0).all()


def test_sweeps_show_exponents_and_what_changes_with_them() -> None:
    values = np.array([30.0, 24.0, 26.0])
    exponents = np.array([[1.0, 0.0, -14.0], [0.8, 0.0, -14.2], [0.9, 0.0, -14.1]])
    half = 0.01 * np.ones((3, 3))
    figure = sweep("r", values, exponents, half, np.array([2.07, 2.05, 2.06]), np.full(3, 0.001))
    upper, lower = figure.axes
    assert upper.get_title(loc="right") == "λ3 below the picture"
    assert [text.get_text() for text in upper.get_legend().get_texts()] == ["λ1", "λ2"]
    np.testing.assert_array_equal(upper.lines[1].get_xdata(), [24.0, 26.0, 30.0])
    np.testing.assert_array_equal(upper.lines[1].get_ydata(), [0.8, 0.9, 1.0])
    assert (lower.get_ylabel(), lower.get_xlabel()) == ("dimension", "r")
    conservative = sweep(
        "E", values, exponents, half, np.full(3, 4.0), np.zeros(3), np.array([0.1, 0.9, 0.5])
    )
    assert [axis.get_ylabel() for axis in conservative.axes] == ["exponents", "regular, %"]


def test_sweeps_with_missing_points_and_many_exponents() -> None:
    exponents = np.full((5, 40), np.nan)
    exponents[1:3] = np.linspace(1.0, -4.0, 40)
    nothing = np.full(5, np.nan)
    figure = sweep("$f_{", np.arange(5.0), exponents, 0.1 * np.abs(exponents), nothing, nothing)
    assert len(figure.axes) == 1


def test_maps_of_two_keys() -> None:
    heights = np.arange(6.0).reshape(2, 3) - 2.0
    heights[1, 1] = np.nan
    axis, bar = sweep_map(("sigma", "r"), np.array([1.0, 2.0, 4.0]), np.array([0.5, 1.5]), heights, "λ1").axes
    cells = axis.collections[0]
    assert cells.get_array().mask.sum() == 1
    assert cells.get_clim() == (-3.0, 3.0)
    np.testing.assert_array_equal(cells.get_coordinates()[0, :, 0], [0.5, 1.5, 3.0, 5.0])
    assert bar.get_ylabel() == "λ1"
    assert sweep_map(("a", "b"), np.ones(1), np.ones(1), np.full((1, 1), np.nan), "D").axes
