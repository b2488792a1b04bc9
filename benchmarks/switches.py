"""Switches, jumps and sliding: µs per switch and lane, with and without derivatives.

python -m benchmarks.switches [--quick] [--json FILE]
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

from functools import partial

import numpy as np

from benchmarks.report import Row, arguments, publish
from benchmarks.timing import interleaved
from hpcfit.flow.propagate import propagate
from hpcfit.math import sign
from hpcfit.models.catalogue import find
from hpcfit.models.define import Model, model
from hpcfit.records import Array

LANES = 64


@model(states="x v", parameters="a")
def relay(t, u, p):  # type: ignore[no-untyped-def]
    """Swings in parabolas; its slope jumps at every zero."""
    return u.v, -p.a * sign(u.x)


def cases(quick: bool) -> list[tuple[str, Model, Array, Array, float]]:
    """Name, model, start, parameters, duration: many switches each."""
    part = 0.1 if quick else 1.0
    return [
        ("kinks (relay)", relay, np.array([0.0, 1.0]), np.array([2.0]), 2000.0 * part),
        (
            "jumps at roots (elastic ball)",
            find("bouncing_ball"),
            np.array([1.0, 0.0]),
            np.array([2.0, 1.0]),
            4000.0 * part,
        ),
        (
            "jumps at times (doses)",
            find("dosing"),
            np.zeros(2),
            np.array([0.9, 0.15, 1.0, 0.4, 2.0]),
            4000.0 * part,
        ),
        (
            "sticking and slipping",
            find("stick_slip"),
            np.zeros(2),
            np.array([0.8, 1.0, 1.5, 0.3]),
            5000.0 * part,
        ),
    ]


def main() -> None:
    """One row per kind of switch."""
    options = arguments(__doc__).parse_args()
    rows: list[Row] = []
    for name, made, start, parameters, end in cases(options.quick):
        starts = np.tile(start, (LANES, 1)) * (1.0 + 1e-3 * np.arange(LANES)[:, None] / LANES)
        met = propagate(made, [0.0, end], starts, parameters, switchings=True).switchings
        assert met is not None
        row: dict[str, object] = {"switches": name, "a lane": len(met.times) // LANES}
        calls = {
            label: partial(propagate, made, [0.0, end], starts, parameters, sensitivities=sensitivities)
            for label, sensitivities in (("µs, states", False), ("µs, derivatives too", True))
        }
        least = interleaved(calls, rounds=3)
        row |= {label: 1e6 * seconds / len(met.times) for label, seconds in least.items()}
        rows.append(row)
    publish({f"Time per switch and lane, {LANES} lanes, with the steps between": rows}, [], options.json)


if __name__ == "__main__":
    main()
