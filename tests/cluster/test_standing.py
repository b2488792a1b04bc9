"""How far a campaign is, from files and jobs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hpcfit.cluster.queue import Account, Entry
from hpcfit.cluster.standing import Files, Jobs, standing
from hpcfit.records import Campaign
from hpcfit.records.submissions import Standing
from hpcfit.reporting.standing import as_json

PLAN = Campaign(
    name="s18",
    identity="i",
    version="0",
    kernel="k",
    members=600,
    grid={},
    chunk=10,
    tasks=tuple((100 * k, 100 * k + 100) for k in range(6)),
    ranks=1,
    seed=1,
    created="",
)


def entry(state: str, reason: str = "None") -> Entry:
    return Entry("77", "78", (1,), state, reason, "n1", "")


def seen(jobs: Jobs, **changes: Any) -> Standing:
    given: dict[str, Any] = {
        "finished": frozenset([0]),
        "unfinished": {1: [(140, 200)], 2: [(200, 300)], 3: [(300, 400)], 4: [(400, 500)], 5: [(590, 600)]},
        "notes": {},
        "paces": {},
        "logs": {1: "logs/1.77.out"},
        "merged": False,
    }
    return standing(PLAN, "camp", Files(**{**given, **changes}), jobs, {"STALLED": 3}, "camp/result.h5")


def test_members_are_done_running_waiting_or_missing() -> None:
    jobs = Jobs({1: entry("R"), 2: entry("PD", "Priority"), 3: entry("PD", "JobHeldUser")}, {})
    found = seen(jobs)
    assert [task.state for task in found.tasks] == [
        "done",
        "running",
        "waiting",
        "held",
        "missing",
        "missing",
    ]
    assert (found.done, found.running, found.waiting, found.missing) == (230, 60, 200, 110)
    assert found.done + found.running + found.waiting + found.missing == found.members


@pytest.mark.parametrize(
    ("note", "ended", "state", "why"),
    [
        ({}, {}, "missing", "not begun"),
        ({"status": 75, "host": "n1"}, {}, "left early", ""),
        ({"status": 2, "error": "no space"}, {}, "failed", "no space"),
        ({"host": "n1"}, {}, "failed", "killed"),
        ({"host": "n1"}, {4: Account("OUT_OF_MEMORY", "0:125", "00:01:00", "n1")}, "failed", "OUT_OF_MEMORY"),
    ],
)
def test_why_a_task_is_not_done(
    note: dict[str, Any], ended: dict[int, Account], state: str, why: str
) -> None:
    task = seen(Jobs({}, ended), notes={4: note} if note else {}).tasks[4]
    assert task.state == state
    assert why in task.why


def test_what_cannot_be_seen_is_neither_failed_nor_missing() -> None:
    """A task that said how it ended has ended; another may still be alive."""
    found = seen(Jobs({}, {}, unseen=True), notes={1: {"host": "n1"}, 2: {"status": 2, "error": "no room"}})
    assert [task.state for task in found.tasks] == ["done", "unknown", "failed", *["unknown"] * 3]
    assert (found.unknown, found.missing) == (270, 100)


def test_here_tasks_wait_or_run() -> None:
    found = seen(Jobs({}, {}, frozenset([1]), here=True))
    assert [task.state for task in found.tasks[1:4]] == ["running", "waiting", "waiting"]


def test_the_rate_is_that_of_the_running_tasks() -> None:
    """Task 2 has not written twice, task 3 does not run any more."""
    jobs = Jobs({1: entry("R"), 2: entry("R")}, {})
    found = seen(jobs, paces={1: 2.0, 3: 100.0})
    assert found.rate == pytest.approx(4.0)
    assert found.seconds_left == pytest.approx(370 / 4.0)


def test_without_running_tasks_the_time_is_not_known() -> None:
    found = seen(Jobs({}, {}))
    assert (found.rate, math.isnan(found.seconds_left)) == (0.0, True)
    assert as_json(found)["seconds_left"] is None
