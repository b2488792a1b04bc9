"""The folder of a campaign: plans that come back, members counted once, damaged files that say so."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcfit.files.campaigns import (
    done_members,
    make_folders,
    notes,
    part_file,
    parts,
    plan_file,
    read_plan,
    task_file,
    unfinished_tasks,
    write_note,
    write_plan,
)
from hpcfit.records import Campaign, InputError, Part, gaps, slices, united

PLAN = Campaign(
    name="s18",
    identity="abc",
    version="0.1.0",
    kernel="def",
    members=1000,
    grid={"guess.a": [1, 2.5], "fit.observe": [["x1"], ["x1", "x2"]]},
    chunk=100,
    tasks=((0, 300), (300, 600), (600, 1000)),
    ranks=2,
    seed=18,
    created="2026-11-18T20:00:00+00:00",
    overrides=("truth.noise.sd=0.1",),
)
INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda p: (min(p), max(p))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_folders(tmp_path)
    write_plan(tmp_path, PLAN)
    return tmp_path


def touch(folder: Path, task: int, first: int, last: int, writer: str = "7-0") -> None:
    part_file(folder, Part(task, first, last, writer)).touch()


def test_a_plan_comes_back(folder: Path) -> None:
    assert read_plan(folder) == PLAN


def test_done_members_are_those_of_parts_and_tasks(folder: Path) -> None:
    assert done_members(folder) == []
    task_file(folder, 1).touch()
    touch(folder, 0, 0, 100)
    touch(folder, 0, 0, 100, "8-1")  # a twin of the same job
    touch(folder, 2, 700, 800)
    (folder / "parts" / ".0-100-200.7-0.h5.abc.part").touch()  # in work
    assert done_members(folder) == [(0, 100), (300, 600), (700, 800)]
    assert len(parts(folder)) == 3
    assert unfinished_tasks(folder) == {0: [(100, 300)], 2: [(600, 700), (800, 1000)]}


def test_a_task_beyond_the_plan_counts_nothing(folder: Path) -> None:
    task_file(folder, 9).touch()
    assert done_members(folder) == []


def test_an_extended_plan_has_more_to_do(folder: Path) -> None:
    for task in range(3):
        task_file(folder, task).touch()
    assert unfinished_tasks(folder) == {}
    write_plan(folder, replace(PLAN, members=2000, tasks=(*PLAN.tasks, (1000, 2000))))
    assert unfinished_tasks(folder) == {3: [(1000, 2000)]}


def test_notes_come_back_and_damaged_ones_are_left_out(folder: Path) -> None:
    write_note(folder, 1, "7-0", {"host": "n1", "status": 75})
    write_note(folder, 1, "7-1", {"host": "n2", "status": 0})
    (folder / "tasks" / "2.9-0.json").write_text("{")
    assert list(notes(folder)) == [
        (1, "7-0", {"host": "n1", "status": 75}),
        (1, "7-1", {"host": "n2", "status": 0}),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "damaged"),
        ("[1]", "no plan of a campaign"),
        (json.dumps({"format": 99}), "format 99 is newer"),
        (json.dumps({"format": 1, "tasks": []}), "damaged"),
        (json.dumps({"format": 1, "tasks": 3}), "damaged"),
    ],
)
def test_a_plan_that_cannot_be_read_says_why(folder: Path, text: str, said: str) -> None:
    plan_file(folder).write_text(text)
    with pytest.raises(InputError, match=said):
        read_plan(folder)


def test_a_folder_without_a_campaign_says_so(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="holds no campaign"):
            read_plan(place)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is no folder"):
        read_plan(tmp_path / "file")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a machine that others use
@given(INTERVALS)
def test_gaps_and_intervals_are_every_place_once(intervals: list[tuple[int, int]]) -> None:
    held = {place for first, last in intervals for place in range(first, last)}
    whole, missing = united(intervals), gaps(intervals, 10, 50)
    assert {p for first, last in whole for p in range(first, last)} == held
    assert all(a[1] < b[0] for a, b in itertools.pairwise(whole))
    assert sorted(p for first, last in missing for p in range(first, last)) == sorted(
        set(range(10, 50)) - held
    )


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 20))
def test_slices_hold_every_place_once(first: int, count: int, size: int) -> None:
    found = slices(first, first + count, size)
    assert [p for a, b in found for p in range(a, b)] == list(range(first, first + count))
    assert all(0 < b - a <= size for a, b in found)
