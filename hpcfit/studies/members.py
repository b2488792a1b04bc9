"""Members of an ensemble side by side on every rank; who has ended gives their place to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from hpcfit.ensemble.noise import noisy_members, standard_deviations
from hpcfit.leastsq.course import Course, Numbers
from hpcfit.leastsq.strategy import Options, plausible_objective, solve
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.segments import Segments
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.tickets import Tickets
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import Array, EnsembleResult, InputError, Noise, Path, Series
from hpcfit.shooting.pose import Posed, pose
from hpcfit.shooting.slices import Slice
from hpcfit.studies.fit import check_start, chosen_options, constrained_freedom, degrees_of_freedom
from hpcfit.studies.local import local_names
from hpcfit.studies.long import segments_of
from hpcfit.studies.result import unknown_names, unknown_values
from hpcfit.studies.simulate import seen_at_other_times, sigma_of_times

FEWEST, MOST = 64, 512  # members side by side on one rank
MOST_READY = 32  # problems that a rank keeps, as members of other tasks may need them again

BY_MEMBER = (
    "members",
    "estimates",
    "errors",
    "objective",
    "degrees_of_freedom",
    "iterations",
    "linearisations",
)

Truth = Series | Path  # exact values; of a path they can be had at any time
Rows = tuple[Numbers, list[Any]]  # places, and the columns of their rows: outcomes, estimates, errors, ...


@dataclass(frozen=True)
class Setting:
    """One problem of members that differ in their noise, and perhaps in their guesses."""

    exact: tuple[Truth, ...]  # of every experiment
    noise: tuple[Noise, ...]
    posing: Mapping[str, Any]  # guess, fixed, nodes, start, weights, local, times, method
    solving: Mapping[str, Any]  # tolerance, max_iterations, level, phases


@dataclass(frozen=True)
class Wanted:
    """The members that are to be computed (m,): random numbers, problems, guesses that differ."""

    realisations: Numbers
    settings: Numbers
    guesses: Mapping[str, Array] = field(default_factory=dict)  # by parameter

    def __len__(self) -> int:
        return len(self.realisations)


class Bench(Protocol):
    """What makes the rows of members, each of some problem."""

    side_by_side: int  # members on one rank, at most

    @property
    def names(self) -> tuple[str, ...]:
        """Of the unknowns, which are the same in all problems."""

    def check(self, comm: Any, *, strict: bool) -> None:
        """Compile the machine code of the first problem, once for all ranks.

        strict: a guess that cannot be integrated is a mistake; in a sweep over guesses it is a finding.
        """

    def rows(self, wanted: Wanted, supply: Supply, width: int) -> Iterator[Rows]:
        """Rows of members that come to their end on this rank; no communication."""

    def table(self, members: Numbers, columns: Sequence[Any], **known: Any) -> EnsembleResult:
        """Rows as a table, with what else is known."""


class FitBench:
    """Fits: problems are made ready on the rank that needs them, members go side by side."""

    side_by_side = MOST

    def __init__(self, model: Model, setting_of: Callable[[int], Setting], seed: int) -> None:
        self.model, self._setting_of, self._seed = model, setting_of, seed
        self._begun = time.perf_counter()
        self.ready = lru_cache(maxsize=MOST_READY)(self._ready)

    def _ready(self, number: int) -> Ready:
        setting = self._setting_of(number)
        series = [
            replace(
                exact,
                sigma=standard_deviations(exact.values, exact.names, own),
                sigma_t=sigma_of_times(exact, own),
            )
            for exact, own in zip(map(exact_of, setting.exact), setting.noise, strict=True)
        ]
        for each, own in zip(setting.exact, setting.noise, strict=True):
            if own.sd_t and isinstance(each, Series):
                raise InputError(
                    "times with errors need a path, not values alone; give what simulate returns"
                )
        posed = pose(self.model, series, **setting.posing)
        options = chosen_options(**setting.solving, solver=None)
        segments = segments_of(
            posed.problem.model,
            np.bincount(posed.problem.grid.experiment),
            method=posed.problem.method,
            level=setting.solving["level"],
            solver=None,
            constrained=posed.problem.conditions is not None,
        )
        return Ready(self.model, posed, options, segments, setting, self._seed)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the unknowns, which are the same in all problems."""
        posed = self.ready(0).posed
        return unknown_names(posed.problem.model, posed)

    def check(self, comm: Any, *, strict: bool) -> None:
        posed = everywhere(comm, lambda: self.ready(0)).posed
        on_root(comm, lambda: check_start(posed) if strict else posed.problem.failures(posed.start))

    def rows(self, wanted: Wanted, supply: Supply, width: int) -> Iterator[Rows]:
        while (setting := supply.setting(width)) is not None:
            ready = self.ready(setting)
            yield from _ended(ready, setting, wanted, supply, width if ready.segments is None else 1)

    def table(self, members: Numbers, columns: Sequence[Any], **known: Any) -> EnsembleResult:
        posed, names = self.ready(0).posed, self.names
        free = (posed.problem.model.parameters[k] for k in posed.problem.free)
        outcomes, *rows = columns
        truth = {name: float(value) for name, value in known.pop("truth").items() if name in names}
        return EnsembleResult(
            model=posed.problem.model.name,
            names=names,
            parameter_names=(*free, *local_names(names, posed.local)),
            outcomes=tuple(outcomes),
            **dict(zip(BY_MEMBER, (members, *rows), strict=True)),
            truth=truth,
            seed=self._seed,
            seconds=time.perf_counter() - self._begun,
            units=posed.problem.model.units,
            **known,
        )


