"""How many tasks, and how long they take: from what a few members cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hpcfit.cluster.profiles import Profile
from hpcfit.cluster.times import seconds_of

TASK_SECONDS = 1800.0
LOCAL_SECONDS = 60.0
LONGEST_CHUNK = 20.0  # seconds that a kill costs at most
LARGEST_CHUNK = 32768  # members
MARGIN, SHORTEST_LIMIT, STEP = 2.0, 600, 300  # of limits: twice what was measured, in steps of 5 minutes


@dataclass(frozen=True)
class Sizes:
    """How a campaign is cut."""

    tasks: int
    members: int  # of a task, at most
    chunk: int  # members that are kept together
    seconds: float  # that a task is expected to take
    limit: int  # seconds that SLURM is asked for


def sizes(members: int, seconds_each: float, profile: Profile, tasks: int | None = None) -> Sizes:
    """Tasks of half an hour, or of half a shorter limit, and no more of them than the profile wants."""
    asked = seconds_of(profile.time) if profile.time else 0
    target = min(TASK_SECONDS, asked / MARGIN) if asked else TASK_SECONDS
    return _cut(members, seconds_each, profile.ranks, target, tasks or 0, profile.max_tasks, asked)


def local_sizes(members: int, seconds_each: float, ranks: int, slots: int, tasks: int | None = None) -> Sizes:
    """Tasks of a minute or longer, and enough of them for all cores."""
    work = members * seconds_each / ranks
    target = min(max(LOCAL_SECONDS, work / (8 * slots)), work / slots)
    return _cut(members, seconds_each, ranks, target, tasks or 0, max(1000, slots), 0)


def _cut(
    members: int, seconds_each: float, ranks: int, target: float, tasks: int, most: int, asked: int
) -> Sizes:
    work = members * seconds_each / ranks
    count = tasks or math.ceil(work / target) if work > 0 else 1
    count = max(1, min(count, members, most if not tasks else members))
    size = math.ceil(members / count)
    seconds = size * seconds_each / ranks
    chunk = int(min(max(LONGEST_CHUNK / seconds_each * ranks, 1), LARGEST_CHUNK, max(size, 1)))
    limit = max(STEP * math.ceil(MARGIN * seconds / STEP), SHORTEST_LIMIT)
    return Sizes(math.ceil(members / size), size, chunk, seconds, asked or limit)
