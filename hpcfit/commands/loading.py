"""From a job file to everything a study needs: the one way in for `run` and `check`."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from datetime import time as clock
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hpcfit.commands.recordings import Files, increasing_times, mistake, named_by, recordings
from hpcfit.jobfile.check import Job, cell_job, check
from hpcfit.jobfile.read import read_document
from hpcfit.models import pythonfile
from hpcfit.models.define import Model
from hpcfit.mpi.together import agreed
from hpcfit.records import Array, InputError, Mistake, Noise, Series, Source

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Inputs:
    """A job and the files that it names, read and checked."""

    job: Job
    grids: tuple[Array, ...]  # the times of every experiment that is simulated or in memory
    recordings: tuple[Source, ...]  # of every experiment; empty: they are simulated
    hashes: Mapping[str, str]  # sha256 by file name

    @property
    def n_experiments(self) -> int:
        return len(self.recordings) or len(self.grids)

    @property
    def identity(self) -> str:
        """The same for two jobs exactly if they ask for the same computation."""
        return self._hashed({name: table for name, table in self.job.tables.items() if name != "cluster"})

    @property
    def campaign_identity(self) -> str:
        """The same for two ensembles exactly if one may continue the other: with more or fewer members."""
        tables = {name: table for name, table in self.job.tables.items() if name != "cluster"}
        tables["ensemble"] = {key: value for key, value in self.job["ensemble"].items() if key != "members"}
        return self._hashed(tables)

    def _hashed(self, tables: Mapping[str, Any]) -> str:
        asked: dict[str, Any] = {"tables": tables, "files": self.hashes}
        if self.job["ensemble"].get("grid"):  # the tables are those of the first cell
            free = ("cluster", "ensemble")
            asked["written"] = {k: v for k, v in self.job.document.values.items() if k not in free}
        text = json.dumps(asked, sort_keys=True, default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, date | clock):
        return str(value)  # TOML has them, no key does
    return asdict(value) if isinstance(value, Noise) else list(value)


def load(
    path: Path,
    overrides: Sequence[str] = (),
    copies: Mapping[str, Path] | None = None,
    *,
    by_rows: bool = False,
    hashing: bool = True,
) -> Inputs:
    """Read a job and its data, or copies of them; all mistakes are raised together. No user code is run.

    by_rows: long recordings are read later, by those who need some of their rows.
    """
    document = read_document(path, overrides, copies)
    job, mistakes = check(document)
    if job is None:
        raise InputError(mistakes)
    return with_files(job, by_rows=by_rows, hashing=hashing)


def of_cell(inputs: Inputs, chosen: Mapping[str, Any], model: Model) -> Inputs:
    """The same for one cell of a grid."""
    return with_files(cell_job(inputs.job, chosen, model))


def with_files(job: Job, *, by_rows: bool = False, hashing: bool = True) -> Inputs:
    """A job with the files that it names."""
    document = job.document
    files = Files(job, hashing)
    series: list[Source] = []
    if "data" in document.values:
        series = recordings(job, files, by_rows)
        _check_truths(job, len(series))
        grids = [each.times for each in series if isinstance(each, Series)]
    else:
        grids = [
            _times(files, label, truth["times"]) for label, truth in job.several("truth") if truth["times"]
        ]
    if job["model"]["file"]:
        source = job.path(job["model"]["file"])
        files.hashes[job["model"]["file"]] = hashlib.sha256(source.read_bytes()).hexdigest()
    if job["lyapunov"].get("from"):
        files.hash("lyapunov.from", job["lyapunov"]["from"])
    return Inputs(job, tuple(grids), tuple(series), files.hashes)


def _check_truths(job: Job, experiments: int) -> None:
    truths = job.several("truth")
    if len(truths) > 1 and len(truths) != experiments:
        problem = f"{len(truths)} tables [[truth]] for {experiments} experiments"
        raise InputError(mistake(job, truths[-1][0], problem, "give one to each, or one in all"))


def load_model(job: Job) -> Model:
    """The model of a job; a Python file of the user is run now, and that is said."""
    if job.model is not None:
        return job.model
    source = job.path(job["model"]["file"])
    log.info("running the model file %s", source)
    model = named_by(job, "model.file", lambda: pythonfile.load(source, job["model"]["name"]))
    declared = (job.names.states or model.states, job.names.parameters or model.parameters)
    if (model.states, model.parameters) != declared:
        problem = f"the names of '{model.name}' differ from those written in its decorator"
        raise InputError(mistake(job, "model.file", problem, "write them there as texts", str(source)))
    _, mistakes = check(job.document, model)
    if mistakes:
        raise InputError(mistakes)
    return model


def placing(job: Job, work: Callable[[], T], key: Callable[[str], str] = str) -> T:
    """Do some work; mistakes that only show then get the line of their key in the job as their place.

    `key` tells where an argument stands in the job.
    """
    try:
        return work()
    except InputError as error:
        known = getattr(error, "agreed", False)
        named = [each if each.place else replace(each, key=key(each.key)) for each in error.mistakes]
        error = InputError([_placed(job, each) for each in named])
        raise (agreed(error) if known else error) from None


def _placed(job: Job, wrong: Mistake) -> Mistake:
    """A mistake of a study, which knows experiments, at the key of the job that it comes from."""
    place, key, problem = wrong.place, wrong.key, wrong.problem
    simulated = "data" not in job.document.values
    source = "truth" if simulated else "data"
    kind, _, number = place.partition(" ")
    if kind == "experiment":
        place, key = "", key or ("truth.noise" if simulated else "data")
        problem = f"experiment {number}: {problem}" if number else problem
    if key in ("data", "data.time") and simulated:
        key = "truth.times"
    if key == "data.sigma_t" and simulated:
        key = "truth.noise.sd_t"
    if number and key.partition(".")[0] == source and len(job.several(source)) > 1:
        key = f"{source}[{number}]{key.removeprefix(source)}"
    return replace(wrong, key=key, problem=problem, place=place or job.document.place(key))


def _times(files: Files, label: str, grid: Mapping[str, Any]) -> Array:
    """The times at which an experiment is simulated."""
    if "list" in grid:
        return np.array(grid["list"])
    if "file" in grid:
        key = f"{label}.times"
        return increasing_times(files.job, key, files.table(key, grid["file"]), grid["column"])
    if "end" in grid:
        return np.linspace(grid["start"], grid["end"], grid["count"])
    times: Array = grid["start"] + grid["spacing"] * np.arange(grid["count"])
    return times
