"""Ensembles over a grid: statistics of cells, tables, pictures, costs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcfit.files.results import Saved, load, save
from hpcfit.records import EnsembleResult, Outcome
from hpcfit.reporting import tables
from hpcfit.reporting.page import html, write_report
from hpcfit.reporting.sweeps import cells, costs, curves, maps
from hpcfit.reporting.sweeps.groups import by_cell, by_keys, cell_values, chosen_keys, grouped

GRID: dict[str, list[Any]] = {
    "guess.a": [1, 10, 100],
    "truth.noise.sd": [0.1, 1.0],
    "fit.level": ["natural", "T1"],
}
REALISATIONS = 50
CAMPAIGN = {
    "name": "s18",
    "created": "2026-11-18T20:00:00+00:00",
    "finished": "2026-11-18T21:00:00+00:00",
    "members": 600,
    "planned": 700,
    "tasks": 7,
    "ranks": 2,
    "attempts": 9,
    "left_early": 1,
    "core_hours": 0.5,
    "bytes": 60_000,
    "hosts": ["n1", "<n2>"],
}


def sweep(seed: int = 1) -> EnsembleResult:
    """Estimates with the noise of their cell; those of the third guess fail often, T1 is biased by one sd."""
    rng = np.random.default_rng(seed)
    members = np.arange(1, 12 * REALISATIONS + 1)
    cell = (members - 1) % 12
    a, sd, level = cell // 4, np.array([0.1, 1.0])[cell // 2 % 2], cell % 2
    truth = np.array([2.0, 3.0])[level]
    draws = rng.standard_normal((len(members), 2))
    errors = np.stack([sd, 2.0 * sd], axis=1)
    estimates = np.stack([truth, np.full(len(cell), -1.0)], axis=1) + draws * errors
    estimates[:, 1] += 2.0 * sd * level
    failed = (a == 2) & (rng.random(len(members)) < 0.6)
    outcomes = [Outcome.STALLED if bad else Outcome.CONVERGED for bad in failed]
    return EnsembleResult(
        model="toy",
        names=("x", "k<&>"),
        parameter_names=("k<&>",),
        members=members,
        outcomes=tuple(outcomes),
        estimates=estimates,
        errors=errors,
        objective=np.full(len(members), 50.0),
        degrees_of_freedom=np.full(len(members), 50),
        iterations=np.full(len(members), 5),
        linearisations=5 + a,
        truth={"k<&>": -1.0},
        cell_truth={"x": np.array([2.0, 3.0] * 6)},
        seed=seed,
        seconds=1.0,
        grid=GRID,
    )


def test_cells_are_the_statistics_of_their_own_members() -> None:
    ensemble = sweep()
    groups = by_cell(ensemble, ["x", "k<&>"])
    assert groups.members.tolist() == [REALISATIONS] * 12
    for cell in range(12):
        own = np.flatnonzero(ensemble.cells == cell)
        good = own[[ensemble.outcomes[m] is Outcome.CONVERGED for m in own]]
        assert groups.converged[cell] == len(good)
        x, k = groups.unknowns
        off = ensemble.estimates[good, 0] - [2.0, 3.0][cell % 2]
        np.testing.assert_allclose(x.bias[cell], off.mean(), rtol=1e-12)
        np.testing.assert_allclose(x.spread[cell], off.std(ddof=1), rtol=1e-12)
        np.testing.assert_allclose(x.chance[cell], off.std(ddof=1) / np.sqrt(len(good)), rtol=1e-12)
        np.testing.assert_allclose(k.error[cell], ensemble.errors[good[0], 1], rtol=1e-12)
        held = np.abs(off) <= 2.008559 * ensemble.errors[good, 0]
        np.testing.assert_allclose(x.covered[cell], held.mean(), rtol=1e-12)
        assert groups.work[cell] == 5 + cell // 4


def test_keys_put_other_keys_together() -> None:
    ensemble = sweep()
    groups = by_keys(ensemble, ["fit.level"], ["k<&>"])
    assert groups.members.tolist() == [300, 300]
    one = by_keys(ensemble, ["guess.a"], ["k<&>"])
    assert one.success[0] == one.success[1] == 1.0
    assert 0.25 < one.success[2] < 0.55
    low, high = one.bands
    assert (low <= one.success).all()
    assert (one.success <= high + 1e-12).all()
    assert low[0] > 0.95
    assert cell_values(GRID, 7) == [10, 1.0, "T1"]


def test_cells_without_members_or_successes_are_not_numbers() -> None:
    ensemble = sweep()
    groups = by_keys(ensemble, ["guess.a"], ["x"])
    nobody = np.zeros(len(ensemble.members), dtype=np.int64)
    empty = grouped(ensemble, nobody, 3, ["x"])
    assert np.isnan(empty.success[1:]).all()
    assert np.isnan(empty.unknowns[0].bias[1:]).all()
    assert np.isfinite(groups.success).all()


def test_text_json_and_csv_tell_the_cells() -> None:
    ensemble = sweep()
    page = tables.as_text(ensemble, {"campaign": CAMPAIGN, "tasks": [{"first": 0}]})
    assert "600, 12 cells of guess.a, truth.noise.sd, fit.level" in page
    assert "failed because" in page
    assert "guess.a = 100" in page
    assert "core-hours          0.5, 3e+03 ms a member and core" in page
    assert "'first'" not in page  # the tasks stay in the file
    found: Any = tables.as_json(ensemble, {})
    assert len(found["cells"]) == 12
    assert found["cells"][7]["values"] == {"guess.a": 10, "truth.noise.sd": 1.0, "fit.level": "T1"}
    assert abs(found["cells"][7]["unknowns"]["k<&>"]["bias"] - 2.0) < 1.5
    json.dumps(found, allow_nan=False)
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(ensemble))))
    assert rows[7]["guess.a"] == "10"
    assert rows[7]["fit.level"] == "T1"
    assert float(rows[7]["x"]) == ensemble.estimates[7, 0]


def test_a_long_table_of_cells_is_cut_for_terminals_and_folded_on_pages() -> None:
    header, rows = cells.rows(sweep())
    assert header[:3] == tuple(GRID)
    assert len(rows) == 12
    assert rows[0][:5] == ("1", "0.1", "natural", "50", "100 %")


def test_pages_draw_maps_and_curves_and_escape_what_users_wrote(tmp_path: Path) -> None:
    ensemble = sweep()
    page = html(ensemble, {"campaign": CAMPAIGN, "tasks": []}, "", "a sweep")
    assert page.count("<figure>") == 2
    assert "Costs" in page
    assert "&lt;n2&gt;" in page
    assert "<n2>" not in page
    assert "k<&>" not in page
    for suffix in (".png", ".pdf"):
        write_report(ensemble, {}, "", "a sweep", tmp_path / f"page{suffix}", suffix)
        assert (tmp_path / f"page{suffix}").stat().st_size > 10_000


def test_maps_take_the_two_keys_with_the_most_values() -> None:
    ensemble = sweep()
    assert chosen_keys(ensemble) == ["guess.a", "truth.noise.sd"]
    figure = maps.maps(ensemble, ["guess.a", "truth.noise.sd"])
    panels = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title(loc="left") for axis in panels] == [
        "converged, per cent",
        "linearisations, mean",
        "held by 95 % intervals, per cent",
        "k<&>: bias / error",
        "k<&>: spread / error",
    ]
    shown = panels[0].images[0].get_array()
    groups = by_keys(ensemble, ["guess.a", "truth.noise.sd"], [])
    np.testing.assert_allclose(shown, 100.0 * groups.success.reshape(3, 2))


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([1, 10, 100], True), ([1, 2, 3], False), ([-1, 10, 100], False), ([1, 2], False)],
)
def test_ratios_make_a_logarithmic_axis(values: list[float], logarithmic: bool) -> None:
    assert curves.is_logarithmic(np.array(values, dtype=float)) is logarithmic


def test_a_sweep_comes_back_from_its_file(tmp_path: Path) -> None:
    ensemble = sweep()
    save(tmp_path / "sweep.h5", Saved(ensemble, "ensemble", "", "hash", {}))
    found = load(tmp_path / "sweep.h5").record
    assert isinstance(found, EnsembleResult)
    assert dict(found.grid) == GRID
    np.testing.assert_array_equal(found.cell_truth["x"], ensemble.cell_truth["x"])
    np.testing.assert_array_equal(found.true("x"), ensemble.true("x"))


def test_results_without_a_campaign_have_no_costs() -> None:
    assert costs.rows({"host": "n1"}, 10) == []
    assert costs.task_rows({}) == []
