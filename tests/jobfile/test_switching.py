"""Switches and jumps in job files: they are read, and what is wrong with them is said with its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcfit.jobfile.check import check
from hpcfit.jobfile.read import read_document
from tests.conftest import ROOT

BALL = """
kind = "simulate"
[model]
states = ["y", "v"]
parameters = ["e"]
equations = {y = "v", v = "-9.81*up"}
switches = {up = "y + 100"}
[model.jumps]
bounce = {falls = "y", to = {v = "-e*v"}}
push = {at = 0.5, every = "e", count = 3, to = {v = "v + 1"}}
[truth]
start = {y = 1.0, v = 0.0}
parameters = {e = 0.9}
times = {spacing = 0.1, count = 11}
"""


def checked(text, folder):
    path = folder / "job.toml"
    path.write_text(text)
    return check(read_document(path))


def test_a_job_with_switches_and_jumps(tmp_path):
    job, mistakes = checked(BALL, tmp_path)
    assert not mistakes
    assert [jump.name for jump in job.model.jumps] == ["bounce", "push"]
    assert list(job.model.switches) == ["up"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "jobs" / "examples").glob("*.toml")), ids=lambda path: path.stem
)
def test_every_example_is_a_valid_job(path):
    job, mistakes = check(read_document(path))
    assert job is not None, mistakes


WRONG = {
    'falls = "y"': ('falls = "z"', "unknown name 'z'"),
    '{falls = "y", to = {v = "-e*v"}}': ('{falls = "y"}', "lacks to"),
    'falls = "y", to': ('drops = "y", to', "unknown key"),
    "count = 3": ("count = 0", "must lie between 1"),
    'up = "y + 100"': ('up = "0"', "identically zero"),
    "[truth]": ('[simulate]\nmethod = "extrapolation"\n[truth]', "need the compiled series"),
}


@pytest.mark.parametrize("old", WRONG)
def test_mistakes_are_named(old, tmp_path: Path):
    new, message = WRONG[old]
    job, mistakes = checked(BALL.replace(old, new, 1), tmp_path)
    assert job is None
    assert any(message in str(mistake) for mistake in mistakes), [str(mistake) for mistake in mistakes]
