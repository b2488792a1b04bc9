"""From a job file to everything a study needs: the one way in for `run` and `check`."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcfit.files.tables import Table, read_table
from hpcfit.jobfile.check import Job, check
from hpcfit.jobfile.read import read_document
from hpcfit.models import pythonfile
from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.records import Array, InputError, Mistake, Noise, Series

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Inputs:
    """A job and the files that it names, read and checked."""

    job: Job
    times: Array | None
    data: Series | None
    hashes: Mapping[str, str]  # sha256 by file name

    @property
    def identity(self) -> str:
        """The same for two jobs exactly if they ask for the same computation."""
        asked = {"tables": {k: v for k, v in self.job.tables.items() if k != "cluster"}, "files": self.hashes}
        text = json.dumps(asked, sort_keys=True, default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Noise) else list(value)


def load(path: Path, overrides: Sequence[str] = ()) -> Inputs:
    """Read a job and its data; all mistakes are raised together. No user code is run."""
    document = read_document(path, overrides)
    job, mistakes = check(document)
    if job is None:
        raise InputError(mistakes)
    hashes = {}
    times, data = None, None
    try:
        if "data" in document.values:
            table = read_table(job.path(job["data"]["file"]))
            hashes[job["data"]["file"]] = table.sha256
            data = _series(job, table)
            times = data.times
        elif job["truth"].get("times"):
            times = _times(job, hashes)
        if job["model"]["file"]:
            source = job.path(job["model"]["file"])
            hashes[job["model"]["file"]] = hashlib.sha256(source.read_bytes()).hexdigest()
    except InputError as error:
        raise InputError([*mistakes, *(placed(job, each) for each in error.mistakes)]) from None
    return Inputs(job, times, data, hashes)


def load_model(job: Job) -> Model:
    """The model of a job; a Python file of the user is run now, and that is said."""
    if job.model is not None:
        return job.model
    source = job.path(job["model"]["file"])
    log.info("running the model file %s", source)
    model = pythonfile.load(source, job["model"]["name"])
    declared = (job.names.states or model.states, job.names.parameters or model.parameters)
    if (model.states, model.parameters) != declared:
        raise InputError(f"{source}: the names of '{model.name}' differ from those written in its decorator")
    return model


def placed(job: Job, mistake: Mistake) -> Mistake:
    """A mistake found beyond the job file, with the line of its key as its place if it has none."""
    return mistake if mistake.place else replace(mistake, place=job.document.place(mistake.key))


def _times(job: Job, hashes: dict[str, str]) -> Array:
    grid = job["truth"]["times"]
    if "list" in grid:
        return np.array(grid["list"])
    if "file" in grid:
        table = read_table(job.path(grid["file"]))
        hashes[grid["file"]] = table.sha256
        return _increasing(job, "truth.times", table, grid["column"])
    if "end" in grid:
        return np.linspace(grid["start"], grid["end"], grid["count"])
    return grid["start"] + grid["spacing"] * np.arange(grid["count"])


def _series(job: Job, table: Table) -> Series:
    """The columns of a data file that belong to the model's quantities."""
    options = job["data"]
    times = _increasing(job, "data.time", table, options["time"])
    chosen: dict[str, str] = dict(options["columns"])
    if not chosen:
        known = job.names.quantities or ()
        chosen = {name: name for name in table.columns if name in known}
    if not chosen:
        raise InputError(
            _mistake(
                job,
                "data.columns",
                f"no column of {table.path} is named like a state or observable",
                'give columns = {state = "column"}',
            )
        )
    for column in chosen.values():
        _column(job, "data.columns", table, column)
    values = np.stack([table.columns[column] for column in chosen.values()], axis=1)
    if not np.isfinite(values).any():
        raise InputError(_mistake(job, "data.file", f"{table.path} holds no value", "fill the columns"))
    return Series(tuple(chosen), times, values, _sigma(job, table, tuple(chosen), values))


def _sigma(job: Job, table: Table, names: tuple[str, ...], values: Array) -> Array | None:
    """Standard deviations (n_times, n_names): numbers, or columns of the same file."""
    given = job["data"]["sigma"]
    if given is None:
        return None
    sizes = [given.get(name, np.nan) if isinstance(given, Mapping) else given for name in names]
    columns = [_column(job, "data.sigma", table, size) if isinstance(size, str) else size for size in sizes]
    return np.stack([np.broadcast_to(column, len(values)) for column in columns], axis=1)


def _increasing(job: Job, key: str, table: Table, column: str) -> Array:
    times = _column(job, key, table, column)
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0]) + 1
        raise InputError(
            _mistake(job, key, f"{table.path}: row {row} has no time", "fill it or remove the row")
        )
    falls = np.flatnonzero(np.diff(times) <= 0.0)
    if len(falls):
        k = int(falls[0])
        problem = (
            f"{table.path}: times must increase: {times[k + 1]:.15g} (row {k + 2}) after {times[k]:.15g}"
        )
        raise InputError(_mistake(job, key, problem, "sort the rows and remove repeated times"))
    return times


def _column(job: Job, key: str, table: Table, column: str) -> Array:
    if column not in table.columns:
        problem = f"{table.path} has no column '{column}'"
        raise InputError(_mistake(job, key, problem, nearest(column, table.columns)))
    return table.columns[column]


def _mistake(job: Job, key: str, problem: str, remedy: str) -> Mistake:
    return Mistake(job.document.place(key), problem, remedy, key)
