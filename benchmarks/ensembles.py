"""Noise ensembles: fits per second of one core, against IPOPT, on two ranks, and where the time goes.

    python -m benchmarks.ensembles [--quick] [--json FILE]

Scenarios of the papers (jobs/) from their guesses, presolve and covariance included; members 1 to n. A fit
succeeds if it converges, every parameter is within 5 standard errors of the truth, and a misfit as large has
a probability above 1e-6. CPU seconds of one thread, the least of several rounds, contenders in turns; ranks:
wall time.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from scipy.special import chdtrc

from benchmarks.fits import enough_steps, ipopt_from, make_case, prepare_ipopt
from benchmarks.peak import gigaflops
from benchmarks.report import Row, arguments, publish
from benchmarks.timing import cpu_seconds
from hpcfit.commands.loading import load
from hpcfit.commands.work import run_ensemble
from hpcfit.flow import shots
from hpcfit.linear import compiled
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.world import world
from hpcfit.records import EnsembleResult, Outcome
from hpcfit.shooting import problem
from jobs.papers import scenarios

SCENARIOS = {"S18": 10_000, "S33": 4_000, "L3": 4_000, "R3": 2_000, "L5": 2_000}
IPOPT_SEEDS = range(1, 9)
ROUNDS = 3
FARTHEST, IMPLAUSIBLE = 5.0, 1e-6


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--ranks-run", type=int, metavar="MEMBERS", help="S18 on the ranks that call it: seconds"
    )
    options = parser.parse_args()
    if options.ranks_run:
        print_wall_seconds(options.ranks_run)
        return
    part = 20 if options.quick else 1
    peak = gigaflops()
    rates, notes = [], [f"peak of this core: {peak:.1f} GFLOP/s of fused multiply-adds"]
    for name, members in SCENARIOS.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        rates.append(rate(name, members // part, 1 if options.quick else ROUNDS))
    tables = {
        "Ensembles, one core": rates,
        "S18 against IPOPT, in turns": [against_ipopt(2 if options.quick else ROUNDS)],
        "S18 on ranks": [on_ranks(10_000 // part, 1 if options.quick else ROUNDS)],
    }
    publish(tables, notes, options.json)


def ensemble(name: str, members: int, comm: Any = SERIAL) -> EnsembleResult:
    asked = ['kind="ensemble"', 'ensemble.of="fit"', f"ensemble.members={members}", "fit.derived={}"]
    return run_ensemble(comm, load(scenarios()[name], asked))


def rate(name: str, members: int, rounds: int) -> Row:
    """Fits per second, successes, and the shares of the time."""
    ensemble(name, 16)
    least, shares, result = float("inf"), (0.0, 0.0, 0.0), None
    for _ in range(rounds):
        with (
            clocked(shots, "call_kernel") as flow,
            clocked(problem, "measured") as rows,
            clocked(compiled._Task, "call") as algebra,
        ):
            begin = time.process_time()
            result = ensemble(name, members)
            seconds = time.process_time() - begin
        if seconds < least:
            least, shares = seconds, tuple(part[0] / seconds for part in (flow, rows, algebra))
    assert result is not None
    return {
        "scenario": name,
        "members": members,
        "successes": int(succeeded(result).sum()),
        "fits/s": members / least,
        "integrator": f"{shares[0]:.0%}",
        "rows": f"{shares[1]:.0%}",
        "algebra": f"{shares[2]:.0%}",
        "Python and numpy": f"{1.0 - sum(shares):.0%}",
        "linearisations": float(result.linearisations.mean()),
    }


@contextmanager
def clocked(owner: Any, name: str) -> Iterator[list[float]]:
    """CPU seconds spent in a function while the block lasts."""
    spent, function = [0.0], getattr(owner, name)

    def timed(*given: Any, **named: Any) -> Any:
        begin = time.process_time()
        try:
            return function(*given, **named)
        finally:
            spent[0] += time.process_time() - begin

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, function)


def succeeded(result: EnsembleResult) -> np.ndarray:
    """(M,)"""
    columns = [result.names.index(name) for name in result.parameter_names]
    truth = np.array([result.truth[name] for name in result.parameter_names])
    near = (np.abs(result.estimates[:, columns] - truth) < FARTHEST * result.errors[:, columns]).all(axis=1)
    converged = np.array([outcome is Outcome.CONVERGED for outcome in result.outcomes])
    return converged & near & (chdtrc(result.degrees_of_freedom, result.objective) > IMPLAUSIBLE)


def against_ipopt(rounds: int) -> Row:
    """ms per fit; IPOPT begins at presolved parameters, whose time is not counted, and gives no errors."""
    cases, members = [make_case(seed) for seed in IPOPT_SEEDS], 1_000

    def peer(tuned: bool) -> tuple[Callable[[], object], int]:
        solver = prepare_ipopt(enough_steps(), tuned=tuned)
        return lambda: [ipopt_from(solver, case, presolved=True) for case in cases], len(cases)

    calls: dict[str, tuple[Callable[[], object], int]] = {
        "hpcfit": (partial(ensemble, "S18", members), members),
        "IPOPT": peer(tuned=False),
        "IPOPT, tuned": peer(tuned=True),
    }
    least = dict.fromkeys(calls, float("inf"))
    for turn in range(1 + rounds):
        for name, (call, fits) in calls.items():
            seconds = cpu_seconds(call) / fits
            least[name] = min(least[name], seconds) if turn else least[name]
    return {f"{name}, ms a fit": 1e3 * seconds for name, seconds in least.items()} | {
        f"{name} / hpcfit": seconds / least["hpcfit"] for name, seconds in least.items() if name != "hpcfit"
    }


def on_ranks(members: int, rounds: int) -> Row:
    """Wall seconds on one rank and on two, in turns."""
    least = {1: float("inf"), 2: float("inf")}
    for _ in range(rounds):
        for ranks in least:
            least[ranks] = min(least[ranks], launched(ranks, members))
    return {"members": members, "1 rank, s": least[1], "2 ranks, s": least[2], "ratio": least[1] / least[2]}


def launched(ranks: int, members: int) -> float:
    """mpirun of this file."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", sys.executable, "-m", "benchmarks.ensembles"]
    done = subprocess.run(
        [*command, "--ranks-run", str(members)],
        env=os.environ | allowed,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def print_wall_seconds(members: int) -> None:
    """All ranks begin together; the last one ends."""
    comm = world()
    ensemble("S18", 16 * comm.size, comm)
    comm.barrier()
    begin = time.perf_counter()
    ensemble("S18", members, comm)
    comm.barrier()
    if comm.rank == 0:
        print(time.perf_counter() - begin)


if __name__ == "__main__":
    main()
