"""Posing a long problem by parts: every rank reads its own rows, and nobody has them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hpcfit.linear.chain import Unknowns
from hpcfit.linear.segments import Numbers, Segments
from hpcfit.mpi.together import everywhere, gathered
from hpcfit.records import Array, Extent, Series, Source
from hpcfit.shooting.experiments import check_rows, check_timing, no_values, of_experiment
from hpcfit.shooting.grid import Cut, make_grid
from hpcfit.shooting.pose import Posed, Settled, check_count, check_whole, start_nodes
from hpcfit.shooting.slices import Slice
from hpcfit.shooting.sources import Wanted, taken
from hpcfit.shooting.summary import Summary


@dataclass(frozen=True)
class Whole:
    """A long problem before anybody has its data: what is fitted, where data are, how they are cut."""

    what: Settled
    sources: Sequence[Source]
    cuts: Sequence[Cut]

    @property
    def lengths(self) -> Numbers:
        """Nodes of every experiment (E,)."""
        return np.array([cut.nodes for cut in self.cuts])


@dataclass(frozen=True)
class _Stretch:
    """Some nodes of one experiment, and the rows of data that belong to them."""

    experiment: int
    cut: Cut
    first: int
    last: int  # node, not included

    @property
    def beyond(self) -> bool:
        """Whether the next rank's first node comes after it."""
        return self.last < self.cut.nodes

    @property
    def rows(self) -> int:
        """Of its own nodes."""
        return self.cut.row(self.last) - self.cut.row(self.first)

    @property
    def wanted(self) -> Wanted:
        """Also the row of the node beyond, where nodes are at rows: it tells its time."""
        further = int(self.beyond and self.cut.times is None)
        return Wanted(self.experiment, self.cut.row(self.first), self.cut.row(self.last) + further)


def pose_part(comm: Any, whole: Whole, segments: Segments, cost: Array | None = None) -> Posed:
    """This rank's part of the fit; `segments` are all.

    cost (S,): of all segments; without it nodes cost the same.
    """
    mine = segments.shares(comm.size, cost)[comm.rank]
    own, what = segments[mine], whole.what
    stretches = _stretches(whole, segments, mine)
    read = taken(comm, whole.sources, [each.wanted for each in stretches])
    series = [each.rows(0, stretch.rows) for each, stretch in zip(read, stretches, strict=True)]
    around = _around(comm, stretches, series)

    def begin() -> tuple[Slice, Unknowns]:
        times = _checked(whole, stretches, read)
        grid = make_grid([each.times for each in read], times, max(cut.inside for cut in whole.cuts))
        inner = what.problem(grid, read)
        count = int(own.nodes.sum())
        inner.weights[:, count:] = 0.0
        numbers = grid.experiment + stretches[0].experiment
        inner = replace(inner, grid=replace(grid, experiment=numbers))
        times = [each[: s.last - s.first] for each, s in zip(times, stretches, strict=True)]
        known = [
            one if s.cut.times is None and np.isfinite(one.values).all() else _with(one, beside)
            for s, one, beside in zip(stretches, series, around, strict=True)
        ]
        given = what.given(np.concatenate(times))
        nodes = start_nodes(what.model, times, known, [each.values[None] for each in known], given)
        return Slice(inner, own), Unknowns(nodes, what.parameters)

    problem, start = everywhere(comm, begin)
    parts = {s.experiment: (one, _by_segment(s, own)) for s, one in zip(stretches, series, strict=True)}
    has_sigma = [source.has_sigma for source in whole.sources]
    summary = Summary.across(comm, parts, what.names, own, has_sigma)
    _check_values(whole, summary)
    check_count(int(gathered(comm, problem.observed()).sum()), what, len(whole.cuts))
    return Posed(
        problem=problem,
        start=start,
        precision=summary.precision(what, [source.names for source in whole.sources]),
        rough=summary.rough(),
        sigma_known=all(has_sigma),
        experiments=_of_all(whole, stretches, series),
        given={},
        local=what.local,
        extent=_extent(whole, stretches, int(segments.nodes[: mine.start].sum())),
    )


def _stretches(whole: Whole, segments: Segments, mine: slice) -> list[_Stretch]:
    """What these segments are of each experiment."""
    own, found = segments[mine], []
    offsets = np.cumsum(whole.lengths) - whole.lengths
    firsts = segments.first[mine] - offsets[own.experiment]
    begins = np.flatnonzero(np.diff(own.experiment, prepend=-1))
    for a, b in zip(begins, [*begins[1:], len(own)], strict=True):
        e = int(own.experiment[a])
        found.append(_Stretch(e, whole.cuts[e], int(firsts[a]), int(firsts[b - 1] + own.nodes[b - 1])))
    return found


