"""Lines of squeue and sacct as records."""

from __future__ import annotations

import pytest

from hpcfit.cluster.queue import alive_tasks, expanded, parse_accounts, parse_queue

LINES = """\
3|6-99:3%2|3|PD|JobArrayTaskLimit||hpcfit-ab
3|0|4|R|None|n1|hpcfit-ab
3|3|5|CD|None|n2|hpcfit-ab
9|N/A|9|PD|Dependency||a | b
slurm_load_jobs error: something
12|1|13|CG|None|n[1-2]|
"""


def test_entries_of_the_queue() -> None:
    waiting, running, ended, merge, closing = parse_queue(LINES)
    assert waiting.indices == tuple(range(6, 100, 3))
    assert (waiting.alive, waiting.running, waiting.reason) == (True, False, "JobArrayTaskLimit")
    assert (running.indices, running.alive, running.running, running.own) == ((0,), True, True, "4")
    assert not ended.alive
    assert (merge.indices, merge.comment) == ((), "a | b")
    assert closing.running


def test_tasks_that_are_alive() -> None:
    alive = alive_tasks(parse_queue(LINES), {"3": 0, "12": 1000})
    assert set(alive) == {0, 1001, *range(6, 100, 3)}
    assert alive[0].running


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", (0,)),
        ("[0-2,7]", (0, 1, 2, 7)),
        ("0-8:4%1", (0, 4, 8)),
        ("5,7-8%3", (5, 7, 8)),
        ("N/A", ()),
        ("", ()),
    ],
)
def test_indices(text: str, numbers: tuple[int, ...]) -> None:
    assert expanded(text) == numbers


def test_accounts_of_tasks() -> None:
    text = (
        "3_0|COMPLETED|0:0|00:10:02|n1\n3_1|TIMEOUT|0:0|01:00:00|n2\n3_[5-6%2]|PENDING|0:0|00:00:00|None\n"
        "3_1|CANCELLED by 0|0:15|00:00:10|n1\n9|FAILED|2:0|00:00:01|n1\nnonsense\n"
    )
    found = parse_accounts(text)
    assert found["3", 0].state == "COMPLETED"
    assert (found["3", 1].state, found["3", 1].exit_code) == ("CANCELLED", "0:15")
    assert found["3", 6].state == "PENDING"
    assert found["9", -1].exit_code == "2:0"
