"""Data against readings (2.6): the rows of the problem and their slopes; in machine code: `compiled.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcfit.linear.chain import Residuals, Unknowns
from hpcfit.records import Array
from hpcfit.shooting.grid import Grid
from hpcfit.shooting.readings import Readings


@dataclass(frozen=True)
class Intervals:
    """The path from every node to its outputs, of which the last is the next node; slopes if asked for."""

    ends: Array  # (M, N - 1, outputs, n)
    by_start: Array | None = None  # (M, N - 1, outputs, n, n)
    by_parameters: Array | None = None  # (M, N - 1, outputs, n, q)


@dataclass(frozen=True)
class Measurements:
    """What was read, and how well, by node and output. numpy's bodies: the measure of the compiled ones."""

    grid: Grid
    readings: Readings
    data: Array  # (M, N, outputs, o) NaN = missing
    weights: Array  # (1 or M, N, outputs, o) 1 / sigma; 0 = not considered
    free: tuple[int, ...]  # which parameters are unknown

    @property
    def have_shared_slopes(self) -> bool:
        """Whether the slopes are the same for all members: states are read at nodes, and none is missing."""
        at_nodes = self.data.shape[2] == 1
        return at_nodes and self.readings.only_states and bool(np.isfinite(self.data.sum()))

    def residuals(self, z: Unknowns, parameters: Array, flown: Intervals) -> Residuals:
        """F(z) (4.6) for parameters (M, n_p), of which some are fixed."""
        read = self.readings.values(
            self.grid.data_times, at_outputs(z, flown.ends), parameters[:, None, None]
        )
        rows = weighted(self.known_weights(), read - self.data)
        return Residuals(rows.reshape(*z.nodes.shape[:2], -1), defects(self.grid, z, flown))

    def slopes(self, z: Unknowns, parameters: Array, flown: Intervals) -> tuple[Array, Array]:
        """A (M, N, k, n) and B (M, N, k, q) of (4.8); what all members share is stored once."""
        members, nodes, n = z.nodes.shape
        by_state, by_own = self.readings.slopes(
            self.grid.data_times, at_outputs(z, flown.ends), parameters[:, None, None]
        )
        weights = self.known_weights()[..., None]
        by_state, by_own = weighted(weights, by_state), weighted(weights, by_own[..., self.free])
        if flown.ends.shape[2] > 1:
            by_state, by_own = from_nodes(by_state, by_own, flown)
        return (
            _rows_of_all(by_state, members, nodes, n),
            _rows_of_all(by_own, members, nodes, len(self.free)),
        )

    def known_weights(self) -> Array:
        """1 / sigma (1 or M, N, outputs, o); 0 where there are no data."""
        if np.isfinite(self.data.sum()):
            return self.weights
        return np.where(np.isfinite(self.data), self.weights, 0.0)


def defects(grid: Grid, z: Unknowns, flown: Intervals) -> Array:
    """x(tau_j+1; s_j, p) - s_j+1 (4.5) of all members (M, N - 1, n); 0 where an experiment ends."""
    gaps: Array = flown.ends[:, :, -1] - z.nodes[:, 1:]
    gaps[:, ~grid.linked] = 0.0
    return gaps


def at_outputs(z: Unknowns, ends: Array) -> Array:
    """States where data may be (M, N, outputs, n): at the node, and inside the interval."""
    if ends.shape[2] == 1:
        return z.nodes[:, :, None]
    members, nodes, n = z.nodes.shape
    outputs = np.zeros((members, nodes, ends.shape[2], n))
    outputs[:, :, 0] = z.nodes
    outputs[:, :-1, 1:] = ends[:, :, :-1]
    return outputs


def from_nodes(by_state: Array, by_own: Array, flown: Intervals) -> tuple[Array, Array]:
    """Slopes of readings at all outputs by the node before them and by the parameters."""
    assert flown.by_start is not None
    assert flown.by_parameters is not None
    members, links, inner, n, q = flown.by_parameters.shape
    to_node = np.zeros((members, links + 1, inner, n, n))
    to_node[:, :, 0] = np.eye(n)
    to_parameters = np.zeros((members, links + 1, inner, n, q))
    to_node[:, :-1, 1:] = flown.by_start[:, :, :-1]
    to_parameters[:, :-1, 1:] = flown.by_parameters[:, :, :-1]
    with np.errstate(invalid="ignore"):  # what is not finite ends the member, not the run
        return by_state @ to_node, by_state @ to_parameters + by_own


def _rows_of_all(slopes: Array, members: int, nodes: int, width: int) -> Array:
    """(M, N, rows, width) from (1 or M, 1 or N, outputs, o, width)."""
    shared = np.broadcast_to(slopes, (len(slopes), nodes, *slopes.shape[2:]))
    rows = shared.reshape(len(slopes), nodes, slopes.shape[2] * slopes.shape[3], width)
    return np.broadcast_to(np.ascontiguousarray(rows), (members, *rows.shape[1:]))


def weighted(weights: Array, values: Array) -> Array:
    """0 where the weight is 0, whatever the value: an observable need not exist where nobody looks."""
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0.0, weights * values, 0.0)
