"""hpcfit run JOB.toml: do what a job says and write its result."""

from __future__ import annotations

import argparse
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpcfit.cluster.machine import describe
from hpcfit.commands.loading import Inputs, load, load_model
from hpcfit.commands.progress import ProgressLine
from hpcfit.commands.verb import new_verb
from hpcfit.files.results import Saved, is_result, save
from hpcfit.files.results import load as load_result
from hpcfit.jobfile.schema import RUNNABLE
from hpcfit.kernels.compiler import find_compiler, version
from hpcfit.mpi.together import on_root
from hpcfit.records import InputError, Mistake
from hpcfit.records import Path as Trajectory
from hpcfit.studies.simulate import simulate

log = logging.getLogger(__name__)
DONE, NOT_CONVERGED = 0, 3


def add(verbs: Any) -> None:
    parser = new_verb(
        verbs,
        "run",
        "run a job and write its result",
        "hpcfit run jobs/demo.toml -o demo.h5 --set simulate.tolerance=1e-10",
        "mpirun -n 4 hpcfit run jobs/demo.toml",
    )
    parser.add_argument("job", type=Path, help="job file (.toml)")
    parser.add_argument(
        "-o", "--output", type=Path, help="result file; default: the job's name with .h5, here"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the job"
    )
    parser.add_argument(
        "--member", type=int, default=0, metavar="K", help="which realisation of the noise (0)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the result of another job")
    parser.set_defaults(run=run, parallel=True)


def run(comm: Any, arguments: argparse.Namespace) -> int:
    return on_root(comm, lambda: _run(comm, arguments))


def _run(comm: Any, arguments: argparse.Namespace) -> int:
    if arguments.member < 0:
        raise InputError(Mistake("--member", f"{arguments.member} is negative", "members count from 0"))
    inputs = load(arguments.job, arguments.set)
    kind = inputs.job.kind
    if kind not in RUNNABLE:
        place = inputs.job.document.place("kind")
        raise InputError(
            Mistake(place, "this version cannot run it", f"it runs: {', '.join(RUNNABLE)}", "kind", kind)
        )
    target = arguments.output or Path(arguments.job.with_suffix(".h5").name)
    identity = f"{inputs.identity}-{arguments.member}"
    if _complete(target, identity, arguments.overwrite):
        log.info("%s is complete; nothing to do (--overwrite runs the job again)", target)
        return _status(load_result(target).record)
    started, clock = datetime.now(UTC), time.perf_counter()
    path = _simulate(inputs, arguments.member)
    seconds = time.perf_counter() - clock
    compiler = find_compiler()
    provenance = {
        **describe(),
        "compiler": version(compiler) if compiler else "",
        "ranks": comm.size,
        "job_file": str(arguments.job),
        "overrides": list(arguments.set),
        "member": arguments.member,
        "seed": inputs.job.seed,
        "sha256": dict(inputs.hashes),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
    }
    save(target, Saved(path, kind, inputs.job.document.text, identity, provenance))
    log.info("%s: %s in %.2f s -> %s", arguments.job, _said(path), seconds, target)
    return _status(path)


def _complete(target: Path, identity: str, overwrite: bool) -> bool:
    """True if the target holds this job's result; another job's result is not touched without leave."""
    if not target.exists():
        if not target.parent.is_dir():
            raise InputError(
                Mistake(str(target), "there is no such folder", f"make it: mkdir -p {target.parent}", "-o")
            )
        return False
    ours = is_result(target)
    if overwrite and ours:
        return False
    try:
        found = load_result(target)
    except InputError:
        remedy = "give --overwrite to run the job again" if ours else "move it away"
        raise InputError(
            Mistake(str(target), "exists and is not a complete result of hpcfit", remedy, "-o")
        ) from None
    if found.job_hash != identity:
        raise InputError(
            Mistake(
                str(target), "holds the result of another job", "choose another -o, or give --overwrite", "-o"
            )
        )
    return True


def _simulate(inputs: Inputs, member: int) -> Trajectory:
    job, model = inputs.job, load_model(inputs.job)
    truth, options = job["truth"], job["simulate"]
    progress = ProgressLine(f"simulating {model.name}")
    try:
        return simulate(
            model,
            start=truth["start"],
            parameters=truth["parameters"],
            times=inputs.times,
            sensitivities=options["sensitivities"],
            observe=_recorded(inputs),
            noise=truth["noise"],
            seed=job.seed,
            member=member,
            data=inputs.data,
            tolerance=options["tolerance"],
            method=options["method"],
            max_steps=options["max_steps"],
            watch=progress,
        )
    finally:
        progress.close()


def _recorded(inputs: Inputs) -> tuple[str, ...] | None:
    """What the job observes, and with data everything that the data can be compared with."""
    observe: tuple[str, ...] | None = inputs.job["simulate"]["observe"]
    if inputs.data is None or observe is None:
        return observe or (inputs.data.names if inputs.data else None)
    return (*observe, *(name for name in inputs.data.names if name not in observe))


def _said(path: Trajectory) -> str:
    return f"{path.outcome.value}{f' ({path.cause})' if path.cause else ''}"


def _status(path: Trajectory) -> int:
    return DONE if path.converged else NOT_CONVERGED
