"""`import hpcfit` is quick and does nothing."""

import subprocess
import sys

LOOK = """
import sys, time
began = time.perf_counter()
import hpcfit
took = time.perf_counter() - began
libraries = ("mpi4py", "h5py", "petsc4py", "matplotlib", "scipy")
heavy = [name for name in libraries if name in sys.modules]
print(took, *heavy)
"""


def look() -> tuple[float, list[str]]:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    took, *heavy = done.stdout.split()
    return float(took), heavy


def test_import_takes_less_than_300_ms_and_loads_nothing_heavy() -> None:
    runs = [look() for _ in range(5)]
    assert runs[0][1] == []
    assert min(took for took, _ in runs) < 0.3
