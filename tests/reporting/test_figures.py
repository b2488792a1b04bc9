"""Figures: what is drawn where; decimation; curves of text."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.reporting import textplot
from hpcfit.reporting.decimate import bands, envelope, kept
from hpcfit.reporting.paths import figures
from hpcfit.reporting.paths.portraits import pairs
from tests.reporting.reporting_material import failed, path, recorded


@pytest.mark.parametrize("count", [10, 5_000, 5_001, 123_457])
def test_decimation_keeps_extremes_ends_and_order(count: int) -> None:
    values = np.random.default_rng(3).standard_normal(count)
    values[count // 3], values[count // 2] = 50.0, -60.0
    times, thin = envelope(np.arange(float(count)), values)
    assert len(thin) <= 5_000
    assert (thin.max(), thin.min()) == (50.0, -60.0)
    assert (times[0], times[-1]) == (0, count - 1)
    assert (np.diff(times) > 0).all()
    np.testing.assert_array_equal(values[times.astype(int)], thin)


def test_decimation_keeps_gaps() -> None:
    values = np.sin(np.arange(50_000) / 1e3)
    values[20_000:30_000] = np.nan
    picked = kept(values)
    assert np.isnan(values[picked]).any()
    assert np.isfinite(values[picked[0]])
    assert len(kept(np.full(50_000, np.nan))) <= 5_000


def test_local_extremes_survive() -> None:
    values = np.zeros(1_000_000)
    spikes = np.arange(500, 1_000_000, 10_000)
    values[spikes] = 1.0
    assert np.isin(spikes, kept(values)).all()


def test_columns_of_time_hold_their_extremes() -> None:
    rng = np.random.default_rng(5)
    times, values = np.sort(rng.random(9_000)), rng.standard_normal(9_000)
    values[::7] = np.nan
    edges = np.linspace(0.2, 0.9, 41)
    low, high = bands(times, values, edges)
    for k in range(40):
        own = values[(times >= edges[k]) & (times < edges[k + 1])]
        assert (low[k], high[k]) == (np.nanmin(own), np.nanmax(own))


def test_a_column_without_values_is_a_gap() -> None:
    times = np.array([0.0, 0.1, 2.5, 4.0])
    low, high = bands(times, np.array([1.0, 3.0, np.nan, 5.0]), np.arange(5.0))
    np.testing.assert_array_equal(low, [1.0, np.nan, np.nan, 5.0])
    np.testing.assert_array_equal(high, [3.0, np.nan, np.nan, 5.0])


def test_a_panel_for_each_quantity() -> None:
    panels = figures.trajectories(path()).axes
    assert [axis.get_ylabel() for axis in panels] == ["x1 [rad]", "x2", "x3", "x4", "energy"]
    assert panels[-1].get_xlabel() == "t [s]"
    marks = [line.get_label() for line in figures.trajectories(recorded()).axes[0].lines]
    assert set(marks) == {"with noise", "recording", "trajectory"}


def test_many_states_are_a_few_lines_and_an_image() -> None:
    panels = figures.trajectories(path(40, observed=None, exact=None)).axes
    assert len(panels) == 4 + 1 + 1  # with the colour bar
    assert len(panels[4].collections) == 1


def test_a_failed_path_ends_at_its_failure() -> None:
    figure = figures.trajectories(failed(20))
    assert figure.axes[0].get_xlim()[1] < failed().times[21]
    assert "stopped after t = 1.9" in figure.get_suptitle()


def test_planes() -> None:
    assert pairs(4) == [(0, 1), (2, 3), (0, 2), (1, 3)]
    for n_states in range(1, 50):
        assert all(i < n_states and j < n_states for i, j in pairs(n_states))
    portrait = figures.phase_portraits(path(2), points=True).axes[0]
    assert all(line.get_linestyle() == "None" for line in portrait.lines)
    assert any(line.get_linestyle() == "-" for line in figures.phase_portraits(path(2)).axes[0].lines)
    assert len(figures.phase_portraits(path(3)).axes) == 4


def test_sensitivities_and_invariant() -> None:
    panels = figures.sensitivities(path()).axes
    assert [axis.get_yscale() for axis in panels] == ["log", "log"]
    assert [text.get_text().strip() for text in panels[1].get_legend().get_texts()] == ["p0", "p1", "p2"]
    shown = path()
    assert shown.by_start is not None
    norm = np.linalg.norm(shown.by_start[:, :, 1], axis=1)
    np.testing.assert_allclose(panels[0].lines[1].get_ydata(), norm, rtol=1e-14)
    assert not figures.sensitivities(path(by_start=None, by_parameters=None)).axes
    assert not figures.invariant(path(invariant=None)).axes


def test_curves_of_text() -> None:
    times = np.arange(8.0)
    assert textplot.curve(times, times, 4, unicode=True) == ["⣀⠤⠒⠉"]
    assert textplot.curve(times[:6], times[:6], 6, unicode=False) == ["..--''"]
    assert textplot.curve(times, np.full(8, np.nan), 4, unicode=True) == ["    "]
    assert textplot.curve(times[:1], times[:1], 3, unicode=True)[0].strip()
    rows = textplot.curve(times, np.where(times < 4, times, np.nan), 10, unicode=True, height=2)
    assert [len(row) for row in rows] == [10, 10]
    assert not rows[0][6:].strip()
