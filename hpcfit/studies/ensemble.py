"""Many fits of one problem, each with its own noise: a table of estimates, one row a member."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Numbers
from hpcfit.leastsq.gauss_newton import MAX_ITERATIONS, TOLERANCE
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.tickets import Tickets
from hpcfit.mpi.together import everywhere, exchanged, shares
from hpcfit.records import EnsembleResult, Noise, Path, Series
from hpcfit.shooting.grid import NodeChoice
from hpcfit.studies.members import (
    BY_MEMBER,
    FEWEST,
    MOST,
    Bench,
    FitBench,
    Rows,
    Setting,
    Supply,
    Truth,
    Wanted,
    in_one,
    no_rows,
)

ROUND = 4096  # members for every rank between two times at which ranks put their rows together

Watch = Callable[[float], None]


def fit_ensemble(
    model: Model,
    exact: Truth | Sequence[Truth],
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
    exact: Truth | Sequence[Truth],
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
    constraints: str | Sequence[str] = (),
    times: str = "measured",
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

    Of several experiments each has its own exact values and noise; where times have errors, values are those
    of a path, which tells what is seen at other times.
    The noise of a member depends on (seed, member) alone, its row on nothing else. Ranks take members as
    they need them, `side_by_side` at a time; `watch` is told the part that is done.
    """
    several = (exact,) if isinstance(exact, Series | Path) else tuple(exact)
    noises = (noise,) * len(several) if isinstance(noise, Noise) else tuple(noise)
    posing = {
        "guess": guess,
        "fixed": fixed,
        "nodes": nodes,
        "start": start,
        "weights": weights,
        "local": local,
        "constraints": constraints,
        "times": times,
        "method": method,
    }
    solving = {
        "tolerance": tolerance,
        "max_iterations": max_iterations,
        "level": level,
        "phases": phases,
    }
    bench = FitBench(model, lambda number: Setting(several, noises, posing, solving), seed)
    numbers = np.array(members, dtype=np.int64)
    wanted = Wanted(numbers, np.zeros_like(numbers))
    bench.check(comm, strict=True)
    for places, columns in rows_in_rounds(comm, bench, wanted, side_by_side=side_by_side, watch=watch):
        yield places, bench.table(numbers[places], columns, truth=truth or {})


def rows_in_rounds(
    comm: Any, bench: Bench, wanted: Wanted, *, side_by_side: int | None = None, watch: Watch | None = None
) -> Iterator[Rows]:
    """What all ranks have finished since the last round, on all of them; until nobody has anything left.

    A round ends for all when so many members have been taken, whoever took them: no rank waits for another.
    """
    with Tickets(comm) as tickets:
        supply = Supply(tickets, wanted)
        own = _watched(
            comm, bench.rows(wanted, supply, width(comm, bench, wanted, side_by_side)), supply, watch
        )
        number, going = 0, True
        while going:
            number += 1
            collect = partial(_collected, own, supply, number * ROUND * comm.size)
            found = comm.allgather(everywhere(comm, collect))
            parts = [part for part, _ in found if part]
            if parts:
                places, *columns = in_one([(part[0], part[1:]) for part in parts])
                yield places, columns
            going = not all(ended for _, ended in found)


def shared_rows(comm: Any, bench: Bench, wanted: Wanted, watch: Watch | None = None) -> Rows:
    """The rows of this rank's contiguous share of the wanted members, in their order, whoever made them."""
    with Tickets(comm) as tickets:
        supply = Supply(tickets, wanted)
        own = _watched(comm, bench.rows(wanted, supply, width(comm, bench, wanted, None)), supply, watch)
        found, _ = everywhere(comm, partial(_collected, own, supply, supply.total + 1))
    places, *columns = found or no_rows(bench)
    owners = np.searchsorted([of.stop for of in shares(comm, len(wanted))], places, side="right")
    parts = [(places[owners == k], [column[owners == k] for column in columns]) for k in range(comm.size)]
    places, *columns = in_one(exchanged(comm, parts))
    order = np.argsort(places)
    return places[order], [column[order] for column in columns]


def width(comm: Any, bench: Bench, wanted: Wanted, side_by_side: int | None) -> int:
    """How many members each rank has side by side."""
    usual = int(np.clip(len(wanted) // (2 * comm.size), FEWEST, MOST))
    return side_by_side or min(usual, bench.side_by_side)


def _watched(comm: Any, own: Iterator[Rows], supply: Supply, watch: Watch | None) -> Iterator[Rows]:
    """The same rows; somebody is told the part of all that is done."""
    done = 0
    for places, columns in own:
        done += len(places)
        if watch is not None:
            watch(min(done * comm.size / supply.total, 1.0))
        yield places, columns


def _collected(own: Iterator[Rows], supply: Supply, until: int) -> tuple[list[Any], bool]:
    """Rows of this rank until so many members are taken, and whether it has come to its end."""
    parts: list[Rows] = []
    for rows in own:
        parts.append(rows)
        if supply.taken >= until:
            return in_one(parts), False
    return in_one(parts), True
