"""hpcfit check JOB.toml: every mistake at once; nothing is written and no user code is run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcfit.commands.loading import load, placing
from hpcfit.commands.spectra import check_spectrum, spectrum_key
from hpcfit.commands.sweeps import plan_of
from hpcfit.commands.verb import new_verb
from hpcfit.commands.work import check_fit
from hpcfit.records import Array, InputError, Mistake


def add(verbs: Any) -> None:
    parser = new_verb(verbs, "check", "find every mistake in job files", "hpcfit check jobs/*.toml")
    parser.add_argument("jobs", type=Path, nargs="+", metavar="JOB", help="job files (.toml)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the jobs"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    mistakes: list[Mistake] = []
    for job in arguments.jobs:
        try:
            print(_line(job, arguments.set))
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)
    return 0


def _line(path: Path, overrides: list[str]) -> str:
    inputs = load(path, overrides)
    job = inputs.job
    if job.fits:
        placing(job, lambda: check_fit(inputs))
    if "lyapunov" in (job.kind, job["ensemble"].get("of")):
        placing(job, lambda: check_spectrum(inputs), spectrum_key)
    file = job["model"]["file"]
    not_run = f" ({file} was read, not run)" if file else ""
    later = f"; this version cannot run it ({job.not_runnable})" if job.not_runnable else ""
    cells = plan_of(job).cells if job.kind == "ensemble" else 1
    of_grid = f", {cells:,} cells" if cells > 1 else ""
    return f"{path}: ok: {job.kind} {job.names.name}{_times(inputs.grids)}{of_grid}{not_run}{later}"


def _times(grids: Sequence[Array]) -> str:
    if not grids:
        return ""
    experiments = f", {len(grids):,} experiments" if len(grids) > 1 else ""
    first, last = min(grid[0] for grid in grids), max(grid[-1] for grid in grids)
    return f"{experiments}, {sum(map(len, grids))} times {first:g}..{last:g}"