@dataclass(frozen=True)
class Ready:
    """A problem that only lacks the noise of its members."""

    model: Model  # as it was given
    posed: Posed
    options: Options
    segments: Segments | None  # of a long member, which fills the lanes alone
    setting: Setting
    seed: int

    def noisy(self, realisations: Numbers, guesses: Mapping[str, Array]) -> Posed:
        """The fits of members (m,) with these random numbers, from these guesses where they differ."""
        model, values = self.posed.problem.model, []
        for e, (each, size) in enumerate(zip(self.setting.exact, self.setting.noise, strict=True)):
            exact, seen, numbers = exact_of(each), None, realisations.tolist()
            quantities = [model.quantities.index(name) for name in exact.names]
            if isinstance(each, Path):
                seen = seen_at_other_times(self.model, each, size, self.seed, numbers, e)
            drawn = noisy_members(exact.values, exact.names, quantities, size, self.seed, numbers, e, seen)
            values.append(drawn[0])
        posed = self.posed.with_values(values)
        if guesses:
            posed = replace(posed, start=_begun(posed, guesses))
        return posed if self.segments is None else replace(posed, problem=Slice(posed.problem, self.segments))


def exact_of(truth: Truth) -> Series:
    """The values without noise."""
    if isinstance(truth, Series):
        return truth
    assert truth.exact is not None
    return truth.exact


def _begun(posed: Posed, guesses: Mapping[str, Array]) -> Unknowns:
    """The start with the members' own guesses of some parameters."""
    parameters = posed.start.parameters.copy()
    names = [posed.problem.model.parameters[k] for k in posed.problem.free]
    for name, values in guesses.items():
        parameters[:, names.index(name)] = values
    return Unknowns(posed.start.nodes, parameters)


class Supply:
    """Places of the wanted members, problem by problem, shared with all other ranks.

    `taken` is where all of them were when this rank took its last.
    """

    def __init__(self, tickets: Tickets, wanted: Wanted) -> None:
        self.total, self.taken = len(wanted), 0
        self._tickets, self._settings = tickets, wanted.settings
        self._order = np.argsort(wanted.settings, kind="stable")
        self._held = np.empty(0, dtype=np.int64)  # places of this rank that wait for the next problem

    def setting(self, count: int) -> int | None:
        """The problem of the next places; None if there are no more."""
        if not len(self._held):
            self._held = self._next(count)
        return int(self._settings[self._held[0]]) if len(self._held) else None

    def of(self, setting: int, count: int) -> Numbers:
        """At most `count` places of this problem."""
        if not len(self._held):
            self._held = self._next(count)
        same = self._settings[self._held] == setting
        own = self._held[same][:count]
        self._held = np.concatenate([self._held[same][count:], self._held[~same]])
        return own

    def _next(self, count: int) -> Numbers:
        first = min(self._tickets.take(count), self.total)
        self.taken = min(first + count, self.total)
        return self._order[first : self.taken]


def _ended(ready: Ready, setting: int, wanted: Wanted, supply: Supply, width: int) -> Iterator[Rows]:
    """Members of one problem; others take the places of those that have ended."""

    def noisy(places: Numbers) -> Posed:
        guesses = {name: values[places] for name, values in wanted.guesses.items()}
        return ready.noisy(wanted.realisations[places], guesses)

    places = supply.of(setting, width)
    while len(places):
        posed = noisy(places)
        course = Course.begin(
            posed.start,
            all_nodes=False,
            remembers=False,
            experiments=len(posed.experiments),
            conditions=len(posed.problem.conditions or ()),
        )
        freedom = degrees_of_freedom(posed)
        largest = plausible_objective(freedom, posed.sigma_known)
        with np.errstate(all="ignore"):  # what is not finite is found and reported member by member
            for ended in solve(
                SERIAL, posed.problem, course, posed.precision, largest, ready.options, posed.rough
            ):
                yield places[ended], _columns(posed, course, freedom, ended)
                new = supply.of(setting, len(ended))
                if len(new):
                    free = ended[: len(new)]
                    others = noisy(new)
                    posed.problem.put(free, others.problem)
                    places[free], freedom[free] = new, degrees_of_freedom(others)
                    largest[free] = plausible_objective(freedom[free], posed.sigma_known)
                    course.enter(free, others.start)
        places = supply.of(setting, width)


def _columns(posed: Posed, course: Course, freedom: Numbers, ended: Numbers) -> list[Any]:
    """Outcomes, estimates, errors, ... of members that have come to their end, as in EnsembleResult."""
    spread = course.spread.take(ended)
    freedom = constrained_freedom(posed, spread, freedom[ended])
    values, factors = unknown_values(posed, course.z.take(ended), spread, freedom)
    return [
        np.array([course.outcomes[member] for member in ended.tolist()], dtype=object),
        values,
        np.sqrt((factors**2).sum(axis=2)),
        course.spread.objective[ended],
        freedom,
        course.iterations[ended],
        course.linearisations[ended],
    ]


def in_one(parts: Sequence[Rows]) -> list[Any]:
    """Places and columns of several parts as one list of arrays; empty without parts."""
    return [np.concatenate(column) for column in zip(*([p, *c] for p, c in parts), strict=True)]


def no_rows(bench: Bench) -> list[Any]:
    """What `in_one` would give of parts without a row."""
    numbers, values = np.empty(0, dtype=np.int64), np.empty((0, len(bench.names)))
    return [numbers, np.empty(0, dtype=object), values, values, np.empty(0), numbers, numbers, numbers]
