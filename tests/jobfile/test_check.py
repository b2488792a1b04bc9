"""Good jobs become what they mean: defaults, constant expressions, overrides, lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.jobfile.check import Job, check
from hpcfit.jobfile.read import read_document
from hpcfit.jobfile.schema import reference
from hpcfit.records import Noise
from tests.conftest import GOOD_JOB, ROOT

S18 = """
kind = "fit"
seed = 18
[model]
name = "henon_heiles"
[truth]
start = {x1 = 0.0, x2 = 0.0, x3 = "sqrt(0.1275)", x4 = -0.35}
parameters = {a = 1.0, b = 1.0, c = -1.0}
times = {start = 0.0, spacing = 0.2, count = 100}
noise = {sd = 0.03, beyond_3_sigma = "redraw"}
[guess]
a = 10.0
b = 10.0
c = 2.0
[fit]
observe = ["x1", "x2", "x3", "x4"]
nodes = "data"
"""


def read(text: str, folder: Path, *overrides: str) -> Job:
    path = folder / "job.toml"
    path.write_text(text)
    job, mistakes = check(read_document(path, overrides))
    assert job is not None, mistakes
    return job


def test_defaults_and_constant_expressions(tmp_path: Path) -> None:
    job = read(GOOD_JOB, tmp_path)
    assert job.seed == 7
    assert job["truth"]["parameters"] == {"sigma": 10.0, "r": 28.0, "b": 8 / 3}
    assert job["truth"]["noise"] == Noise(sd=0.5)
    assert job["data"] == {}
    assert job["simulate"]["sensitivities"] is False


def test_the_fit_of_the_design_is_a_valid_job(tmp_path: Path) -> None:
    job = read(S18, tmp_path)
    assert job.kind == "fit"
    assert job["guess"] == {"a": 10.0, "b": 10.0, "c": 2.0}
    assert job["truth"]["start"]["x3"] == pytest.approx(0.1275**0.5, rel=1e-15)


def test_overrides_are_toml_or_else_text(tmp_path: Path) -> None:
    changes = (
        "seed=9",
        "truth.parameters.r=46.5",
        'simulate.observe=["x"]',
        "model.name=lorenz",
        "truth.noise.sd=0",
    )
    job = read(GOOD_JOB, tmp_path, *changes)
    assert job.seed == 9
    assert job["truth"]["parameters"]["r"] == 46.5
    assert job["simulate"]["observe"] == ("x",)


def test_places_point_to_lines(tmp_path: Path) -> None:
    document = read(GOOD_JOB, tmp_path, "seed=9").document
    assert document.place("model.name").endswith("job.toml:5")
    assert document.place("truth.noise.sd").endswith("job.toml:10")
    assert document.place("truth").endswith("job.toml:6")
    assert document.place("seed") == "--set"


def test_an_inline_model_is_the_model_it_says(tmp_path: Path) -> None:
    text = """
    kind = "simulate"
    [model]
    name = "spring"
    states = "x v"
    parameters = "k"
    equations = {x = "v", v = "-k*x"}
    observables = {height = "abs(x)"}
    invariant = "(v**2 + k*x**2)/2"
    units = {x = "m", t = "s"}
    [truth]
    start = {x = 1, v = 0}
    parameters = {k = 4}
    times = [0, 0.5, 2]
    """
    job = read(text, tmp_path)
    assert job.model is not None
    assert (job.model.name, job.model.states, job.model.quantities) == (
        "spring",
        ("x", "v"),
        ("x", "v", "height"),
    )
    assert job.model.text(job.model.equations[1]) == "-k*x"
    assert job["truth"]["times"] == {"list": [0.0, 0.5, 2.0]}


def test_a_model_file_is_read_and_not_run(tmp_path: Path) -> None:
    source = 'from hpcfit import model\n@model(states="x")\ndef decay(t, u, p):\n    return -u.x\n'
    (tmp_path / "m.py").write_text('open("ran", "w")\n' + source)
    job = read(
        'kind = "simulate"\n[model]\nfile = "m.py"\n[truth]\nstart = {x = 1}\ntimes = [0, 1]\n', tmp_path
    )
    assert job.model is None
    assert job.names.states == ("x",)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "jobs").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_job_of_the_project_is_valid(path: Path) -> None:
    job, mistakes = check(read_document(path))
    assert job is not None, mistakes


def test_the_reference_in_the_readme_is_the_schema() -> None:
    assert reference() in (ROOT / "README.md").read_text()
