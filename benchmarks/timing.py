"""CPU time of several contenders, taken in turns so that a noisy machine is noisy for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.peers import Run
from benchmarks.workloads import Workload

SECONDS_PER_CALL = 0.06  # slow integrators get fewer lanes
FEWEST_LANES = 16
Call = Callable[[], object]


def microseconds(runs: Mapping[str, Run], workload: Workload, rounds: int) -> dict[str, float]:
    """µs per lane of each run, from one interleaved measurement."""
    few = workload.some(FEWEST_LANES)
    calls, n_lanes = {}, {}
    for name, run in runs.items():
        run(*few.lanes)
        seconds = cpu_seconds(partial(run, *few.lanes)) / FEWEST_LANES
        part = workload.some(max(FEWEST_LANES, int(SECONDS_PER_CALL / seconds)))
        n_lanes[name] = len(part.t0)
        calls[name] = partial(run, *part.lanes)
    least = interleaved(calls, rounds)
    return {name: 1e6 * seconds / n_lanes[name] for name, seconds in least.items()}


def interleaved(calls: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """Least CPU seconds of each call over all rounds; one more round warms up."""
    least = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            least[name] = min(least[name], cpu_seconds(call))
    return least


def cpu_seconds(call: Call) -> float:
    """CPU time of this process for one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin
