"""Many fits of one problem, each with its own noise: a table of estimates, one row a member."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hpcfit.ensemble.noise import noisy_members, standard_deviations
from hpcfit.leastsq.course import Course, Numbers
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE
from hpcfit.leastsq.strategy import Options, plausible_objective, solve
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.tickets import Tickets
from hpcfit.mpi.together import everywhere, on_root
from hpcfit.records import EnsembleResult, Noise, Series
from hpcfit.shooting.grid import NodeChoice
from hpcfit.shooting.pose import Posed, pose
from hpcfit.shooting.slices import sliced
from hpcfit.studies.fit import (
    check_start,
    chosen_options,
    degrees_of_freedom,
    unknown_names,
    unknown_values,
)
from hpcfit.studies.local import local_names
from hpcfit.studies.long import segments_of

FEWEST, MOST = 64, 512  # members side by side on one rank
ROUND = 4096  # members for every rank between two times at which ranks put their rows together

BY_MEMBER = (
    "members",
    "estimates",
    "errors",
    "objective",
    "degrees_of_freedom",
    "iterations",
    "linearisations",
)

Watch = Callable[[float], None]


def fit_ensemble(
    model: Model,
    exact: Series | Sequence[Series],
    noise: Noise | Sequence[Noise],
    *,
    members: Sequence[int],
    **asked: Any,
) -> EnsembleResult:
    """Fit `exact` plus the noise of every member, as `ensemble_rounds`; the whole table, on all ranks."""
    return joined(list(ensemble_rounds(model, exact, noise, members=members, **asked)))


def joined(rounds: Sequence[tuple[Numbers, EnsembleResult]]) -> EnsembleResult:
    """All rounds of an ensemble in one table, in the order of the members."""
    order = np.argsort(np.concatenate([places for places, _ in rounds]))
    tables = [table for _, table in rounds]
    columns = {name: np.concatenate([getattr(table, name) for table in tables])[order] for name in BY_MEMBER}
    outcomes = [outcome for table in tables for outcome in table.outcomes]
    return replace(tables[-1], **columns, outcomes=tuple(outcomes[k] for k in order))


def ensemble_rounds(
    model: Model,
    exact: Series | Sequence[Series],
    noise: Noise | Sequence[Noise],
    *,
    seed: int,
    members: Sequence[int],
    guess: Mapping[str, float],
    fixed: Mapping[str, float] | None = None,
    nodes: NodeChoice = "data",
    start: Mapping[str, float | str] | None = None,
    weights: Mapping[str, float] | None = None,
    local: str | Sequence[str] = (),
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    level: str = "natural",
    phases: str = "auto",
    method: str | None = None,
    truth: Mapping[str, float] | None = None,
    side_by_side: int | None = None,
    comm: Any = SERIAL,
    watch: Watch | None = None,
) -> Iterator[tuple[Numbers, EnsembleResult]]:
    """Rows of the members that have ended since the last round, with their places in `members`, on all ranks.

    Of several experiments each has its own exact values and noise.
    The noise of a member depends on (seed, member) alone, its row on nothing else. Ranks take members as
    they need them, `side_by_side` at a time; `watch` is told the part that is done.
    """
    clock = time.perf_counter()
    several = [exact] if isinstance(exact, Series) else list(exact)
    noises = [noise] * len(several) if isinstance(noise, Noise) else list(noise)

    def begin() -> tuple[Posed, Options]:
        series = [
            replace(each, sigma=standard_deviations(each.values, each.names, own))
            for each, own in zip(several, noises, strict=True)
        ]
        posed = pose(
            model,
            series,
            guess=guess,
            fixed=fixed,
            nodes=nodes,
            start=start,
            weights=weights,
            local=local,
            method=method,
        )
        options = chosen_options(
            tolerance=tolerance, max_iterations=max_iterations, level=level, phases=phases, solver=None
        )
        return posed, options

    posed, options = everywhere(comm, begin)
    on_root(comm, lambda: check_start(posed))  # and compiles, for all ranks

    def noisy(places: Numbers) -> Posed:
        own = [members[place] for place in places.tolist()]
        values = []
        for e, (each, size) in enumerate(zip(several, noises, strict=True)):
            quantities = [model.quantities.index(name) for name in each.names]
            values.append(noisy_members(each.values, each.names, quantities, size, seed, own, e)[0])
        noisy = posed.with_values(values)
        return noisy if segments is None else sliced(SERIAL, noisy, segments)

    segments = segments_of(posed, level=level, solver=None)  # a long member fills the lanes alone
    width = side_by_side or int(np.clip(len(members) // (2 * comm.size), FEWEST, MOST))
    width = width if segments is None else 1
    with Tickets(comm) as tickets:
        supply = _Supply(tickets, len(members))
        own = _ended(noisy, supply, width, options)
        for places, columns in _rounds(comm, own, supply, watch or (lambda part: None)):
            found = np.array([members[place] for place in places.tolist()], dtype=np.int64)
            seconds = time.perf_counter() - clock
            yield places, _table(posed, found, columns, seed=seed, truth=truth or {}, seconds=seconds)


def _table(
    posed: Posed,
    members: Numbers,
    columns: Sequence[Any],
    *,
    seed: int,
    truth: Mapping[str, float],
    seconds: float,
) -> EnsembleResult:
    outcomes, *rows = columns
    model = posed.problem.model
    names = unknown_names(model, posed)
    return EnsembleResult(
        model=model.name,
        names=names,
        parameter_names=(
            *(model.parameters[k] for k in posed.problem.free),
            *local_names(names, posed.local),
        ),
        outcomes=tuple(outcomes),
        **dict(zip(BY_MEMBER, (members, *rows), strict=True)),
        truth={name: float(value) for name, value in truth.items() if name in names},
        seed=seed,
        seconds=seconds,
        units=model.units,
    )


class _Supply:
    """The next places of members, shared with all other ranks; `taken` is where all of them were by then."""

    def __init__(self, tickets: Tickets, total: int) -> None:
        self.tickets, self.total, self.taken = tickets, total, 0

    def __call__(self, count: int) -> Numbers:
        first = min(self.tickets.take(count), self.total)
        self.taken = min(first + count, self.total)
        return np.arange(first, self.taken)


def _ended(
    noisy: Callable[[Numbers], Posed], supply: _Supply, width: int, options: Options
) -> Iterator[tuple[Numbers, list[Any]]]:
    """Members of this rank as they come to their end, with their columns; others take their places."""
    places = supply(width)
    if not len(places):
        return
    posed = noisy(places)
    several = len(posed.experiments)
    course = Course.begin(posed.start, all_nodes=False, remembers=False, experiments=several)
    freedom = degrees_of_freedom(posed)
    largest = plausible_objective(freedom, posed.sigma_known)
    with np.errstate(all="ignore"):  # what is not finite is found and reported member by member
        for ended in solve(SERIAL, posed.problem, course, posed.precision, largest, options, posed.rough):
            yield places[ended], _columns(posed, course, freedom, ended)
            new = supply(len(ended))
            if len(new):
                free = ended[: len(new)]
                others = noisy(new)
                posed.problem.put(free, others.problem)
                places[free], freedom[free] = new, degrees_of_freedom(others)
                largest[free] = plausible_objective(freedom[free], posed.sigma_known)
                course.enter(free, others.start)


def _columns(posed: Posed, course: Course, freedom: Numbers, ended: Numbers) -> list[Any]:
    """Outcomes, estimates, errors, ... of members that have come to their end, as in EnsembleResult."""
    values, factors = unknown_values(posed, course.z.take(ended), course.spread.take(ended), freedom[ended])
    return [
        np.array([course.outcomes[member] for member in ended.tolist()], dtype=object),
        values,
        np.sqrt((factors**2).sum(axis=2)),
        course.spread.objective[ended],
        freedom[ended],
        course.iterations[ended],
        course.linearisations[ended],
    ]


def _rounds(
    comm: Any, own: Iterator[tuple[Numbers, list[Any]]], supply: _Supply, watch: Watch
) -> Iterator[tuple[Numbers, list[Any]]]:
    """What all ranks have finished since the last round, on all of them; until nobody has anything left.

    A round ends for all when so many members have been taken, whoever took them: no rank waits for another.
    """

    done = 0

    def collect(until: int) -> tuple[list[Any], bool]:
        """Rows of this rank until so many members are taken, and whether it has come to its end."""
        nonlocal done
        parts, ended = [], True
        for places, columns in own:
            parts.append([places, *columns])
            done += len(places)
            watch(min(done * comm.size / supply.total, 1.0))
            if supply.taken >= until:
                ended = False
                break
        return [np.concatenate(column) for column in zip(*parts, strict=True)], ended

    number, going = 0, True
    while going:
        number += 1
        found = comm.allgather(everywhere(comm, partial(collect, number * ROUND * comm.size)))
        parts = [part for part, _ in found if part]
        if parts:
            places, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
            yield places, columns
        going = not all(ended for _, ended in found)
