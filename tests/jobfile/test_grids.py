"""Grids: values of keys, variables in expressions, and every mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.jobfile.check import Job, cell_job, check
from hpcfit.jobfile.grids import document_of, grid, lane_keys
from hpcfit.jobfile.read import read_document
from hpcfit.records import InputError, Mistake, Noise

SWEEP = """
kind = "ensemble"
[ensemble]
of = "fit"
members = 3
[ensemble.grid]
GRID
[model]
name = "henon_heiles"
[truth]
start = {x1 = 0.0, x2 = 0.0, x3 = "sqrt(2*E)", x4 = "-E**2"}
parameters = {a = 1.0, b = 1.0, c = -1.0}
times = {start = 0.0, spacing = 0.2, count = 100}
noise = {sd = 0.03}
[guess]
a = 10.0
b = 10.0
c = 2.0
"""


def checked(folder: Path, text: str, *overrides: str) -> tuple[Job | None, list[Mistake]]:
    path = folder / "job.toml"
    path.write_text(SWEEP.replace("GRID", text))
    return check(read_document(path, overrides))


def test_lists_ranges_and_tables_in_tables() -> None:
    given = {
        "guess": {"a": [1, 2, 5]},
        "truth.noise.sd": {"from": 0.01, "to": 1, "count": 3, "log": True},
        "E": {"from": "1/12", "to": "1/8", "count": 2},
        "fit.observe": [["x1"], ["x1", "x2"]],
    }
    found = grid(given)
    assert found == {
        "guess.a": (1, 2, 5),
        "truth.noise.sd": (0.01, pytest.approx(0.1, rel=1e-15), 1.0),
        "E": (1 / 12, 1 / 8),
        "fit.observe": (["x1"], ["x1", "x2"]),
    }
    assert lane_keys(found, ()) == ("guess.a",)
    assert lane_keys(found, ("a",)) == ()


def test_cells_have_their_values_and_variables(tmp_path: Path) -> None:
    job, mistakes = checked(tmp_path, '"guess.a" = [1, 2]\nE = [0.125, 2.0]\n"truth.noise.sd" = [0.1, 0.2]')
    assert job is not None, mistakes
    assert job["ensemble"]["grid"] == {"guess.a": (1, 2), "E": (0.125, 2.0), "truth.noise.sd": (0.1, 0.2)}
    cell = cell_job(job, {"guess.a": 2, "E": 2.0, "truth.noise.sd": 0.2})
    assert cell["guess"] == {"a": 2.0, "b": 10.0, "c": 2.0}
    assert cell["truth"]["start"] == {"x1": 0.0, "x2": 0.0, "x3": 2.0, "x4": -4.0}
    assert cell["truth"]["noise"] == Noise(sd=0.2)
    assert job["truth"]["start"]["x3"] == 0.5  # of the first cell


def test_a_negative_variable_keeps_its_sign_in_a_power(tmp_path: Path) -> None:
    document = read_document(_file(tmp_path, "E = [-2.0, -3.0]"))
    assert document_of(document, {"E": -2.0}).values["truth"]["start"]["x4"] == "-(-2.0) ** 2"


def _file(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(SWEEP.replace("GRID", text))
    return path


def test_one_realisation_of_each_cell_unless_told(tmp_path: Path) -> None:
    path = _file(tmp_path, "E = [0.1, 0.125]")
    path.write_text(path.read_text().replace("members = 3\n", ""))
    job, mistakes = check(read_document(path))
    assert job is not None, mistakes
    assert job["ensemble"]["members"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("E = []", "job.toml:7: ensemble.grid.E = []: must be a list of values"),
        ("E = 3", "ensemble.grid.E = 3: must be a list of values"),
        ('E = ["a"]', "unknown name 'a'"),
        ('E = [0.1]\n"guess.a" = [1, 2026-11-18]', "has the value 2026-11-18; give numbers"),
        ("E = [1, 1]", "has the value 1.0 twice"),
        ("E = {from = 1, to = 2}", "lacks count"),
        ("E = {from = 1, to = 1, count = 3}", "one value only"),
        ("E = {from = 0, to = 1, count = 3, log = true}", "ends of the same sign"),
        ('E = [0.1]\n"ensemble.members" = [1, 2]', "[ensemble] is the same for all members"),
        ('E = [0.1]\n"model.name" = ["lorenz"]', "[model] is the same for all members"),
        ("E = [0.1]\nseed = [1]", "cannot be the name of a variable"),
        ("E = [0.1]\nsin = [1]", "cannot be the name of a variable"),
        ('E = [0.1]\n"a b" = [1]', "neither a key of the job nor a name"),
        ('E = [0.1]\n"guess.d" = [1, 2]', "there is no parameter 'd'"),
        ('E = [0.1]\n"guess.a" = [1, "x"]', "job.toml:8: guess.a = \"x\": unknown name 'x'"),
        ('E = [0.1]\n"truth.noise.sd" = [0.1, 0.0]', "no noise, and thus no weight"),
        ('E = [0.1]\n"fit.level" = ["T1", "T2"]', "T2"),
        ('E = [0.1]\n"guess.a.b" = [1, 2]', "is a value, not a table"),
        ("E = [0.5, -0.5]", "with E = -0.5: 'sqrt(2 * -0.5)' has no finite value"),
        ("F = [0.5, 0.25]", "unknown name 'E'"),
        ('E = [0.1]\n"fit.fixed" = [{}, {b = 1.0}]', "the parameter is fixed as well"),
    ],
)
def test_mistakes_have_their_place_and_a_remedy(tmp_path: Path, text: str, said: str) -> None:
    job, mistakes = checked(tmp_path, text)
    assert job is None
    assert any(said in str(mistake) for mistake in mistakes), [str(each) for each in mistakes]


def test_a_grid_must_be_a_table_of_few_enough_cells() -> None:
    with pytest.raises(InputError, match="must be a table"):
        grid([1])
    with pytest.raises(InputError, match="more than 1,000,000 cells"):
        grid({"a": {"from": 0, "to": 1, "count": 2000}, "b": {"from": 0, "to": 1, "count": 2000}})
