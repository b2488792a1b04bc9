"""The data files of a job as the series of its experiments; mistakes stand beside the key they belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcfit.files.recordings import RecordedColumns, is_recording, n_rows, read_recording, read_slice
from hpcfit.files.tables import Table, read_table
from hpcfit.jobfile.check import Job
from hpcfit.jobfile.values import split_remedy
from hpcfit.models.names import nearest
from hpcfit.records import Array, InputError, Mistake, Series, Source

T = TypeVar("T")
Rows = NDArray[np.int64]

LONG = 100_000  # rows of an HDF5 recording from which ranks read only those that they need


class Files:
    """The files of a job, each read once, with their hashes where these are wanted."""

    def __init__(self, job: Job, hashing: bool = True) -> None:
        self.job, self.hashing = job, hashing
        self.hashes: dict[str, str] = {}  # sha256 by file name
        self._tables: dict[str, Table] = {}

    def table(self, key: str, name: str) -> Table:
        """A file that the job names under a key."""
        if name not in self._tables:
            self._tables[name] = named_by(self.job, key, lambda: _read(self.job.path(name), self.hashing))
            self.hashes[name] = self._tables[name].sha256
        return self._tables[name]

    def hash(self, key: str, name: str) -> None:
        """Make a file that the job names, and others read, part of what the job asks for."""
        try:
            self.hashes[name] = hashlib.sha256(self.job.path(name).read_bytes()).hexdigest()
        except OSError as error:
            problem = f"{self.job.path(name)}: cannot be read: {error.strerror}"
            raise InputError(mistake(self.job, key, problem, "run the job that makes it first")) from None


def _read(path: Path, hashing: bool) -> Table:
    return read_recording(path, hashing) if is_recording(path) else read_table(path)


def named_by(job: Job, key: str, read: Callable[[], T]) -> T:
    """Read a file that the job names; what is wrong with it stands beside the key that names it."""
    try:
        return read()
    except InputError as error:
        problem, remedy = split_remedy(str(error))
        raise InputError(mistake(job, key, problem, remedy or "check the file")) from None


def mistake(job: Job, key: str, problem: str, remedy: str, value: object = None) -> Mistake:
    return Mistake(job.document.place(key), problem, remedy, key, value)


def recordings(job: Job, files: Files, by_rows: bool = False) -> list[Source]:
    """The series of all experiments of all tables [data]; all mistakes are raised together.

    by_rows: of long recordings only the names are looked at now.
    """
    found: list[Source] = []
    mistakes: list[Mistake] = []
    tables = job.several("data")
    for label, options in tables:
        try:
            table = files.table(f"{label}.file", options["file"])
            recording = _Recording(job, label, options, table, several=len(tables) > 1)
            found += [recording.by_rows()] if by_rows and recording.is_long() else recording.series()
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(mistakes)
    seen = {name for series in found for name in series.names}
    for name in job["fit"].get("observe") or ():
        if name not in seen:
            remedy = "give a column for it, or do not observe it"
            raise InputError(mistake(job, "fit.observe", f"no experiment has values of {name}", remedy))
    return found


def increasing_times(job: Job, key: str, table: Table, column: str) -> Array:
    """A column of times in a file, for one path."""
    source = _Recording(job, key, {"time": column}, table, several=False)
    times = source.column(key, column)
    source.check_increasing(key, times, np.arange(len(times)), "")
    return times


@dataclass(frozen=True)
class _Recording:
    """One file and what the job says of it."""

    job: Job
    label: str  # data, or data[2]
    options: Mapping[str, Any]
    table: Table
    several: bool  # other tables hold further experiments
    first: int = 0  # row of the table in the file

    def is_long(self) -> bool:
        """Whether ranks can read rows of their own, and should."""
        columns, time = self.table.columns, self.options["time"]
        whole = self.options["experiment"] is not None or isinstance(self.job["fit"].get("nodes"), list)
        hdf5 = isinstance(columns, RecordedColumns) and time in columns
        return self.job.kind == "fit" and hdf5 and not whole and n_rows(self.table.path, [time]) >= LONG

    def by_rows(self) -> Source:
        """The series of the one experiment, to be read later."""
        chosen, given = self._columns(), self.options["sigma"]
        sigma = given.values() if isinstance(given, Mapping) else [given]
        sizes = (each for each in (*sigma, self.options["sigma_t"]) if isinstance(each, str))
        needed = [self.options["time"], *chosen.values(), *sizes]
        for column in needed:
            self.check_column(f"{self.label}.columns", column)
        needed = list(dict.fromkeys(needed))
        count = named_by(self.job, f"{self.label}.columns", lambda: n_rows(self.table.path, needed))
        return _ByRows(self, tuple(chosen), count, given is not None, bool(self.options["sigma_t"]), needed)

    def series(self) -> list[Series]:
        """The columns that belong to the model's quantities; one series for each experiment."""
        whole = self.rows()
        if self.options["experiment"] is None:
            if not np.isfinite(whole.values).any():
                raise self._empty(whole.names)
            return [whole]
        return [self._part(whole, *group) for group in self._groups(whole.times)]

    def rows(self) -> Series:
        """All rows of the table, whatever experiment they belong to."""
        times = self.column(f"{self.label}.time", self.options["time"])
        chosen = self._columns()
        names = tuple(chosen)
        columns = [self.column(f"{self.label}.columns", column, times) for column in chosen.values()]
        values = np.stack(columns, axis=1)
        if np.isinf(values).any():
            k, j = np.argwhere(np.isinf(values))[0]
            row = self.first + k + 1
            raise self._wrong("file", f"row {row}: {names[j]} is infinite", "leave missing values empty")
        sigma = self._sigma(names, values, times)
        if self.options["experiment"] is None:
            rows = np.arange(self.first, self.first + len(times))
            self.check_increasing(f"{self.label}.time", times, rows, "")
        return Series(names, times, values, sigma, self._sigma_t(times))

    def _part(self, whole: Series, who: str, rows: Rows) -> Series:
        """The rows of one experiment, without the channels that it does not have."""
        names, times, values, sigma = whole.names, whole.times, whole.values, whole.sigma
        self.check_increasing(f"{self.label}.time", times[rows], rows, f"{who}: ")
        own = np.flatnonzero(np.isfinite(values[rows]).any(axis=0))
        if not len(own):
            raise self._empty(names, f"{who} ")
        cells = np.ix_(rows, own)
        return Series(
            tuple(names[j] for j in own),
            times[rows],
            values[cells],
            None if sigma is None else sigma[cells],
            None if whole.sigma_t is None else whole.sigma_t[rows],
        )

    def _groups(self, times: Array) -> list[tuple[str, Rows]]:
        """The rows of every experiment, in the order in which experiments appear."""
        key, name = f"{self.label}.experiment", self.options["experiment"]
        column = self.column(key, name, times)
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column))) + 1
            raise self._wrong("experiment", f"row {row} belongs to no experiment", "fill it", name)
        kinds, first, which = np.unique(column, return_index=True, return_inverse=True)
        order = np.argsort(which, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(which))[:-1])
        return [(f"{name} = {kinds[k]:g}", parts[k]) for k in np.argsort(first)]

    def _columns(self) -> dict[str, str]:
        """The column of each quantity: given, or of the same name; a fit takes those that it observes."""
        observe = self.job["fit"].get("observe")
        known = self.job.names.quantities or observe or ()
        chosen = dict(self.options["columns"]) or {name: name for name in known if name in self.table.columns}
        if not chosen:
            problem, remedy = "no column is named like a state or observable", 'give {state = "column"}'
            raise self._wrong("columns", problem, remedy)
        wanted = observe or tuple(chosen)
        if self.several:  # another table may have what this one lacks
            wanted = tuple(name for name in wanted if name in chosen)
            if not wanted:
                raise self._wrong(
                    "columns", f"nothing of {', '.join(observe or ())} is there", "name a column"
                )
        for name in wanted:
            if name not in chosen:
                problem = f"{self.table.path} has no column '{name}'"
                remedy = f'give data.columns = {{{name} = "column"}}, or observe: {", ".join(chosen)}'
                raise InputError(mistake(self.job, "fit.observe", problem, remedy))
        return {name: chosen[name] for name in wanted}

    def _sigma(self, names: tuple[str, ...], values: Array, times: Array) -> Array | None:
        """Standard deviations (n_times, n_names): numbers, or columns of the same file."""
        given = self.options["sigma"]
        if given is None:
            return None
        by_name = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
        lacking = [name for name in names if name not in by_name]
        key = f"{self.label}.sigma"
        if lacking and self.job.fits:
            problem = f"no standard deviation for {', '.join(lacking[:8])}"
            raise InputError(mistake(self.job, key, problem, "give one to each quantity", given))
        sigma = np.full(values.shape, np.nan)
        for j, name in enumerate(names):
            size = by_name.get(name, np.nan)
            sigma[:, j] = self.column(key, size, times) if isinstance(size, str) else size
            wrong = np.isfinite(values[:, j]) & ~(sigma[:, j] > 0.0)
            if isinstance(size, str) and wrong.any():
                k = int(np.argmax(wrong))
                row = self.first + k + 1
                problem = f"row {row}: the standard deviation of {name} is {sigma[k, j]:g}"
                raise self._wrong("sigma", problem, "it must be positive", size)
        return sigma

    def _sigma_t(self, times: Array) -> Array | None:
        """Standard deviations of the times (n_times,): a number, or a column of the same file."""
        given = self.options["sigma_t"]
        if not given:
            return None
        if not isinstance(given, str):
            return np.full(len(times), float(given))
        sizes = self.column(f"{self.label}.sigma_t", given, times)
        usable = (sizes >= 0.0) & (sizes < np.inf)
        if not usable.all():
            k = int(np.argmin(usable))
            problem = f"row {self.first + k + 1}: the standard deviation of the time is {sizes[k]:g}"
            raise self._wrong("sigma_t", problem, "give 0 where a time is exact", given)
        return sizes

    def check_increasing(self, key: str, times: Array, rows: Rows, who: str) -> None:
        """Times of the rows of one experiment, which have these numbers in the file."""
        path = self.table.path
        if not np.isfinite(times).all():
            row = int(rows[np.argmin(np.isfinite(times))]) + 1
            problem = f"{path}: {who}row {row} has no time"
            raise InputError(mistake(self.job, key, problem, "fill it or remove the row"))
        falls = np.flatnonzero(np.diff(times) <= 0.0)
        if len(falls):
            k = int(falls[0])
            after = f"{times[k + 1]:.15g} (row {rows[k + 1] + 1}) after {times[k]:.15g}"
            remedy = "sort the rows and remove repeated times"
            raise InputError(mistake(self.job, key, f"{path}: {who}times must increase: {after}", remedy))

    def column(self, key: str, column: str, times: Array | None = None) -> Array:
        """A column that the job names under a key; as long as the times."""
        self.check_column(key, column)
        values = named_by(self.job, key, lambda: self.table.columns[column])
        if times is not None and len(values) != len(times):
            rows = f"{column} has {len(values)} rows, but {self.options['time']} has {len(times)}"
            problem = f"{self.table.path}: {rows}"
            raise InputError(mistake(self.job, key, problem, "all columns need the same length"))
        return values

    def check_column(self, key: str, column: str) -> None:
        if column not in self.table.columns:
            problem = f"{self.table.path} has no column '{column}'"
            raise InputError(mistake(self.job, key, problem, nearest(column, self.table.columns)))

    def _empty(self, names: tuple[str, ...], who: str = "") -> InputError:
        shown = ", ".join(names[:8])
        problem = f"{who}holds no value of {shown}" if who else f"holds no value of {shown}"
        return self._wrong("file", problem, "fill the columns")

    def _wrong(self, key: str, problem: str, remedy: str, value: object = None) -> InputError:
        path, full = self.table.path, f"{self.label}.{key}"
        joint = " " if problem.startswith("holds") else ": "
        return InputError(mistake(self.job, full, f"{path}{joint}{problem}", remedy, value))


@dataclass(frozen=True)
class _ByRows:
    """A long recording of one experiment, of which rows are read and checked when they are asked for."""

    recording: _Recording
    names: tuple[str, ...]
    count: int
    has_sigma: bool
    has_sigma_t: bool
    needed: Sequence[str]  # columns

    def rows(self, first: int, last: int) -> Series:
        whole = self.recording
        columns = named_by(
            whole.job, f"{whole.label}.file", lambda: read_slice(whole.table.path, first, last, self.needed)
        )
        table = replace(whole.table, columns=columns)
        return replace(whole, table=table, first=first).rows()
