"""How far a campaign is, as text."""

from __future__ import annotations

from dataclasses import replace

from hpcfit.records.submissions import Standing, TaskStanding
from hpcfit.reporting.standing import as_text, size

HALF = Standing(
    name="s18",
    folder="/data/my campaign",
    members=1000,
    done=500,
    failed={"stalled": 2, "no path": 1},
    running=200,
    waiting=200,
    unknown=0,
    missing=100,
    rate=25.0,
    seconds_left=20.0,
    tasks=(
        TaskStanding(0, 400, 400, "done"),
        TaskStanding(1, 300, 100, "running", "job 7 on n1", "", "logs/1.7.out"),
        TaskStanding(2, 200, 0, "waiting", "job 7", "Priority"),
        TaskStanding(3, 100, 0, "failed", "n2", "OUT_OF_MEMORY", "logs/3.7.out"),
    ),
    merged=False,
    result="/data/my campaign/result.h5",
)


def test_totals_and_the_tasks_in_trouble_first() -> None:
    text = as_text(HALF, unicode=True)
    for part in (
        "500 of 1,000 done (50.0 %)".replace(" %", "%"),
        "3 of them failed",
        "1 done · 1 running · 1 waiting · 1 failed",
        "25 members/s · about 20 s to go",
        "1 no path · 2 stalled",
    ):
        assert part in text, part
    lines = text.splitlines()
    rows = [line for line in lines if " of " in line and "done" not in line]
    assert "OUT_OF_MEMORY" in rows[0]
    assert "logs/3.7.out" in rows[0]


def test_only_trouble_is_shown_when_asked_for() -> None:
    text = as_text(HALF, unicode=True, trouble_only=True)
    assert "Priority" not in text
    assert "OUT_OF_MEMORY" in text


def test_the_next_command_is_told_when_nothing_is_at_work() -> None:
    assert "hpcfit resume" not in as_text(HALF, unicode=True)
    idle = replace(HALF, tasks=(HALF.tasks[0], HALF.tasks[3]))
    assert "hpcfit resume '/data/my campaign'" in as_text(idle, unicode=True)
    done = replace(HALF, done=1000, running=0, waiting=0, missing=0, tasks=HALF.tasks[:1])
    assert "hpcfit merge '/data/my campaign'" in as_text(done, unicode=True)
    assert "hpcfit report '/data/my campaign'" in as_text(replace(done, merged=True), unicode=True)


def test_names_do_not_steer_the_terminal() -> None:
    text = as_text(replace(HALF, name="a\x1b[2J", folder="b\nc"), unicode=False)
    assert "\x1b" not in text
    assert text.splitlines()[0].endswith("campaign in b c")
    assert text.isascii()


def test_many_tasks_are_cut() -> None:
    many = tuple(TaskStanding(k, 1, 0, "missing", "", "not begun") for k in range(1000))
    lines = as_text(replace(HALF, tasks=many), unicode=True).splitlines()
    assert len(lines) < 40
    assert "… 980 more" in lines[-1]


def test_sizes() -> None:
    assert [size(count) for count in (12, 1.5e6, 2e13)] == ["12 B", "1.5 MB", "20 TB"]
