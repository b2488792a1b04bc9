"""hpcfit run JOB.toml: do what a job says and write its result."""

from __future__ import annotations

import argparse
import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpcfit.cluster.machine import describe
from hpcfit.commands.loading import Inputs, load, load_model, placing
from hpcfit.commands.spectra import CHECKPOINT_SECONDS, run_spectrum, spectrum_key
from hpcfit.commands.sweeps import alone
from hpcfit.commands.verb import new_verb
from hpcfit.commands.work import WORK, Record, ensemble_in_rounds, members_of
from hpcfit.files.checkpoints import forget
from hpcfit.files.ensembles import EnsembleRows
from hpcfit.files.results import Saved, is_result, put_provenance, save, writing
from hpcfit.files.results import load as load_result
from hpcfit.jobfile.schema import RUNNABLE
from hpcfit.kernels.compiler import find_compiler, version
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, InputError, Mistake

log = logging.getLogger(__name__)
DONE, NOT_CONVERGED, LEFT_EARLY = 0, 3, 75


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
        "--member",
        type=int,
        metavar="K",
        help="which realisation of the noise (0), or which member of an ensemble alone; writes JOB-K.h5",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the result of another job")
    parser.add_argument(
        "--checkpoint",
        type=float,
        default=CHECKPOINT_SECONDS,
        metavar="SECONDS",
        help=f"between checkpoints of a spectrum; default: {CHECKPOINT_SECONDS:g}",
    )
    parser.set_defaults(run=run, parallel=True)


def run(comm: Any, arguments: argparse.Namespace) -> int:
    inputs = everywhere(comm, lambda: _inputs(comm, arguments))
    target = arguments.output or _usual_target(arguments.job, arguments.member)
    identity = on_root(comm, lambda: f"{inputs.identity}-{arguments.member or 0}")
    if on_root(comm, lambda: _complete(target, identity, arguments.overwrite)):
        if comm.rank == 0:
            log.info("%s is complete; nothing to do (--overwrite runs the job again)", target)
        return on_root(comm, lambda: _status(load_result(target).record))
    asked = _Asked(arguments, inputs, target, identity, datetime.now(UTC), time.perf_counter())
    if inputs.job.kind == "ensemble" and arguments.member is None:
        rename = spectrum_key if inputs.job["ensemble"]["of"] == "lyapunov" else str
        return placing(inputs.job, lambda: _run_in_rounds(comm, asked), rename)
    if inputs.job.kind == "lyapunov":
        return _run_with_checkpoints(comm, asked)
    return _run_at_once(comm, asked)


@dataclass(frozen=True)
class _Asked:
    """What is to be done and where its result goes."""

    arguments: argparse.Namespace
    inputs: Inputs
    target: Path
    identity: str
    started: datetime
    clock: float

    def provenance(self, comm: Any) -> dict[str, Any]:
        return _provenance(comm, self.arguments, self.inputs, self.started, time.perf_counter() - self.clock)

    def tell(self, how: str) -> None:
        seconds = time.perf_counter() - self.clock
        log.info("%s: %s in %.2f s -> %s", self.arguments.job, how, seconds, self.target)


def _run_at_once(comm: Any, asked: _Asked) -> int:
    """A result that is written when all is done."""
    job, member = asked.inputs.job, asked.arguments.member or 0
    kind = job["ensemble"]["of"] if job.kind == "ensemble" else job.kind
    record = placing(job, lambda: WORK[kind](comm, asked.inputs, member))

    provenance = on_root(comm, lambda: asked.provenance(comm))
    save(asked.target, Saved(record, kind, job.document.text, asked.identity, provenance), comm)
    on_root(comm, lambda: asked.tell(f"{record.outcome.value}{f' ({record.cause})' if record.cause else ''}"))
    return _status(record)


def _run_with_checkpoints(comm: Any, asked: _Asked) -> int:
    """A spectrum, which goes on from its newest checkpoint and can leave early."""
    job, options = (
        asked.inputs.job,
        {"seconds": asked.arguments.checkpoint, "anew": asked.arguments.overwrite},
    )
    record = placing(
        job, lambda: run_spectrum(comm, asked.inputs, asked.target, asked.identity, **options), spectrum_key
    )
    if record is None:
        return LEFT_EARLY
    spectrum = record

    def keep() -> None:
        provenance = asked.provenance(comm)
        save(asked.target, Saved(spectrum, "lyapunov", job.document.text, asked.identity, provenance))
        forget(asked.target)
        asked.tell(f"{spectrum.outcome.value}{f' ({spectrum.cause})' if spectrum.cause else ''}")

    on_root(comm, keep)
    return _status(spectrum)


def _run_in_rounds(comm: Any, asked: _Asked) -> int:
    """An ensemble, whose rows go to the file as its members end."""
    job = asked.inputs.job
    converged, members, of_spectra = 0, len(members_of(job)), job["ensemble"]["of"] == "lyapunov"
    rows: EnsembleRows | None = None
    with ExitStack() as stack:
        file = _opened(comm, stack, asked)
        for places, table in ensemble_in_rounds(comm, asked.inputs):

            def write(places: Any = places, table: EnsembleResult = table) -> None:
                nonlocal rows
                rows = rows or EnsembleRows(file, table, members)
                rows.put(places, table)

            on_root(comm, write)
            converged += sum(outcome is table.success for outcome in table.outcomes)

        def finish() -> None:
            put_provenance(file, asked.provenance(comm))
            stack.close()
            asked.tell(f"{converged} of {members} members {'done' if of_spectra else 'converged'}")

        on_root(comm, finish)
    return DONE if converged == members else NOT_CONVERGED


def _opened(comm: Any, stack: ExitStack, asked: _Asked) -> Any:
    """The file on rank 0; other ranks have none."""
    files: list[Any] = []

    def open_it() -> None:
        text = asked.inputs.job.document.text
        files.append(stack.enter_context(writing(asked.target, "ensemble", text, asked.identity)))

    on_root(comm, open_it)
    return files[0] if files else None


def _usual_target(job: Path, member: int | None) -> Path:
    return Path(f"{job.stem}{'' if member is None else f'-{member}'}.h5")


def _inputs(comm: Any, arguments: argparse.Namespace) -> Inputs:
    member = arguments.member
    if member is not None and member < 0:
        raise InputError(Mistake("--member", f"{member} is negative", "members count from 0"))
    if not arguments.checkpoint > 0.0:
        problem = f"{arguments.checkpoint:g} is not positive"
        raise InputError(Mistake("--checkpoint", problem, "give seconds between checkpoints"))
    inputs = load(arguments.job, arguments.set, by_rows=True, hashing=comm.rank == 0)
    job = inputs.job
    if job.kind == "lyapunov" and member is not None:
        raise InputError(Mistake("--member", "a spectrum has no members", "leave it out"))
    if key := job.not_runnable:
        place, known = job.document.place(key), f"it runs: {', '.join(RUNNABLE)}"
        raise InputError(Mistake(place, "this version cannot run it", known, key, job.kind))
    if job.kind == "ensemble" and member is not None and member not in (own := members_of(job)):
        problem = f"the ensemble has no member {member}"
        raise InputError(Mistake("--member", problem, f"give one of {own[0]} to {own[-1]}, or none for all"))
    if job.kind == "ensemble" and member is not None and job["ensemble"]["of"] == "lyapunov":
        return alone(inputs, member, load_model(job))[0]
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
        "member": arguments.member or 0,
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


def _status(record: Record) -> int:
    return DONE if record.converged else NOT_CONVERGED
