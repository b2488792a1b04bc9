"""Tasks of about half an hour, whatever a member costs."""

from __future__ import annotations

import pytest

from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.sizing import local_sizes, sizes


@pytest.mark.parametrize(
    ("members", "each", "ranks", "tasks"),
    [
        (10**6, 0.00036, 1, 1),
        (10**6, 0.036, 1, 20),
        (10**6, 0.036, 2, 10),
        (100, 60.0, 1, 4),
        (3, 1e5, 1, 3),
        (1, 1e-9, 1, 1),
        (10**6, 36.0, 1, 1000),
    ],
)
def test_tasks_take_half_an_hour(members: int, each: float, ranks: int, tasks: int) -> None:
    found = sizes(members, each, Profile(ranks=ranks))
    assert found.tasks == tasks
    assert found.tasks * found.members >= members > (found.tasks - 1) * found.members
    assert found.limit >= min(2 * found.seconds, found.limit)
    assert 1 <= found.chunk <= found.members


def test_a_short_limit_makes_shorter_tasks() -> None:
    found = sizes(10**6, 0.036, Profile(time="00:20:00"))
    assert (found.tasks, found.limit) == (60, 1200)


def test_the_number_of_tasks_may_be_given() -> None:
    assert sizes(2000, 0.0004, Profile(ranks=2), tasks=8).tasks == 8
    assert sizes(5, 0.0004, Profile(), tasks=8).tasks == 5


def test_chunks_cost_seconds_when_they_are_lost() -> None:
    assert sizes(1000, 40.0, Profile()).chunk == 1
    assert sizes(10**6, 0.001, Profile()).chunk == 20000


def test_here_all_cores_have_something_to_do_until_the_end() -> None:
    assert local_sizes(2000, 0.0004, 1, 2).tasks == 2
    assert local_sizes(10**6, 0.00036, 1, 2).tasks == 6
    assert 16 <= local_sizes(10**6, 0.036, 1, 2).tasks <= 1000
