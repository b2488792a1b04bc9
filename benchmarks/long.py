"""Long fits: time by length and by experiments, two ranks against one, work and messages of 16 ranks."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Row, arguments, publish
from hpcfit import Experiment, fit, simulate
from hpcfit.flow import shots
from hpcfit.linear import coarse
from hpcfit.linear.segmented import Task
from hpcfit.models.catalogue import find
from hpcfit.mpi.world import world

TRUTH = {"sigma": 10.0, "r": 46.0, "b": 8.0 / 3.0}
GUESS = {"sigma": 15.0, "r": 30.0, "b": 1.6}
SPACING, SD = 0.1, 2.0
ORDER = 20  # of the Taylor series, about


def series(count: int, seed: int = 1) -> Experiment:
    """Noisy data of Lorenz on its attractor, all states observed."""
    lorenz, times = find("lorenz"), SPACING * np.arange(count)
    start = {"x": -9.82491529, "y": -16.8807085, "z": 32.4346926}
    path = simulate(lorenz, start=start, parameters=TRUTH, times=times).states
    noisy = path + SD * np.random.default_rng(seed).normal(size=path.shape)
    return Experiment(times, {name: noisy[:, i] for i, name in enumerate("xyz")}, sigma=SD)


def experiments(count: int, length: int = 50) -> list[Experiment]:
    """Short pieces of the same series that know nothing of each other."""
    whole = series(count * length).series
    return [
        Experiment(
            whole.times[at : at + length], dict(zip("xyz", whole.values[at : at + length].T, strict=True)), SD
        )
        for at in range(0, count * length, length)
    ]


def by_length(lengths: list[int]) -> list[Row]:
    rows = []
    for count in lengths:
        found = fit(find("lorenz"), series(count), guess=GUESS)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            {
                "points": count,
                "outcome": found.outcome.value,
                "linearisations": found.linearisations,
                "solve, s": found.seconds,
                "µs a point and linearisation": 1e6 * found.seconds / count / found.linearisations,
                "peak memory, MB": memory,
                "solver": found.solver,
            }
        )
    return rows


def by_experiments(counts: list[int]) -> list[Row]:
    rows = []
    for count in counts:
        data, least = experiments(count), float("inf")
        for _ in range(3):
            found = fit(find("lorenz"), data, guess=GUESS, solver="dense")
            least = min(least, found.seconds)
        rows.append(
            {
                "experiments of 50 points": count,
                "linearisations": found.linearisations,
                "solve, s": least,
                "ms an experiment": 1e3 * least / count,
            }
        )
    return rows


class Work:
    """Floating-point operations of this rank, counted by formula: steps of the integrator, and algebra."""

    def __init__(self, n: int, q: int, k: int) -> None:
        self.flops: Counter[str] = Counter()
        self.n, self.q, self.k = n, q, k
        f, span, broad = n + q, 2 * n + q + 1, 3 * n + q + 1
        products, variable = 2, 4  # of Lorenz: in its right-hand side, and entries of its Jacobian
        self.step = ORDER**2 * products
        self.step_with_slopes = self.step + ORDER**2 * variable * (n + q)
        self.condensed = 2 * k * n * (f + 1) + _rotated(f, f + 1, k) + 2 * n * n * (f + 1)
        self.expanded = 2 * n * f
        self.stretched = _rotated(span - 1, span, k + 2 * n) + _rotated(n, broad, n) + 2 * n * broad
        self.exact_joint = (
            4 * 2 * f * f * f + 4 * 2 * f * f * (f + 1) + _rotated(f, f + 1, 2 * f) + 4 * f * f * f
        )
        self.weak_joint = _rotated(broad - 1, broad, 2 * (span - 1))
        self._watch()

    def _watch(self) -> None:
        """What is counted stands around the calls of machine code."""
        call, condense, expand, stretch = (
            shots.call_kernel,
            Task.condense,
            Task.expand,
            Task.stretch,
        )
        exact, weak, flops = coarse.Exact.join, coarse.Weak.join, self.flops

        def called(kernel: Any, arrays: Any, **given: Any) -> Any:
            found = call(kernel, arrays, **given)
            each = self.step_with_slopes if "by_start" in arrays else self.step
            flops["integrator"] += each * int(arrays["steps"].sum())
            return found

        def counted(method: Any, name: str, each: int) -> Any:
            def around(task: Any, *given: Any) -> Any:
                size = task.nodes if isinstance(task, Task) else len(given[0])
                flops[name] += each * size
                return method(task, *given)

            return around

        shots.call_kernel = called  # type: ignore[assignment]
        Task.condense = counted(condense, "segments", self.condensed)  # type: ignore[method-assign]
        Task.expand = counted(expand, "segments", self.expanded)  # type: ignore[method-assign]
        Task.stretch = counted(stretch, "segments", self.stretched)  # type: ignore[method-assign]
        coarse.Exact.join = counted(exact, "tree", self.exact_joint)  # type: ignore[method-assign]
        coarse.Weak.join = counted(weak, "tree", self.weak_joint)  # type: ignore[method-assign]


def _rotated(pivots: int, width: int, rows: int) -> int:
    """Householder reflections of rows into a triangle."""
    return sum(4 * rows * (width - c) for c in range(pivots))


def counting(comm: Any) -> tuple[Any, Counter[str]]:
    """A communicator that notes how many bytes this rank hands over."""
    from mpi4py import MPI

    sent: Counter[str] = Counter()

    class Counting(MPI.Intracomm):
        def allgather(self, value: Any) -> Any:
            sent["to all"] += len(pickle.dumps(value, protocol=5))
            return super().allgather(value)

        def isend(self, value: Any, dest: int, tag: int = 0) -> Any:
            sent["to neighbours"] += len(pickle.dumps(value, protocol=5))
            return super().isend(value, dest=dest, tag=tag)

    return Counting(comm), sent


def print_counts(count: int) -> None:
    """One fit on these ranks: the rank with the most work, and the one with the most bytes."""
    work, (comm, sent) = Work(3, 3, 3), counting(world())
    found = fit(find("lorenz"), series(count), guess=GUESS, solver="dense", comm=comm)
    everybody = world().gather((dict(work.flops), dict(sent)))
    if world().rank == 0:
        most = max((flops for flops, _ in everybody), key=lambda flops: sum(flops.values()))
        bytes_sent = max((own for _, own in everybody), key=lambda own: sum(own.values()))
        print(json.dumps({"flops": most, "bytes": bytes_sent, "linearisations": found.linearisations}))


def counted(count: int, ranks: list[int]) -> list[Row]:
    rows: list[dict[str, object]] = []
    one = 0.0
    for number in ranks:
        told: dict[str, Any] = json.loads(_launched(number, "--counts-run", str(count)))
        flops, own = told["flops"], told["bytes"]
        total = sum(flops.values())
        one = one or total
        rows.append(
            {
                "ranks": number,
                "GFLOP of the busiest rank": total / 1e9,
                "of that on one rank": total / one,
                "1.6 / ranks": min(1.6 / number, 1.0),
                "in the tree": flops.get("tree", 0) / total,
                "kB to neighbours, a linearisation": own.get("to neighbours", 0)
                / 1e3
                / told["linearisations"],
                "kB to all, a linearisation": own.get("to all", 0) / 1e3 / told["linearisations"],
            }
        )
    return rows


def print_wall_seconds(count: int) -> None:
    """All ranks begin together; the last one ends."""
    comm = world()
    data = series(count)
    fit(find("lorenz"), series(600), guess=GUESS, comm=comm)
    comm.barrier()
    begin = time.perf_counter()
    found = fit(find("lorenz"), data, guess=GUESS, comm=comm)
    comm.barrier()
    seconds = time.perf_counter() - begin
    memory = comm.allgather(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if comm.rank == 0:
        print(
            json.dumps(
                {
                    "seconds": seconds,
                    "solve": found.seconds,
                    "memory": max(memory),
                    "outcome": found.outcome.value,
                    "linearisations": found.linearisations,
                    "iterations": found.iterations,
                }
            )
        )


def two_ranks(count: int, rounds: int) -> list[Row]:
    """Wall seconds of whole fits on one rank and on two, in turns."""
    told: dict[int, dict[str, Any]] = {}
    for _ in range(rounds):
        for ranks in (1, 2):
            found = json.loads(_launched(ranks, "--wall-run", str(count)))
            if ranks not in told or found["seconds"] < told[ranks]["seconds"]:
                told[ranks] = found
    return [
        {
            "points": count,
            "ranks": ranks,
            "outcome": each["outcome"],
            "linearisations": each["linearisations"],
            "fit, s": each["seconds"],
            "ratio": told[1]["seconds"] / each["seconds"],
            "peak memory of a rank, MB": each["memory"],
        }
        for ranks, each in told.items()
    ]


def _launched(ranks: int, *arguments: str) -> str:
    """mpirun of this file; the last line that it prints."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    quiet = {"OMPI_MCA_mpi_yield_when_idle": "1"} if ranks > 2 else {}
    command = [
        "mpirun",
        "-n",
        str(ranks),
        "--oversubscribe",
        sys.executable,
        "-m",
        "benchmarks.long",
        *arguments,
    ]
    done = subprocess.run(
        command, env=os.environ | allowed | quiet, capture_output=True, text=True, check=True
    )
    return done.stdout.strip().splitlines()[-1]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["lengths", "experiments", "ranks", "counts"])
    parser.add_argument("--wall-run", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--counts-run", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.wall_run or asked.counts_run:
        print_wall_seconds(asked.wall_run) if asked.wall_run else print_counts(asked.counts_run)
        return
    small = asked.quick
    lengths = [1_000, 10_000] if small else [10_000, 100_000, 1_000_000]
    counts = [10, 30] if small else [10, 100, 300, 1_000]
    points, ranks = (2_000, [1, 2]) if small else (100_000, [1, 2, 4, 8, 16])
    parts: dict[str, tuple[str, Callable[[], list[Row]]]] = {
        "lengths": ("Time by length, one rank", lambda: by_length(lengths)),
        "experiments": ("Many experiments, one rank", lambda: by_experiments(counts)),
        "ranks": ("Two ranks against one", lambda: two_ranks(points, 1 if small else 3)),
        "counts": (f"Work and messages, {points:,} points", lambda: counted(points, ranks)),
    }
    chosen = {title: make() for name, (title, make) in parts.items() if asked.only in (None, name)}
    publish(chosen, [], asked.json)


if __name__ == "__main__":
    main()
