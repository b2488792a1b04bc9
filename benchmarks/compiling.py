"""Seconds until a model's first answer: compiled afresh, and with its kernel in the cache.

    python -m benchmarks.compiling [--quick] [--json FILE]

Each measurement is a process of its own; wall time, as the compiler is another process. The time of a
second call is subtracted, and imports, tracing of the model and reading of inputs are not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.report import Row, arguments, publish

MODELS = ("henon_heiles", "lorenz", "double_pendulum", "quadratic", "lorenz96")
LIMITS = {"henon_heiles": 2.0, "quadratic": 6.0, "lorenz96": 20.0}  # seconds, of issue 3
CACHE_LIMIT = 0.1

_CHILD = """
import sys, time
from hpcfit.flow.propagate import propagate
from hpcfit.models.catalogue import find

def first_answers(name, count):
    chosen = find(name).examples[0]
    lanes = [0.0, chosen.spacing], list(chosen.start.values()), list(chosen.parameters.values())
    for _ in range(count):
        begin = time.perf_counter()
        propagate(find(name), *lanes, sensitivities=True, method=sys.argv[2])
        yield time.perf_counter() - begin

first, *later = first_answers(sys.argv[1], 4)
print(first - min(later))
"""


def main() -> None:
    """Compile cold, then several times from the cache."""
    from benchmarks.ours import METHOD

    parser = arguments(__doc__)
    parser.add_argument("--method", default=METHOD, help="ours: %(default)s")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in MODELS[:2] if options.quick else MODELS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows.append(row(name, options.method, repetitions=1 if options.quick else 3))
    publish({f"Seconds to the first answer ({options.method})": rows}, [], options.json)


def row(name: str, method: str, repetitions: int) -> Row:
    """Least seconds over the repetitions, each with an empty cache of its own."""
    cold, cached = [], []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(name, method, cache))
            cached.append(seconds(name, method, cache))
    return {
        "model": name,
        "compiled": max(0.0, min(cold)),
        "limit": LIMITS.get(name),
        "from cache": max(0.0, min(cached)),
        "cache limit": CACHE_LIMIT,
    }


def seconds(name: str, method: str, cache: str) -> float:
    """Of one process with this cache."""
    answer = subprocess.run(
        [sys.executable, "-c", _CHILD, name, method],
        env=os.environ | {"HPCFIT_CACHE": cache, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        sys.exit(f"{name}: {answer.stderr.strip()}")
    return float(answer.stdout)


if __name__ == "__main__":
    main()
