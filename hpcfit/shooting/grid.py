"""Nodes: where the path is cut, and which data belong to which piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, InputError, Mistake

NodeChoice = str | int | Sequence[float] | Array  # "data", every k-th data time, or times


def node_times(times: Array, nodes: NodeChoice) -> Array:
    """The grid (4.1) for data at the given times."""
    if isinstance(nodes, str | int | np.integer):
        every = node_step(len(times), nodes)
        chosen = times[::every]
        return chosen if chosen[-1] == times[-1] else np.append(chosen, times[-1])
    _check_several(len(times))
    chosen = np.asarray(nodes, dtype=float)
    _check_cover(chosen, times)
    return chosen


def node_step(count: int, nodes: str | int | np.integer[Any]) -> int:
    """At every which of so many data times there is a node."""
    _check_several(count)
    if isinstance(nodes, str):
        if nodes != "data":
            raise _mistake("is unknown", 'give "data", a whole number or a list of times', nodes)
        return 1
    if nodes < 1:
        raise _mistake("must be 1 or more", "5 puts a node at every fifth time", nodes)
    return int(nodes)


def _check_several(count: int) -> None:
    if count < 2:
        problem = "only one time"
        raise InputError(Mistake("", problem, "a fit needs data at two times at least", "data"))


def _check_cover(nodes: Array, times: Array) -> None:
    falls = np.flatnonzero(np.diff(nodes) <= 0.0)
    if len(falls):
        k = int(falls[0])
        raise _mistake(f"must increase: {nodes[k + 1]:.15g} comes after {nodes[k]:.15g}", "sort the nodes")
    if not len(nodes) or nodes[0] > times[0] or nodes[-1] < times[-1]:
        span = f"{nodes[0]:g} to {nodes[-1]:g}" if len(nodes) else "nothing"
        problem = f"the nodes cover {span}, but the data go from {times[0]:g} to {times[-1]:g}"
        raise _mistake(problem, "add nodes at the ends", [float(node) for node in nodes])


def _mistake(problem: str, remedy: str, value: object = None) -> InputError:
    return InputError(Mistake("", problem, remedy, "fit.nodes", value))


@dataclass(frozen=True)
class Cut:
    """One experiment, cut at its nodes, by the numbers of nodes and of rows of its data."""

    nodes: int
    rows: int
    inside: int  # most rows between two nodes
    every: int = 1  # a node at every so many rows, and at the last
    times: Array | None = None  # of the nodes (nodes,), where they are not at rows
    begins: NDArray[np.int64] | None = None  # the first row of each node, then

    @classmethod
    def of(cls, count: int, choice: NodeChoice, times: Callable[[], Array]) -> Cut:
        """times: of all rows; only asked for where the nodes are given by their times."""
        if isinstance(choice, str | int | np.integer):
            every = node_step(count, choice)
            return cls((count - 2) // every + 2, count, min(every, count - 1) - 1, every)
        known = times()
        chosen = node_times(known, choice)
        begins = np.searchsorted(known, chosen)
        at_nodes = np.append(known, np.inf)[begins] == chosen
        inside = np.diff(begins, append=count) - at_nodes
        return cls(len(chosen), count, int(inside.max()), 0, chosen, begins)

    def row(self, node: int) -> int:
        """The first row of a node; behind the last node: the number of rows."""
        if node >= self.nodes:
            return self.rows
        return min(node * self.every, self.rows - 1) if self.begins is None else int(self.begins[node])

    def node_times(self, first: int, last: int, times: Array) -> Array:
        """Of some nodes, last not included; times: of the rows from that of the first node on."""
        if self.times is not None:
            return self.times[first:last]
        rows = np.minimum(np.arange(first, last) * self.every, self.rows - 1)
        return times[rows - self.row(first)]


@dataclass(frozen=True)
class Grid:
    """The nodes of all experiments in a row, and the outputs of the interval that begins at each.

    Output 0 of a node is the node itself; the last output of an interval is the next node. Nothing is
    integrated from the end of one experiment to the begin of the next.
    """

    times: Array  # (N,)
    experiment: NDArray[np.int64]  # (N,)
    outputs: Array  # (N - 1, n_outputs) times to integrate through; NaN: an interval has fewer of them
    node_of: tuple[NDArray[np.int64], ...]  # per experiment (n_times,): the node that a data time belongs to
    output_of: tuple[NDArray[np.int64], ...]  # per experiment (n_times,): the output at that node

    @cached_property
    def linked(self) -> NDArray[np.bool_]:
        """(N - 1,) False where an experiment ends."""
        same: NDArray[np.bool_] = self.experiment[1:] == self.experiment[:-1]
        return same

    @cached_property
    def data_times(self) -> Array:
        """Times at which there may be data (N, n_outputs - 1): of each node, then inside its interval."""
        inner = np.concatenate([self.outputs[:, 1:-1], np.zeros((1, self.outputs.shape[1] - 2))])
        return np.concatenate([self.times[:, None], inner], axis=1)

    @cached_property
    def pieces(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """Intervals that have the same number of outputs, and which outputs these are."""
        there = np.isfinite(self.outputs)
        lengths = np.where(self.linked, there.sum(axis=1), 0)
        groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths[lengths > 0])]
        return tuple((group, np.flatnonzero(there[group[0]])) for group in groups)


def make_grid(data_times: Sequence[Array], nodes: Sequence[Array], most: int = 0) -> Grid:
    """Cut every experiment at its nodes; most: room for so many data times between two nodes."""
    first = np.concatenate([[0], np.cumsum([len(each) for each in nodes])])
    node_of, slots = [], []
    for times, own, offset in zip(data_times, nodes, first, strict=False):
        local = np.searchsorted(own, times, side="right") - 1
        node_of.append(local + offset)
        inside = times > own[local]
        slots.append(_running(local, inside))
    most = max(most, *(int(slot.max(initial=0)) for slot in slots))
    times = np.concatenate(nodes)
    experiment = np.repeat(np.arange(len(nodes)), [len(each) for each in nodes])
    outputs = np.full((len(times), most + 2), np.nan)
    outputs[:, 0], outputs[:-1, -1] = times, times[1:]
    for own_times, node, slot in zip(data_times, node_of, slots, strict=True):
        outputs[node, slot] = own_times
    return Grid(times, experiment, outputs[:-1], tuple(node_of), tuple(slots))


def _running(node: NDArray[np.int64], inside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The output of each data time: 0 at its node, else 1, 2, ... within the interval."""
    count = np.cumsum(inside)
    begins = np.searchsorted(node, node)  # the first time of the same node
    return np.where(inside, count - count[begins] + inside[begins], 0)