def _checked(whole: Whole, stretches: Sequence[_Stretch], read: Sequence[Series]) -> list[Array]:
    """The times of the nodes, of the node beyond too; what is wrong with the rows is raised."""
    times = []
    for each, series in zip(stretches, read, strict=True):
        with of_experiment(each.experiment, len(whole.cuts)):
            check_rows(series, each.wanted.first)
            if series.sigma_t is not None and whole.what.times != "exact":
                check_timing(whole.what.model)
        times.append(each.cut.node_times(each.first, each.last + each.beyond, series.times))
    if whole.what.model.kind == "map":
        check_whole([series.times for series in read], times)
    return times


def _check_values(whole: Whole, summary: Summary) -> None:
    for e, largest in enumerate(summary.largest):
        if not np.isfinite(largest).any():
            with of_experiment(e, len(whole.cuts)):
                raise no_values()


def _by_segment(stretch: _Stretch, own: Segments) -> list[slice]:
    """The rows of each segment of a stretch, from the first row of the stretch on."""
    nodes = own.nodes[own.experiment == stretch.experiment]
    ends = [stretch.cut.row(stretch.first + int(k)) for k in np.cumsum([0, *nodes])]
    return [slice(a - ends[0], b - ends[0]) for a, b in pairwise(ends)]


def _of_all(whole: Whole, stretches: Sequence[_Stretch], series: Sequence[Series]) -> tuple[Series, ...]:
    """The rows of each experiment that are here, of most of them none."""
    here = {stretch.experiment: one for stretch, one in zip(stretches, series, strict=True)}
    return tuple(here[e] if e in here else _empty(source) for e, source in enumerate(whole.sources))


def _empty(source: Source) -> Series:
    nothing = np.zeros((0, len(source.names)))
    sigma = nothing if source.has_sigma else None
    return Series(source.names, np.zeros(0), nothing, sigma, np.zeros(0) if source.has_sigma_t else None)


def _extent(whole: Whole, stretches: Sequence[_Stretch], first_node: int) -> Extent:
    rows = np.array([cut.rows for cut in whole.cuts])
    first = np.zeros_like(rows)
    for each in stretches:
        first[each.experiment] = each.cut.row(each.first)
    return Extent(int(whole.lengths.sum()), first_node, rows, first)


_Beside = tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float]]]  # time and value by name


def _around(comm: Any, stretches: Sequence[_Stretch], series: Sequence[Series]) -> list[_Beside]:
    """For each stretch, the last values before it and the first ones after it of the same experiment."""
    told = [(s.experiment, *_ends(one)) for s, one in zip(stretches, series, strict=True)]
    everybody = comm.allgather(told[:1] + told[1:][-1:])  # only these go on elsewhere
    found: list[_Beside] = []
    for e, _, _ in told:
        before: dict[str, tuple[float, float]] = {}
        after: dict[str, tuple[float, float]] = {}
        for part in everybody[: comm.rank]:  # nearer ones replace those further away
            for other, _, last in part:
                before |= last if other == e else {}
        for part in reversed(everybody[comm.rank + 1 :]):
            for other, first, _ in part:
                after |= first if other == e else {}
        found.append((before, after))
    return found


def _ends(series: Series) -> _Beside:
    """The first and the last values that are there, by name, each with its time."""
    first, last = {}, {}
    for column, name in zip(series.values.T, series.names, strict=True):
        there = np.flatnonzero(np.isfinite(column))
        if len(there):
            first[name] = (float(series.times[there[0]]), float(column[there[0]]))
            last[name] = (float(series.times[there[-1]]), float(column[there[-1]]))
    return first, last


def _with(series: Series, beside: _Beside) -> Series:
    """The series with a row for each value beside it, to interpolate what is missing."""
    before, after = (sorted((t, name, value) for name, (t, value) in side.items()) for side in beside)
    rows = [*before, *after]
    values = np.full((len(rows), len(series.names)), np.nan)
    for k, (_, name, value) in enumerate(rows):
        values[k, series.names.index(name)] = value
    parts = [values[: len(before)], series.values, values[len(before) :]]
    times = [np.array([t for t, _, _ in before]), series.times, np.array([t for t, _, _ in after])]
    return Series(series.names, np.concatenate(times), np.concatenate(parts))
