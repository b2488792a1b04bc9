"""What a member costs: a few of them are computed before a campaign is cut into tasks."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from hpcfit.commands.sweeps import Sweep, compile_all
from hpcfit.mpi.serial import SERIAL
from hpcfit.studies.ensemble import rows_in_rounds

LONG_ENOUGH = 1.0  # seconds after which nothing more is tried
GROWTH = 8
MOST = 4096  # members
_FIXED_BYTES = 5 * 8 + 1  # objective, four whole numbers, outcome
_BY_UNKNOWN = 2 * 8  # estimate and error


@dataclass(frozen=True)
class Cost:
    """Of one member on one core."""

    seconds: float
    bytes: float  # before compression
    tried: int  # members


def pilot(sweep: Sweep) -> Cost:
    """Compile all that members need, then compute 1, 8, 64, ... of them until that takes a second."""
    sweep.bench.check(SERIAL, strict=sweep.strict)
    compile_all(sweep)
    members, tried = sweep.plan.members, 1
    while True:
        numbers = 1 + (np.arange(tried) * members) // tried
        clock = time.perf_counter()
        for _ in rows_in_rounds(SERIAL, sweep.bench, sweep.wanted(numbers)):
            pass
        seconds = time.perf_counter() - clock
        if seconds > LONG_ENOUGH or tried >= min(members, MOST):
            each = _FIXED_BYTES + _BY_UNKNOWN * len(sweep.bench.names)
            return Cost(seconds / tried, each, tried)
        tried = min(tried * GROWTH, members, MOST)
