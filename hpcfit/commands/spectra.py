"""Spectra from job files, with checkpoints: left early at any moment, they go on where they were."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

from hpcfit.cluster.machine import describe
from hpcfit.commands.loading import Inputs, load_model
from hpcfit.commands.progress import SpectrumLine
from hpcfit.files import checkpoints
from hpcfit.files.checkpoints import Checkpoint
from hpcfit.files.results import load as load_result
from hpcfit.jobfile.check import Job
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import FitResult, InputError, Mistake, Spectrum
from hpcfit.studies.spectrum import Stage, spectrum_stages
from hpcfit.studies.spectrum_asked import Asked, check_asked

log = logging.getLogger(__name__)
CHECKPOINT_SECONDS = 60.0
NOTED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
BITS = ("hpcfit", "numpy", "cpu")  # of a machine and its programs, which may change the last bits


def run_spectrum(
    comm: Any, inputs: Inputs, target: Path, identity: str, *, seconds: float, anew: bool
) -> Spectrum | None:
    """The spectrum of a job, from its newest checkpoint on; None if it had to leave early."""
    model = everywhere(comm, lambda: load_model(inputs.job))
    arguments = on_root(comm, lambda: spectrum_arguments(inputs))
    last = on_root(comm, lambda: _last(target, identity, anew))
    keeper = _Keeper(comm, target, identity, seconds, last.number if last else 0)
    unit = "iterations" if model.kind == "map" else "time units"
    line = SpectrumLine(f"spectrum of {model.name}", unit) if comm.rank == 0 else None
    try:
        with _noting() as noted:
            stages = spectrum_stages(comm, model, **arguments, resume=last.halt if last else None)
            for stage in stages:
                if stage.result is not None:
                    return stage.result
                if line:
                    line(stage.done, stage.covered, stage.estimate)
                if keeper.look(stage, noted):
                    _tell_leaving(comm, inputs, stage, noted)
                    return None
    finally:
        if line is not None:
            line.close()
    raise AssertionError("a spectrum without an end")


class _Keeper:
    """Keeps checkpoints by time, and when any rank was asked to leave."""

    def __init__(self, comm: Any, target: Path, identity: str, seconds: float, number: int) -> None:
        self._comm, self._target, self._identity = comm, target, identity
        self._seconds, self._number = seconds, number
        self._due = time.monotonic() + seconds
        self._bits = on_root(comm, _bits)

    def look(self, stage: Stage, noted: list[int]) -> bool:
        """Keep a checkpoint if it is time; True if all ranks are to leave (collective)."""
        told = self._comm.allgather((bool(noted), time.monotonic() >= self._due))
        leaving = any(asked for asked, _ in told)
        if leaving or told[0][1]:
            self._number += 1
            checkpoint = Checkpoint(stage.halt(), self._identity, self._bits, self._number)
            on_root(self._comm, lambda: checkpoints.keep(self._target, checkpoint))
            self._due = time.monotonic() + self._seconds
        return leaving


def check_spectrum(inputs: Inputs) -> None:
    """Find what is wrong with a spectrum without computing it and without user code."""
    arguments = spectrum_arguments(inputs)
    if inputs.job.model is not None:
        check_asked(inputs.job.model, **arguments)


def spectrum_key(key: str) -> str:
    """Where an argument of the study stands in a job."""
    head, _, rest = key.partition(".")
    if head in ("start", "parameters"):
        return f"truth.{key}"
    own = head in {field.name for field in fields(Asked)} or head in ("from", "section")
    return f"lyapunov.{key}" if own else f"{head}{rest and '.'}{rest}"


def spectrum_arguments(inputs: Inputs) -> dict[str, Any]:
    """What the study is called with."""
    job = inputs.job
    options, truth = job["lyapunov"], job["truth"]
    names = {field.name for field in fields(Asked)} - {"seed"}
    given = {name: options[name] for name in names}
    return {
        "asked": Asked(**given, seed=job.seed),
        "start": truth.get("start"),
        "parameters": truth.get("parameters") if truth else None,
        "fit": _fit(job, options),
    }


def _fit(job: Job, options: Mapping[str, Any]) -> FitResult | None:
    """The fit that a job takes its values from."""
    if not options["from"]:
        return None
    place, key = job.document.place("lyapunov.from"), "lyapunov.from"
    try:
        record = load_result(job.path(options["from"])).record
    except InputError as error:
        raise InputError(Mistake(place, *_halves(str(error)), key)) from None
    if not isinstance(record, FitResult):
        problem = f"{options['from']} holds no fit"
        raise InputError(Mistake(place, problem, "give the result of a job of kind fit", key))
    if not record.converged:
        log.warning("%s: the fit did not converge: %s", options["from"], record.outcome.value)
    return record


def _halves(message: str) -> tuple[str, str]:
    problem, _, remedy = message.partition("; ")
    return problem, remedy or "run the fit first"


def _last(target: Path, identity: str, anew: bool) -> Checkpoint | None:
    """The checkpoint to go on from."""
    if anew:
        checkpoints.forget(target)
        return None
    last = checkpoints.newest(target)
    for path in checkpoints.paths(target):
        checkpoints.sweep(path)
    if last is None:
        return None
    if last.job_hash != identity:
        path = checkpoints.paths(target)[last.number % 2]
        problem = "is a checkpoint of another job"
        remedy = "choose another -o, or give --overwrite to begin anew"
        raise InputError(Mistake(str(path), problem, remedy, "-o"))
    if last.provenance != _bits():
        log.warning("%s was begun with %s: last bits may differ", target, last.provenance)
    blocks = last.halt.bundle.blocks
    log.info("going on from block %s of checkpoint %d", f"{blocks:,}", last.number)
    return last


def _bits() -> str:
    machine = describe()
    return ", ".join(f"{name} {machine[name]}" for name in BITS)


def _tell_leaving(comm: Any, inputs: Inputs, stage: Stage, noted: list[int]) -> None:
    if comm.rank == 0:
        why = signal.Signals(noted[0]).name if noted else "a signal to another rank"
        place = inputs.job.document.path
        log.warning(
            "%s: left early (%s), %.1f %% are done and kept; the same command goes on",
            place,
            why,
            100.0 * stage.done,
        )


@contextmanager
def _noting() -> Iterator[list[int]]:
    """Signals that ask to leave are noted, to be looked at when everything is in order."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # the second one is meant at once

    before = {number: signal.signal(number, note) for number in NOTED}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
