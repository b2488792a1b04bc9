"""Several [[truth]] and [[data]]: what later ones inherit, where their keys stand, how --set names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.jobfile.read import read_document
from hpcfit.records import InputError, Noise
from tests.jobfile.test_check import read

MANY = """kind = "fit"
[model]
name = "lorenz"
[guess]
sigma = 9.0
r = 27.0
b = 3.0
[fit]
local = ["r"]
[[truth]]
start = {x = 1.0, y = 2.0, z = 20.0}
parameters = {sigma = 10.0, r = 28.0, b = "8/3"}
times = {spacing = 0.1, count = 11}
noise = {sd = 0.5}
[[truth]]
parameters = {r = 30.0}
observe = ["x", "z"]
[[truth]]
start = {x = 3.0, y = 2.0, z = 20.0}
  [truth.noise]
  sd = 0.1
"""


def test_later_tables_inherit_from_the_first_and_parameters_one_by_one(tmp_path: Path) -> None:
    job = read(MANY, tmp_path)
    labels, truths = zip(*job.several("truth"), strict=True)
    assert labels == ("truth[1]", "truth[2]", "truth[3]")
    assert job["truth"] is truths[0]
    assert truths[1]["parameters"] == {"sigma": 10.0, "r": 30.0, "b": 8 / 3}
    assert truths[1]["start"] == truths[0]["start"]
    assert [truth["observe"] for truth in truths] == [None, ("x", "z"), None]
    assert truths[2]["start"]["x"] == 3.0
    assert [truth["noise"] for truth in truths] == [Noise(sd=0.5), Noise(sd=0.5), Noise(sd=0.1)]
    assert job.several("data") == []
    assert job["fit"]["local"] == ("r",)


def test_an_array_of_one_table_is_the_table(tmp_path: Path) -> None:
    one = MANY[: MANY.index("[[truth]]\nparameters = {r")]
    assert read(one, tmp_path).several("truth") == read(
        one.replace("[[truth]]", "[truth]"), tmp_path
    ).several("truth")


def test_places_point_to_the_lines_of_each_table(tmp_path: Path) -> None:
    document = read(MANY, tmp_path).document
    lines = {
        "truth": 10,
        "truth[1].noise.sd": 14,
        "truth[2]": 15,
        "truth[2].parameters.r": 16,
        "truth[2].start": 15,
        "truth[3].start.x": 19,
        "truth[3].noise.sd": 21,
        "truth[4].start": 10,
        "fit.local": 9,
    }
    assert {key: document.line(key) for key in lines} == lines


def test_overrides_name_tables_by_number(tmp_path: Path) -> None:
    changes = ("truth[2].parameters.r=31", "truth[3].noise.sd=0.2", "truth[1].times.count=5")
    job = read(MANY, tmp_path, *changes)
    truths = [truth for _, truth in job.several("truth")]
    assert truths[1]["parameters"]["r"] == 31
    assert truths[2]["noise"] == Noise(sd=0.2)
    assert [truth["times"]["count"] for truth in truths] == [5, 5, 5]
    assert job.document.place("truth[2].parameters.r") == "--set"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("truth.noise.sd=1", "'truth.noise.sd': the job has 3 [[truth]]; number them from truth[1]"),
        ("truth[4].noise.sd=1", "the job has 3 [[truth]]; number them"),
        ("truth[0].noise.sd=1", "the job has 3 [[truth]]; number them"),
        ("data[1].file=x", "the job has 0 [[data]]; write it into the job"),
        ("guess[2].r=1", "the job has 1 [[guess]]"),
    ],
)
def test_overrides_of_tables_that_are_not_there(change: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(MANY)
    with pytest.raises(InputError) as error:
        read_document(tmp_path / "job.toml", (change,))
    assert message in str(error.value)
