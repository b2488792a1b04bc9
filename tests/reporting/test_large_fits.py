"""Pages and tables of fits with very many points or experiments: what they show, their size, their time."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time

import numpy as np
import pytest

from hpcfit.records import Pieces, Stretch
from hpcfit.reporting import page
from hpcfit.reporting.fits import density, residuals, selection, stretches, summary, trajectories
from hpcfit.reporting.fits import page as fit_page
from hpcfit.reporting.tables import as_csv, as_json, as_text
from tests.reporting.fit_material import fit, many_experiments, with_outliers
from tests.reporting.reporting_material import JOB, PROVENANCE
from tests.reporting.test_fit_pages import check, lines_of


def test_the_worst_stretches_hold_the_largest_residuals() -> None:
    found = stretches.worst(with_outliers(2_000, (5, 900, 1_998)), 0)
    assert [place for place, _ in found] == [1_998, 900, 5]
    assert [(each.first, each.last) for _, each in found] == [(1_949, 1_999), (875, 925), (0, 50)]


def test_large_residuals_side_by_side_are_one_stretch() -> None:
    found = stretches.worst(with_outliers(2_000, (900, 905, 910)), 0)
    assert found[0][0] == 910
    assert all(abs(place - 910) > 2 * stretches.AROUND for place, _ in found[1:])


def test_a_ring_marks_the_largest_residual() -> None:
    shown = with_outliers(2_000, (900,))
    figure = trajectories.worst(shown, 0)
    assert len(figure.axes) == 3 * 3  # x, v and square around three residuals
    assert figure.axes[0].get_title(loc="left") == "x: +20.0 sigma at t = 90"
    ring = figure.axes[0].lines[-1]
    (series,) = shown.experiments
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (series.times[900], series.values[900, 0])
    low, high = figure.axes[0].get_xlim()
    assert low < series.times[875] < series.times[925] < high


def test_a_very_long_series_is_a_band() -> None:
    shown = fit(20_000)
    panels = trajectories.trajectories(shown).axes
    assert not any(axis.lines for axis in panels)
    assert [len(axis.collections) for axis in panels] == [2, 1, 2]  # data and fit; v is hidden
    outline = panels[0].collections[0].get_paths()[0].vertices
    assert len(outline) < 6 * trajectories.COLUMNS
    values = shown.experiments[0].values[:, 0]
    assert (outline[:, 1].min(), outline[:, 1].max()) == (np.nanmin(values), np.nanmax(values))


def test_many_residuals_are_a_density_with_the_outliers_on_it() -> None:
    shown = with_outliers(20_000, (5, 900))
    axes = residuals.residuals(shown).axes
    shares = np.asarray(axes[0].images[0].get_array())
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    assert {20.0, -21.0} <= set(axes[0].lines[-1].get_ydata())
    low, high = axes[1].get_ylim()
    assert low < -21.0 < 21.0 < high


def test_density_counts_every_value_once() -> None:
    rng = np.random.default_rng(6)
    times, values = np.linspace(0.0, 1.0, 8_000), rng.standard_normal(8_000)
    values[100:200] = np.nan
    shares = density.density(times, values, (0.0, 1.0, -5.0, 5.0), (61, 70))
    known, across = np.isfinite(values), np.linspace(0.0, 1.0, 71)
    counts = np.histogram(times[known], across)[0]
    inside = np.histogram2d(values[known], times[known], [np.linspace(-5.0, 5.0, 62), across])[0]
    np.testing.assert_allclose(shares * counts, inside, atol=1e-9)


def test_pieces_of_some_intervals_are_drawn_where_they_are() -> None:
    """Between other nodes the fitted path is a line from node to node."""
    shown = fit(2_000)
    nodes = np.arange(300, 340)
    some = Pieces(shown.final.times[nodes], shown.final.states[nodes], nodes)
    shown = dataclasses.replace(shown, final=some, initial=some)
    near, far = (
        lines_of(trajectories.trajectories(shown, stretch=Stretch(0, first, first + 20)).axes[0])
        for first in (310, 700)
    )
    assert len(near["fitted trajectory"].get_xdata()) == 5 * 20  # type: ignore[attr-defined]
    assert len(near["initial trajectory"].get_xdata()) == 6 * 20  # type: ignore[attr-defined]
    np.testing.assert_array_equal(
        far["fitted trajectory"].get_ydata(),  # type: ignore[attr-defined]
        shown.nodes[700:721, 0],
    )
    assert len(far["initial trajectory"].get_xdata()) == 0  # type: ignore[attr-defined]
    assert np.isnan(summary.first_states(shown)).all()
    check(page.html(shown, PROVENANCE, JOB, "a title"))


def test_many_experiments_are_the_first_and_the_worst() -> None:
    shown = many_experiments()
    text = as_text(shown, PROVENANCE)
    assert len(text.splitlines()) < 90
    assert "1,988 initial states of 994 experiments are left out" in text
    names = {line.split()[0] for line in text.splitlines() if line.startswith("  ")}
    assert {"p0", "p1", "x", "v", "x@3", "v@3", "x@617", "energy"} <= names
    assert "x@4" not in names or "x@4" in text.split("worst")[1]
    captions = [caption for caption, _ in fit_page.figures(shown)]
    assert captions[2].startswith("Experiment 617 of 1,000, among the worst. ")
    assert captions[-1] == "Correlations of the estimates. 200 of 2,002 unknowns are shown."


def test_json_and_csv_hold_all_experiments() -> None:
    shown = many_experiments()
    content = json.dumps(as_json(shown, PROVENANCE))
    assert len(content) < 2_000_000
    read = json.loads(content)
    assert len(read["initial_states"]) == 2_000
    assert read["initial_states"]["v@1000"]["estimate"] == shown.unknowns.by_name()["v@1000"]
    assert read["correlations"]["names"] == ["p0", "p1"]
    rows = list(csv.reader(io.StringIO(as_csv(shown))))
    assert len(rows) == 1 + 2_002 + 1


def test_page_of_many_experiments() -> None:
    clock = time.perf_counter()
    text = page.html(many_experiments(), PROVENANCE, JOB, "a title")
    assert time.perf_counter() - clock < 20.0
    check(text)
    assert "left out" in text
    assert text.count("<img") == 4 + 3
    assert text.count("<tr>") < 100


def test_few_experiments_are_all_shown() -> None:
    shown = fit(n_experiments=4)
    assert not selection.left_out(shown)
    assert not selection.digests(shown)
    assert len([caption for caption, _ in fit_page.figures(shown) if "Experiment" in caption]) == 4


@pytest.mark.slow
def test_a_million_points() -> None:
    """No table of nodes, a page of less than 3 MB in less than 20 s, text in less than 3."""
    shown = fit(1_000_000)
    clock = time.perf_counter()
    text = as_text(shown, PROVENANCE)
    spent = time.perf_counter() - clock
    assert len(text.splitlines()) < 70
    assert "Standard errors of the states at 1,000,000 nodes" in text
    assert spent < 3.0
    clock = time.perf_counter()
    check(page.html(shown, PROVENANCE, JOB, "a title"))
    assert time.perf_counter() - clock < 20.0
