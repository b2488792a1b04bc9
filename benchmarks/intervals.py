"""Shooting intervals with all sensitivities: µs per interval of ours and of each peer, and their errors.

python -m benchmarks.intervals [--quick] [--json FILE] [--only MODEL ...] [--peers PEER ...]
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import statistics
import sys
from dataclasses import dataclass
from functools import partial

from benchmarks import ours
from benchmarks.accuracy import N_CHECKED, Errors, loosest, reaches, reference
from benchmarks.peers import PEERS, Peer, Run
from benchmarks.report import Row, arguments, publish
from benchmarks.timing import microseconds
from benchmarks.workloads import Workload, workloads

ROUNDING = 2e-15  # smaller errors count as equal


@dataclass(frozen=True)
class Contender:
    """An integrator that is ready, at the loosest of its tolerances that is accurate enough."""

    name: str
    run: Run
    tolerance: float
    errors: Errors  # of the states, of the sensitivities


def main() -> None:
    """Every workload with every peer that is installed."""
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="only these rows")
    parser.add_argument(
        "--peers",
        nargs="+",
        metavar="PEER",
        help="only these peers (ours is then measured against them alone)",
    )
    parser.add_argument("--method", default=ours.METHOD, help="ours: %(default)s")
    options = parser.parse_args()
    peers = [peer for peer in PEERS if options.peers is None or peer.name in options.peers]
    rows: list[Row] = []
    accuracies: list[Row] = []
    notes: list[str] = []
    for workload in workloads(quick=options.quick):
        if options.only and workload.name not in options.only:
            continue
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        found = contenders(workload, peers, options.method, notes)
        rows.append(times_row(workload, measured(workload, found, rounds=3 if options.quick else 15)))
        accuracies.append(errors_row(workload, found))
    tables = {
        f"Intervals with all sensitivities: µs per interval (ours: {options.method})": rows,
        "Tolerance: largest relative errors of states and sensitivities": accuracies,
    }
    publish(tables, [*medians(rows), *dict.fromkeys(notes)], options.json)


def contenders(workload: Workload, peers: list[Peer], method: str, notes: list[str]) -> list[Contender]:
    """The peers that can do this model, each accurate enough; ours, at least as accurate as each of them."""
    checked = workload.some(N_CHECKED)
    exact = reference(checked)
    found: list[Contender] = []
    shared: dict[str, float] = {}  # module -> the tolerance that the first peer of the module needs
    for peer in peers:
        tolerances = [t for t in peer.tolerances if t <= shared.get(peer.module, 1.0)]
        prepare = partial(peer.prepare, workload.model)
        try:
            contender = Contender(peer.name, *loosest(prepare, tolerances, peer.aim, checked, exact))
        except Exception as error:
            notes.append(f"{peer.name}, {workload.name}: {type(error).__name__}: {error}")
            continue
        shared[peer.module] = contender.tolerance
        found.append(contender)
    aim = common_aim(found)
    prepare = partial(ours.prepare, workload.model, method=method)
    mine = Contender("ours", *loosest(prepare, ours.TOLERANCES, aim, checked, exact))
    if not reaches(mine.errors, aim):
        better = [c.name for c in found if not reaches(mine.errors, c.errors)]
        notes.append(f"ours, {workload.name}: less accurate than {' '.join(better)}")
    return [mine, *found]


def common_aim(found: list[Contender]) -> Errors:
    """The smallest errors of any peer, but none that is only rounding."""
    states, tangents = zip(*(contender.errors for contender in found), strict=True)
    return max(ROUNDING, min(states)), max(ROUNDING, min(tangents))


def measured(workload: Workload, found: list[Contender], rounds: int) -> dict[str, float]:
    """µs per interval by name, and of the bare calls of heyoka's batch of 4."""
    runs = {contender.name: contender.run for contender in found}
    if "heyoka4" in runs:
        from benchmarks.peers.heyoka import prepare_overhead

        runs["calls4"] = prepare_overhead(4)
    return microseconds(runs, workload, rounds)


def times_row(workload: Workload, times: dict[str, float]) -> Row:
    """One line: sizes, µs of each, and how many times slower than ours the peers are."""
    model = workload.model
    cells: dict[str, object] = {"model": workload.name, "n": len(model.states), "n_p": len(model.parameters)}
    cells |= {name: time for name, time in times.items() if name != "calls4"}
    if "calls4" in times:
        cells["heyoka4 net"] = times["heyoka4"] - times["calls4"]
    if "ours" in times:
        cells |= {f"{p.name}/ours": times[p.name] / times["ours"] for p in PEERS if p.name in times}
    return cells


def errors_row(workload: Workload, found: list[Contender]) -> Row:
    """One line: tolerance, and errors of states and sensitivities of each."""
    texts = {c.name: f"{c.tolerance:.0e}: {c.errors[0]:.0e} {c.errors[1]:.0e}" for c in found}
    return {"model": workload.name} | texts


def medians(rows: list[Row]) -> list[str]:
    """Median ratio to each peer over the rows that have one."""
    lines = []
    for peer in PEERS:
        ratios = [float(line[key]) for line in rows if (key := f"{peer.name}/ours") in line]  # type: ignore[arg-type]
        if ratios:
            lines.append(
                f"{peer.name}/ours: median {statistics.median(ratios):.3g}, least {min(ratios):.3g} "
                f"of {len(ratios)} models"
            )
    return lines


if __name__ == "__main__":
    main()
