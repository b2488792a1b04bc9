"""hpcfit run JOB.toml: do what a job says and write its result."""

from __future__ import annotations

import argparse
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpcfit.cluster.machine import describe
from hpcfit.commands.loading import Inputs, load, placing
from hpcfit.commands.verb import new_verb
from hpcfit.commands.work import WORK, Record
from hpcfit.files.results import Saved, is_result, save
from hpcfit.files.results import load as load_result
from hpcfit.jobfile.schema import RUNNABLE
from hpcfit.kernels.compiler import find_compiler, version
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, InputError, Mistake, Outcome

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
    inputs = everywhere(comm, lambda: _inputs(arguments))
    target = arguments.output or Path(arguments.job.with_suffix(".h5").name)
    identity = f"{inputs.identity}-{arguments.member}"
    if on_root(comm, lambda: _complete(target, identity, arguments.overwrite)):
        if comm.rank == 0:
            log.info("%s is complete; nothing to do (--overwrite runs the job again)", target)
        return on_root(comm, lambda: _status(load_result(target).record))
    started, clock = datetime.now(UTC), time.perf_counter()
    record = placing(inputs.job, lambda: WORK[inputs.job.kind](comm, inputs, arguments.member))
    seconds = time.perf_counter() - clock

    def keep() -> None:
        provenance = _provenance(comm, arguments, inputs, started, seconds)
        save(target, Saved(record, inputs.job.kind, inputs.job.document.text, identity, provenance))
        log.info("%s: %s in %.2f s -> %s", arguments.job, _said(record), seconds, target)

    on_root(comm, keep)
    return _status(record)


def _inputs(arguments: argparse.Namespace) -> Inputs:
    if arguments.member < 0:
        raise InputError(Mistake("--member", f"{arguments.member} is negative", "members count from 0"))
    inputs = load(arguments.job, arguments.set)
    job = inputs.job
    if key := job.not_runnable:
        place, known = job.document.place(key), f"it runs: {', '.join(RUNNABLE)}"
        asked = job.kind if key == "kind" else job["ensemble"]["of"]
        raise InputError(Mistake(place, "this version cannot run it", known, key, asked))
    if job.kind == "ensemble" and arguments.member:
        problem = f"{arguments.member} given, but an ensemble runs all of its members"
        raise InputError(Mistake("--member", problem, 'leave it out, or use kind = "fit"'))
    return inputs


def _provenance(
    comm: Any, arguments: argparse.Namespace, inputs: Inputs, started: datetime, seconds: float
) -> dict[str, Any]:
    compiler = find_compiler()
    return {
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


def _said(record: Record) -> str:
    if isinstance(record, EnsembleResult):
        done = sum(outcome is Outcome.CONVERGED for outcome in record.outcomes)
        return f"{done} of {len(record.outcomes)} members converged"
    return f"{record.outcome.value}{f' ({record.cause})' if record.cause else ''}"


def _status(record: Record) -> int:
    return DONE if record.converged else NOT_CONVERGED
