"""status: how fast it is, and what it tells of failures."""

from __future__ import annotations

import json
import os
import time
from importlib import metadata
from pathlib import Path

import h5py
import pytest

from hpcfit.__main__ import main
from hpcfit.files.campaigns import is_merged, make_folders, part_file, result_file, task_file, write_plan
from hpcfit.records import Campaign, Part, slices

MEMBERS, TASKS = 1_000_000, 1000


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A million members in a thousand tasks: 900 are done, 20 have half of their parts."""
    folder = tmp_path / "camp"
    make_folders(folder)
    plan = Campaign(
        name="million",
        identity="i",
        version=metadata.version("hpcfit"),
        kernel="",
        members=MEMBERS,
        grid={},
        chunk=100,
        tasks=tuple(slices(0, MEMBERS, MEMBERS // TASKS)),
        ranks=1,
        seed=1,
        created="",
    )
    write_plan(folder, plan)
    for task in range(900):
        with h5py.File(task_file(folder, task), "w") as file:
            file.attrs["ended"] = json.dumps({"CONVERGED": 999, "NOT_FINITE": 1})
        (folder / "tasks" / f"{task}.7-0.json").write_text(json.dumps({"status": 0, "host": "n1"}))
        (folder / "logs" / f"{task}.7.out").write_text("done")
    for task in range(900, 920):
        for k in range(5):
            first = task * 1000 + 100 * k
            part_file(folder, Part(task, first, first + 100, "8-0")).write_bytes(b"")
    return folder


def test_a_million_members_are_looked_at_within_a_second(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = []
    for _ in range(3):
        clock = time.process_time()
        assert main(["status", str(campaign), "--json"]) == 0
        times.append(time.process_time() - clock)
        found = json.loads(capsys.readouterr().out)
    assert (found["done"], found["missing"]) == (910_000, 90_000)
    assert sum(found["failed"].values()) == 900
    assert min(times) < 1.0


def test_a_result_that_is_older_than_a_task_is_not_the_whole(tmp_path: Path) -> None:
    make_folders(tmp_path)
    task_file(tmp_path, 0).write_text("")
    assert not is_merged(tmp_path)
    result_file(tmp_path).write_text("")
    assert is_merged(tmp_path)
    os.utime(task_file(tmp_path, 0), (time.time() + 10, time.time() + 10))
    assert not is_merged(tmp_path)


def test_only_tasks_in_trouble_when_asked_for(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = {"status": 2, "host": "n7", "error": "no room", "began": 200.0}
    (campaign / "tasks" / "950.10-0.json").write_text(json.dumps(note))
    before = {"status": 75, "host": "n1", "began": 100.0}
    (campaign / "tasks" / "950.9-0.json").write_text(json.dumps(before))
    (campaign / "logs" / "950.9.out").write_text("")
    assert main(["status", str(campaign), "--failed"]) == 0
    shown = capsys.readouterr().out
    (row,) = [line for line in shown.splitlines() if line.startswith("950")]
    for part in ("failed", "n7", "no room", "logs/950.9.out"):
        assert part in row
