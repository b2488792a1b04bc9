"""Times of observation as unknowns (4.3): each is eliminated where it stands; the chain stays as it is.

A time t_i + sigma_t u_i takes part in the rows of its own values, (g(t_i + sigma_t u_i) - eta_i) / sigma, and
in one row that says how well it was measured, u_i. For given nodes the sum of their squares is minimised over
u_i; of the slopes by nodes and parameters that part is left which u_i cannot answer, (1 - c c^t / c^t c) J
with c = d rows / d u_i. Solutions, covariances and sums of squares are those of the problem with all u_i
(Golub and Pereyra 1973, with the slopes of Kaufman 1975).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import propagate
from hpcfit.linear.chain import Residuals, Unknowns
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.models.retimed import rates, retimed
from hpcfit.mpi.together import everywhere, gathered, share
from hpcfit.records import Array, Lanes
from hpcfit.shooting.measurements import (
    Intervals,
    Measurements,
    at_outputs,
    defects,
    from_nodes,
    weighted,
)

FARTHEST = 8.0  # standard deviations; a time that would be farther off stays there, and the path has to move
ROUNDS, ENOUGH = 24, 1e-11  # of the search for u, and the step at which it ends
MAX_STEPS = 2_000  # from a nominal time to the true one
STEEP = 4.0  # the slope of the condition that u meets is within this factor of c^t c

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Moved:
    """Where the path is when the data were taken (M, N, outputs, ...)."""

    u: Array  # in standard deviations of the times
    states: Array  # (..., n)
    times: Array
    free: Flags  # the time is unknown, and there is something to tell it
    by_state: Array | None = None  # (..., n, n) by the state at the nominal time
    by_parameters: Array | None = None  # (..., n, n_p)


@dataclass(frozen=True)
class Points:
    """Data whose times are unknown (L, ...): the path at the nominal times, and what was read."""

    states: Array  # (L, n)
    parameters: Array  # (L, n_p)
    times: Array  # (L,)
    sigma_t: Array  # (L,)
    data: Array  # (L, o) 0 where nothing was read
    weights: Array  # (L, o)

    def take(self, which: Any) -> Points:
        return Points(*(values[which] for values in vars(self).values()))


@dataclass(frozen=True)
class TimedMeasurements:
    """Measurements whose times have standard deviations (N, outputs); 0 = exact."""

    plain: Measurements
    model: Model
    sigma_t: Array
    tolerance: float | None
    method: str | None

    def residuals(self, comm: Any, z: Unknowns, parameters: Array, flown: Intervals) -> Residuals:
        """F(z) (4.6) at the best times; behind the values of each output the row of its time."""
        moved = self.moved(comm, z, parameters, flown)
        return Residuals(self._rows(moved, parameters), defects(self.plain.grid, z, flown))

    def linearised(
        self, comm: Any, z: Unknowns, parameters: Array, flown: Intervals
    ) -> tuple[Residuals, Array, Array]:
        """F(z), and A (M, N, k, n), B (M, N, k, q) of (4.8)."""
        moved = self.moved(comm, z, parameters, flown, slopes=True)
        assert moved.by_state is not None
        assert moved.by_parameters is not None
        what, (members, nodes, outputs, o) = self.plain, self.plain.data.shape
        at_point = parameters[:, None, None]
        by_state, by_own = what.readings.slopes(moved.times, moved.states, at_point)
        by_own = (by_own + by_state @ moved.by_parameters)[..., what.free]
        by_state = by_state @ moved.by_state
        if outputs > 1:
            by_state, by_own = from_nodes(by_state, by_own, flown)
        weights = what.known_weights()
        by_time = weighted(weights, self._rates(moved.times, moved.states, at_point))
        c = np.zeros((members, nodes, outputs, o + 1))
        c[..., :o] = self.sigma_t[..., None] * by_time
        c[..., o] = 1.0
        answers = np.where(moved.free[..., None], c / (c * c).sum(axis=-1, keepdims=True), 0.0)
        slopes = []
        for by in (by_state, by_own):
            own = np.zeros((*c.shape, by.shape[-1]))
            own[..., :o, :] = weighted(weights[..., None], by)
            own -= answers[..., None] * (c[..., None, :] @ own)
            slopes.append(own.reshape(members, nodes, outputs * (o + 1), -1))
        residuals = Residuals(self._rows(moved, parameters), defects(what.grid, z, flown))
        return residuals, slopes[0], slopes[1]

    def read(self, comm: Any, z: Unknowns, parameters: Array, flown: Intervals) -> tuple[Array, Array]:
        """What is read at the best times (M, N, outputs, o), and how far these are from the nominal ones."""
        moved = self.moved(comm, z, parameters, flown)
        read = self.plain.readings.values(moved.times, moved.states, parameters[:, None, None])
        return read, moved.u * self.sigma_t

    def moved(
        self, comm: Any, z: Unknowns, parameters: Array, flown: Intervals, *, slopes: bool = False
    ) -> Moved:
        """The best times, found by ranks that share the data."""
        what = self.plain
        weights = np.broadcast_to(what.known_weights(), what.data.shape)
        states = at_outputs(z, flown.ends).copy()
        times = np.broadcast_to(what.grid.data_times, what.data.shape[:3]).copy()
        sought = (weights > 0.0).any(axis=-1) & (self.sigma_t > 0.0)
        member, node, output = np.nonzero(sought)
        points = Points(
            states[sought],
            parameters[member],
            times[sought],
            self.sigma_t[node, output],
            np.nan_to_num(what.data[sought]),
            weights[sought],
        )
        mine = share(comm, len(member))
        own = points.take(slice(mine.start, mine.stop))
        found = everywhere(comm, lambda: self._found(own, slopes))
        u, *there = (gathered(comm, part) for part in found)
        offsets, free = np.zeros(sought.shape), sought.copy()
        offsets[sought], free[sought] = u, np.abs(u) < FARTHEST
        states[sought], times[sought] = there[0], points.times + u * points.sigma_t
        if not slopes:
            return Moved(offsets, states, times, free)
        n, n_p = states.shape[-1], parameters.shape[-1]
        by_state, by_parameters = np.zeros((*times.shape, n, n)), np.zeros((*times.shape, n, n_p))
        by_state[:] = np.eye(n)
        by_state[sought], by_parameters[sought] = there[1], there[2][..., :n_p]
        return Moved(offsets, states, times, free, by_state, by_parameters)

    def _found(self, points: Points, slopes: bool) -> tuple[Array, ...]:
        """u (L,), states (L, n), and their derivatives where they are wanted."""
        u = self._best(points)
        lanes = self._flown(points, u, sensitivities=slopes)
        if lanes.by_start is None or lanes.by_parameters is None:
            return u, lanes.states[:, 1]
        return u, lanes.states[:, 1], lanes.by_start[:, 1], lanes.by_parameters[:, 1]

    def _best(self, points: Points) -> Array:
        """u (L,) where c^t rows = 0: a Gauss-Newton step, then secants that keep to slopes near c^t c."""
        u = np.zeros(len(points.times))
        before = np.zeros_like(u)
        force, stiff = self._force(points, points.states, u)
        step = -force / stiff
        going = np.arange(len(u))
        for _ in range(ROUNDS):
            before[going], last = u[going], force
            u[going] = np.clip(u[going] + step, -FARTHEST, FARTHEST)
            change = u[going] - before[going]
            far = np.abs(change) > ENOUGH  # also ends those whose path was lost
            going, last, change = going[far], last[far], change[far]
            if not len(going):
                break
            some = points.take(going)
            force, stiff = self._force(some, self._flown(some, u[going]).states[:, 1], u[going])
            slope = np.clip((force - last) / change, stiff / STEEP, stiff * STEEP)
            step = -force / slope
        return u

    def _force(self, points: Points, states: Array, u: Array) -> tuple[Array, Array]:
        """c^t rows and c^t c (L,)."""
        times = points.times + u * points.sigma_t
        read = self.plain.readings.values(times, states, points.parameters)
        rows = weighted(points.weights, read - points.data)
        c = weighted(points.weights, self._rates(times, states, points.parameters)) * points.sigma_t[:, None]
        return (c * rows).sum(axis=1) + u, (c * c).sum(axis=1) + 1.0

    def _flown(self, points: Points, u: Array, *, sensitivities: bool = False) -> Lanes:
        """The path from the nominal times to these."""
        parameters = np.column_stack([points.parameters, u * points.sigma_t, points.times])
        return propagate(
            retimed(self.model),
            np.array([0.0, 1.0]),
            points.states,
            parameters,
            sensitivities=sensitivities,
            tolerance=self.tolerance,
            method=self.method,
            max_steps=MAX_STEPS,
        )

    def _rates(self, times: Array, states: Array, parameters: Array) -> Array:
        """dg/dt along the path (..., o)."""
        shape, program = states.shape[:-1], _rates_of(self.model, self.plain.readings.names)
        found = program(times, np.moveaxis(states, -1, 0), np.moveaxis(parameters, -1, 0))
        return np.stack([np.broadcast_to(column, shape) for column in found], axis=-1)

    def _rows(self, moved: Moved, parameters: Array) -> Array:
        """(g - eta) / sigma of all values of an output, then u (M, N, outputs (o + 1))."""
        what, (members, nodes, outputs, o) = self.plain, self.plain.data.shape
        read = what.readings.values(moved.times, moved.states, parameters[:, None, None])
        rows = np.zeros((members, nodes, outputs, o + 1))
        rows[..., :o] = weighted(what.known_weights(), read - what.data)
        rows[..., o] = moved.u
        return rows.reshape(members, nodes, -1)


@lru_cache(maxsize=32)
def _rates_of(model: Model, names: tuple[str, ...]) -> Program:
    assert model.graph is not None
    return Program(model.graph, rates(model, names))
