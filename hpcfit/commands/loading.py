"""From a job file to everything a study needs: the one way in for `run` and `check`."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hpcfit.files.tables import Table, read_table
from hpcfit.jobfile.check import Job, check
from hpcfit.jobfile.read import read_document
from hpcfit.jobfile.values import split_remedy
from hpcfit.models import pythonfile
from hpcfit.models.define import Model
from hpcfit.models.names import nearest
from hpcfit.mpi.together import agreed
from hpcfit.records import Array, InputError, Mistake, Noise, Series

log = logging.getLogger(__name__)
T = TypeVar("T")


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
    hashes: dict[str, str] = {}
    times, data = None, None
    if "data" in document.values:
        data = _series(job, _table(job, "data.file", job["data"]["file"], hashes))
        times = data.times
    elif job["truth"].get("times"):
        times = _times(job, hashes)
    if job["model"]["file"]:
        source = job.path(job["model"]["file"])
        hashes[job["model"]["file"]] = hashlib.sha256(source.read_bytes()).hexdigest()
    return Inputs(job, times, data, hashes)


def load_model(job: Job) -> Model:
    """The model of a job; a Python file of the user is run now, and that is said."""
    if job.model is not None:
        return job.model
    source = job.path(job["model"]["file"])
    log.info("running the model file %s", source)
    model = _named_by(job, "model.file", lambda: pythonfile.load(source, job["model"]["name"]))
    declared = (job.names.states or model.states, job.names.parameters or model.parameters)
    if (model.states, model.parameters) != declared:
        problem = f"the names of '{model.name}' differ from those written in its decorator"
        raise InputError(_mistake(job, "model.file", problem, "write them there as texts", str(source)))
    _, mistakes = check(job.document, model)
    if mistakes:
        raise InputError(mistakes)
    return model


def placing(job: Job, work: Callable[[], T]) -> T:
    """Do some work; mistakes that only show then get the line of their key in the job as their place."""
    try:
        return work()
    except InputError as error:
        known = getattr(error, "agreed", False)
        error = InputError([_placed(job, mistake) for mistake in error.mistakes])
        raise (agreed(error) if known else error) from None


def _placed(job: Job, mistake: Mistake) -> Mistake:
    place, key = mistake.place, mistake.key
    simulated = "data" not in job.document.values
    if place == "experiment":
        place, key = "", "truth.noise" if simulated else "data"
    elif key in ("data", "data.time") and simulated:
        key = "truth.times"
    return replace(mistake, key=key, place=place or job.document.place(key))


def _named_by(job: Job, key: str, read: Callable[[], T]) -> T:
    """Read a file that the job names; what is wrong with it stands beside the key that names it."""
    try:
        return read()
    except InputError as error:
        problem, remedy = split_remedy(str(error))
        raise InputError(_mistake(job, key, problem, remedy or "check the file")) from None


def _table(job: Job, key: str, name: str, hashes: dict[str, str]) -> Table:
    table = _named_by(job, key, lambda: read_table(job.path(name)))
    hashes[name] = table.sha256
    return table


def _times(job: Job, hashes: dict[str, str]) -> Array:
    grid = job["truth"]["times"]
    if "list" in grid:
        return np.array(grid["list"])
    if "file" in grid:
        table = _table(job, "truth.times", grid["file"], hashes)
        return _increasing(job, "truth.times", table, grid["column"])
    if "end" in grid:
        return np.linspace(grid["start"], grid["end"], grid["count"])
    return grid["start"] + grid["spacing"] * np.arange(grid["count"])


def _series(job: Job, table: Table) -> Series:
    """The columns of a data file that belong to the model's quantities."""
    times = _increasing(job, "data.time", table, job["data"]["time"])
    chosen = _columns(job, table)
    names = tuple(chosen)
    values = np.stack([_column(job, "data.columns", table, column) for column in chosen.values()], axis=1)
    if not np.isfinite(values).any():
        problem = f"{table.path} holds no value of {', '.join(names[:8])}"
        raise InputError(_mistake(job, "data.file", problem, "fill the columns"))
    if np.isinf(values).any():
        k, j = np.argwhere(np.isinf(values))[0]
        problem = f"{table.path}: row {k + 1}: {names[j]} is infinite"
        raise InputError(_mistake(job, "data.file", problem, "leave missing values empty"))
    return Series(names, times, values, _sigma(job, table, names, values))


def _columns(job: Job, table: Table) -> dict[str, str]:
    """The column of each quantity: given, or of the same name; a fit takes those that it observes."""
    known = job.names.quantities or job["fit"].get("observe") or ()
    chosen = dict(job["data"]["columns"]) or {name: name for name in table.columns if name in known}
    if not chosen:
        problem = f"no column of {table.path} is named like a state or observable"
        raise InputError(_mistake(job, "data.columns", problem, 'give columns = {state = "column"}'))
    wanted = job["fit"].get("observe") or tuple(chosen)
    for name in wanted:
        if name not in chosen:
            problem = f"{table.path} has no column '{name}'"
            remedy = f'give data.columns = {{{name} = "column"}}, or observe: {", ".join(chosen)}'
            raise InputError(_mistake(job, "fit.observe", problem, remedy))
    return {name: chosen[name] for name in wanted}


def _sigma(job: Job, table: Table, names: tuple[str, ...], values: Array) -> Array | None:
    """Standard deviations (n_times, n_names): numbers, or columns of the same file."""
    given = job["data"]["sigma"]
    if given is None:
        return None
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    lacking = [name for name in names if name not in by_name]
    if lacking and job.fits:
        problem = f"no standard deviation for {', '.join(lacking[:8])}"
        raise InputError(_mistake(job, "data.sigma", problem, "give one to each quantity", given))
    sigma = np.full(values.shape, np.nan)
    for j, name in enumerate(names):
        size = by_name.get(name, np.nan)
        sigma[:, j] = _column(job, "data.sigma", table, size) if isinstance(size, str) else size
        wrong = np.isfinite(values[:, j]) & ~(sigma[:, j] > 0.0)
        if isinstance(size, str) and wrong.any():
            k = int(np.argmax(wrong))
            problem = f"{table.path}: row {k + 1}: the standard deviation of {name} is {sigma[k, j]:g}"
            raise InputError(_mistake(job, "data.sigma", problem, "it must be positive", size))
    return sigma


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


def _mistake(job: Job, key: str, problem: str, remedy: str, value: object = None) -> Mistake:
    return Mistake(job.document.place(key), problem, remedy, key, value)
