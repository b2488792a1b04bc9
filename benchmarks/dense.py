"""50 output points with all sensitivities inside a span of several intervals, against heyoka.

python -m benchmarks.dense [--quick] [--json FILE]
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks import ours
from benchmarks.accuracy import dense_reference, loosest, reaches
from benchmarks.peers import Run, heyoka, ladder
from benchmarks.report import Row, arguments, publish
from benchmarks.timing import microseconds
from benchmarks.workloads import Workload, along_orbit, invented
from hpcfit.models.catalogue import find

N_POINTS = 50
N_INTERVALS = 10  # the span, in spacings of the example
N_CHECKED = 16
FRACTIONS = np.arange(1, N_POINTS + 1) / N_POINTS
AIM = (1e-12, 1e-12)
TOLERANCES = ladder(1e-9, 1e-14)
ROUNDING = 2e-15
MODELS = (find("henon_heiles"), find("lorenz"), find("double_pendulum"), invented, find("quadratic"))


def main() -> None:
    """Ours against heyoka's two ways: a grid of times, and the polynomials of all steps (c_output)."""
    parser = arguments(__doc__)
    parser.add_argument("--method", default=ours.METHOD, help="ours: %(default)s")
    options = parser.parse_args()
    rows: list[Row] = []
    notes: list[str] = []
    for model in MODELS[:1] if options.quick else MODELS:
        print(f"{model.name} ...", file=sys.stderr, flush=True)
        short = along_orbit(model, n_lanes=200)
        workload = replace(short, dt=N_INTERVALS * short.dt)
        rows.append(row(workload, options.method, 3 if options.quick else 15, notes))
    title = f"{N_POINTS} points with sensitivities in a span of {N_INTERVALS} intervals, µs per span"
    publish({title: rows}, notes, options.json)


def row(workload: Workload, method: str, rounds: int, notes: list[str]) -> Row:
    """One line: sizes, times, ratios, errors of states / sensitivities."""
    model = workload.model
    peers: dict[str, Callable[[float], Run]] = {
        "heyoka4 grid": partial(heyoka.prepare_dense, model, fractions=FRACTIONS),
        "heyoka4 c_output": partial(heyoka.prepare_dense, model, fractions=FRACTIONS, c_output=True),
    }
    checked = workload.some(N_CHECKED)
    exact = dense_reference(checked, FRACTIONS)
    found = {name: loosest(prepare, TOLERANCES, AIM, checked, exact) for name, prepare in peers.items()}
    states, tangents = found["heyoka4 grid"][2]
    aim = max(ROUNDING, states), max(ROUNDING, tangents)
    mine = partial(ours.prepare_dense, model, fractions=FRACTIONS, method=method)
    found = {"ours": loosest(mine, TOLERANCES, aim, checked, exact)} | found
    if not reaches(found["ours"][2], aim):
        notes.append(f"ours, {workload.name}: less accurate than heyoka")
    times = microseconds({name: run for name, (run, _, _) in found.items()}, workload, rounds)
    cells: dict[str, object] = {"model": workload.name, "n": len(model.states), "n_p": len(model.parameters)}
    cells |= times
    cells |= {f"{name}/ours": time / times["ours"] for name, time in times.items() if name != "ours"}
    cells |= {f"err {name}": f"{error[0]:.0e} {error[1]:.0e}" for name, (_, _, error) in found.items()}
    cells["tolerances"] = " ".join(f"{tolerance:.0e}" for _, tolerance, _ in found.values())
    return cells


if __name__ == "__main__":
    main()
