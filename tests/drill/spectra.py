"""Kills spectra at random moments until they have come to their end: `make drill`; three kills are a test.

Every run goes on from the checkpoints of the one before, on one or two ranks; in the end its numbers must
be those of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from hpcfit.files.results import load
from hpcfit.records import Spectrum

JOB = """
kind = "lyapunov"
[model]
name = "lorenz"
[truth]
start = {x = 1.0, y = 1.0, z = 20.0}
parameters = {sigma = 10.0, r = 28.0, b = "8/3"}
[lyapunov]
duration = DURATION
trajectories = 3
"""
LEFT_EARLY = 75
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMP_NUM_THREADS": "1",
}
RATES = ("exponents", "errors", "bounds", "half_widths", "growth", "divergence", "drift", "dimension")


def start(folder: Path, ranks: int, output: str) -> subprocess.Popen[str]:
    """A run that writes checkpoints as often as it can, in a session of its own."""
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    hpcfit = [sys.executable, "-m", "hpcfit", "run", "job.toml", "-o", output, "--checkpoint", "0.01"]
    return subprocess.Popen(
        [*mpirun, *hpcfit],
        cwd=folder,
        env=os.environ | ALLOWED,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(run: subprocess.Popen[str], number: signal.Signals) -> None:
    """A kill takes all processes of the run at once; a signal goes to the one that was started."""
    if number is signal.SIGKILL:
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)


def drill(folder: Path, kills: int, duration: float, seed: int, longest: float) -> Counter[str]:
    """Kill runs at moments up to `longest` seconds after their begin; what became of them."""
    (folder / "job.toml").write_text(JOB.replace("DURATION", str(duration)))
    whole = start(folder, 1, "whole.h5")
    _, said = whole.communicate()
    assert whole.returncode == 0, said
    random = np.random.default_rng(seed)
    tally: Counter[str] = Counter()
    while tally["kills"] < kills:
        ranks = int(random.integers(1, 3))
        number = signal.SIGKILL if random.random() < 0.5 else signal.SIGTERM
        run = start(folder, ranks, "cut.h5")
        try:
            _, said = run.communicate(timeout=random.uniform(0.0, longest))
        except subprocess.TimeoutExpired:
            kill(run, number)
            _, said = run.communicate(timeout=60)
            tally["kills"] += 1
            tally[f"{number.name}, {ranks} rank{'s' * (ranks > 1)}"] += 1
            tally["left early (75)"] += run.returncode == LEFT_EARLY
        assert "Traceback" not in said, said
        tally["went on from a checkpoint"] += "going on from block" in said
        tally["damaged checkpoints"] += "is damaged" in said
        if run.returncode == 0:
            tally["came to the end"] += 1
            tally["with other numbers"] += not identical(folder)
            (folder / "cut.h5").unlink()
    last = start(folder, 1, "cut.h5")
    _, said = last.communicate()
    assert last.returncode == 0, said
    tally["came to the end"] += 1
    tally["with other numbers"] += not identical(folder)
    left = [path.name for path in folder.iterdir() if path.name not in ("job.toml", "whole.h5", "cut.h5")]
    tally["files left behind"] = len(left)
    return tally


def identical(folder: Path) -> bool:
    """Whether both results have the same bits."""
    whole, cut = (load(folder / name).record for name in ("whole.h5", "cut.h5"))
    assert isinstance(whole, Spectrum)
    assert isinstance(cut, Spectrum)
    same = all(np.array_equal(getattr(whole, name), getattr(cut, name), equal_nan=True) for name in RATES)
    assert whole.history is not None
    assert cut.history is not None
    return (
        same
        and whole.steps == cut.steps
        and np.array_equal(whole.history.exponents, cut.history.exponents, equal_nan=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--duration", type=float, default=1_000_000.0)
    parser.add_argument("--longest", type=float, default=8.0, help="seconds from a begin to its kill")
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for path in asked.folder.iterdir():
        path.unlink()
    began = time.monotonic()
    tally = drill(asked.folder, asked.kills, asked.duration, asked.seed, asked.longest)
    for what, count in tally.items():
        print(f"{what:28} {count}")
    print(f"{'seconds':28} {time.monotonic() - began:.0f}")
    return 1 if tally["with other numbers"] or tally["files left behind"] else 0


if __name__ == "__main__":
    sys.exit(main())
