"""Lyapunov spectra: seconds for 10^6 units of time of ours and of each peer; share of the peak.

python -m benchmarks.spectra [--quick] [--json FILE]
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.peak import gigaflops
from benchmarks.peers.spectra import Spectra, Stretched, prepare_heyoka, prepare_jitcode
from benchmarks.report import Row, arguments, publish
from benchmarks.timing import Call, interleaved
from hpcfit.flow.frames import grow, start_bundle
from hpcfit.flow.taylor import order_for
from hpcfit.kernels.frames import FrameWriter
from hpcfit.kernels.source import HIGHEST_ORDER
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.records import Array

TOLERANCE = 1e-15  # of heyoka and of ours
LOOSER = 1e-12  # of DOP853, which cannot reach the other
WIDTHS = (1, 4, 8)  # lanes of heyoka


@dataclass(frozen=True)
class Task:
    """Trajectories of one model and how long they are followed."""

    name: str
    model: Model
    starts: Array  # (L, n)
    parameters: Array  # (n_p,)
    duration: float
    interval: float
    jitcode_duration: float

    def lanes(self, count: int) -> Task:
        return replace(self, name=f"{self.name}, {count}", starts=self.starts[:count])


def main() -> None:
    """Every task with every peer that is installed."""
    options = arguments(__doc__).parse_args()
    peak = gigaflops()
    rows, notes = [], [f"peak of one core: {peak:.1f} GFLOP/s of fused multiply-adds, in this run"]
    shorter = 0.1 if options.quick else 1.0
    for task in tasks():
        print(f"{task.name} ...", file=sys.stderr, flush=True)
        shown = replace(
            task, duration=task.duration * shorter, jitcode_duration=task.jitcode_duration * shorter
        )
        rows.append(row(shown, peak, notes, rounds=2 if options.quick else 7))
    publish(
        {"Spectra: seconds for 10^6 units of time and trajectory, all exponents": rows}, notes, options.json
    )


def tasks() -> list[Task]:
    """Hénon–Heiles with all lanes filled and alone; Lorenz-96 with 40 states, one trajectory and eight."""
    heiles, ring = find("henon_heiles"), find("lorenz96", 40)
    chaotic = along(heiles, [0.0, 0.0, np.sqrt(0.1275), -0.35], [1.0, 1.0, -1.0], 16, 10.0)
    example = ring.examples[0]
    forcing = list(example.parameters.values())
    starts = along(ring, [example.start[s] for s in ring.states], forcing, 8, 5.0)
    many = Task("henon_heiles", heiles, chaotic, np.array([1.0, 1.0, -1.0]), 5000.0, 50.0, 200.0)
    wide = Task("lorenz96 (40)", ring, starts, np.array(forcing), 20.0, 0.5, 5.0)
    return [many.lanes(16), many.lanes(1), wide.lanes(1), wide.lanes(8)]


def along(model: Model, start: list[float], parameters: list[float], count: int, apart: float) -> Array:
    """Start points of one orbit."""
    bundle, found = start_bundle(model, [start], [parameters]), []
    for _ in range(count):
        bundle = grow(model, bundle, blocks=1, block=apart, interval=apart / 10).bundle
        found.append(bundle.states[0])
    return np.array(found)


def row(task: Task, peak: float, notes: list[str], rounds: int) -> Row:
    """One line: seconds of each, ratios to ours, errors of the invariant, and ours as a share of the peak."""
    answers: dict[str, Stretched] = {}
    calls: dict[str, Call] = {}
    durations: dict[str, float] = {}
    parameters = np.tile(task.parameters, (len(task.starts), 1))
    for name, spectra in contenders(task, notes).items():
        durations[name] = task.jitcode_duration if name == "jitcode" else task.duration

        def call(name: str = name, spectra: Spectra = spectra) -> None:
            answers[name] = spectra(task.starts, parameters, durations[name], task.interval)

        calls[name] = call
    least = interleaved(calls, rounds)
    times = {name: 1e6 * least[name] / durations[name] / len(task.starts) for name in least}
    cells: dict[str, object] = {"trajectories": task.name} | times
    cells |= {f"{name}/ours": time / times["ours"] for name, time in times.items() if name != "ours"}
    steps = _steps(task)
    rate = steps * flops(task.model, len(task.model.states)) / least["ours"] * 1e-9
    cells |= {"GFLOP/s": rate, "of the peak": f"{100 * rate / peak:.0f} %"}
    notes.append(
        f"{task.name}: {', '.join(f'{name} {text}' for name, text in quality(task, answers).items())}"
    )
    return cells


def contenders(task: Task, notes: list[str]) -> Mapping[str, Spectra]:
    """Ours and the peers that are there."""
    found: dict[str, Spectra] = {"ours": ours(task.model)}
    makers = {
        f"heyoka{width}": lambda width=width: prepare_heyoka(task.model, TOLERANCE, width)
        for width in WIDTHS
        if len(task.starts) % width == 0
    }
    makers["jitcode"] = lambda: prepare_jitcode(task.model, LOOSER)
    for name, make in makers.items():
        try:
            found[name] = make()
        except ImportError as error:
            notes.append(f"{name}, {task.name}: {type(error).__name__}: {error}")
    return found


def ours(model: Model) -> Spectra:
    """`grow` as the peers are called."""

    def run(starts: Array, parameters: Array, duration: float, interval: float) -> Stretched:
        bundle = start_bundle(model, starts, parameters)
        growth = grow(model, bundle, blocks=1, block=duration, interval=interval, tolerance=TOLERANCE)
        assert not growth.failures, growth.failures[0]
        return Stretched(growth.bundle.states, growth.logarithms[:, 0] / duration)

    return run


def _steps(task: Task) -> int:
    bundle = start_bundle(task.model, task.starts, task.parameters)
    growth = grow(
        task.model, bundle, blocks=1, block=task.duration, interval=task.interval, tolerance=TOLERANCE
    )
    return int(growth.steps.sum())


def flops(model: Model, tangents: int) -> float:
    """Of the sums in one step, by formula: series of state and tangents, and both at the end of the step."""
    writer, order = FrameWriter(model, tangents, wide=True), order_for(TOLERANCE, HIGHEST_ORDER)
    order += -order % 4
    n = len(model.states)
    recurrences = [*writer.base.recurrences, *writer.tangent.recurrences]
    pairs = {min(pair, pair[::-1]) for r in recurrences for pair in r.convolutions}
    base = sum(0.5 if left == right else 1.0 for left, right in pairs) * order * (order - 1) / 2
    rows = sum(len(r.convolutions) for r in writer.rows) * tangents * order * (order + 1) / 2
    products = sum(len(r.products) for r in writer.rows) * tangents * order
    return 2.0 * (base + rows + products + (n + n * tangents) * order)


def quality(task: Task, answers: Mapping[str, Stretched]) -> dict[str, str]:
    """Largest exponent, and the error of the invariant at the end: rms and largest over the trajectories."""
    texts = {}
    for name, answer in answers.items():
        texts[name] = f"lambda_1 {answer.exponents[:, 0].mean():.3f}"
        if task.model.invariant is not None:
            before, after = (energy(task, states) for states in (task.starts, answer.states))
            error = np.abs(after / before - 1)
            texts[name] += (
                f", error of the invariant {np.sqrt((error**2).mean()):.1e} (largest {error.max():.1e})"
            )
    return texts


def energy(task: Task, states: Array) -> Array:
    """The invariant at some states (L, n), with more digits than they have."""
    assert task.model.graph is not None
    assert task.model.invariant is not None
    wide = np.asarray(states, dtype=np.longdouble)
    (values,) = Program(task.model.graph, [task.model.invariant])(0.0, wide.T, list(task.parameters))
    return np.asarray(values)


if __name__ == "__main__":
    main()
