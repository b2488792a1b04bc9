"""The boundary-value problem (4.4, 4.5): residuals and their linearisation by the compiled flow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import MAP_STEPS, METHODS, propagate
from hpcfit.flow.shots import Shots, can_shoot, shoot
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns, is_everybody
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import everywhere, gathered, share
from hpcfit.records import Array, Lanes
from hpcfit.shooting.compiled import measured
from hpcfit.shooting.conditions import PathConditions
from hpcfit.shooting.grid import Grid
from hpcfit.shooting.measurements import Intervals, Measurements
from hpcfit.shooting.readings import Readings
from hpcfit.shooting.timing import TimedMeasurements

Arrived = NDArray[np.bool_] | None

MAX_STEPS = 20_000  # from node to node; a trial that needs more has lost its way, and others wait for it


@dataclass(frozen=True)
class Problem:
    """A model, its nodes, and data for every member; of the parameters some are free."""

    model: Model
    grid: Grid
    readings: Readings
    data: Array  # (M, N, n_outputs - 1, o) NaN = missing
    weights: Array  # (1 or M, N, n_outputs - 1, o) 1 / sigma; 0 = not considered
    free: tuple[int, ...]  # which parameters are unknown
    fixed: Array  # (n_p,) values of the others
    tolerance: float | None = None
    method: str | None = None
    conditions: PathConditions | None = None
    sigma_t: Array | None = None  # (N, n_outputs - 1) of the times, 0 = exact; None: all are

    def take(self, members: Members) -> Problem:
        if is_everybody(members, len(self.data)):
            return self
        weights = self.weights if len(self.weights) == 1 else self.weights[members]
        return replace(self, data=self.data[members], weights=weights)

    def put(self, members: Members, other: Problem) -> None:
        """The data of others in the places of these members."""
        self.data[members] = other.data

    def roughly(self, tolerance: float) -> Problem:
        """The same, integrated no better than to a tolerance, where the integrator can do so cheaply."""
        if not can_shoot(self.model, self.method):
            return self
        return replace(self, tolerance=max(tolerance, self.tolerance or METHODS["taylor"].tolerance))

    def across(self, comm: Any) -> Across:
        """Every rank has all nodes."""
        return Across(comm)

    @property
    def members(self) -> int:
        return len(self.data)

    def observed(self) -> NDArray[np.int64]:
        """How many values each member is fitted to (M,)."""
        return np.count_nonzero(np.isfinite(self.data) & (self.weights > 0.0), axis=(1, 2, 3))

    def residuals(self, comm: Any, z: Unknowns) -> Residuals:
        """F(z) (4.6)."""
        parameters = self.all_parameters(z.parameters)
        flown, _ = self._integrate(comm, z, parameters, sensitivities=False)
        if self.timed is not None:
            found = self.timed.residuals(comm, z, parameters, flown)
        elif can_shoot(self.model, self.method):
            found = measured(self.model, self.measurements, z, parameters, flown, slopes=False).residuals
        else:
            found = self.measurements.residuals(z, parameters, flown)
        if self.conditions is None:
            return found
        return replace(found, conditions=self.conditions.values(z, parameters))

    def linearise(self, comm: Any, z: Unknowns) -> Chain:
        """F(z) and J(z) (4.8), with G and H of (4.11)."""
        parameters, what = self.all_parameters(z.parameters), self.measurements
        flown, arrived = self._integrate(comm, z, parameters, sensitivities=True)
        assert flown.by_start is not None
        assert flown.by_parameters is not None
        alive: Arrived = None
        if self.timed is not None:
            residuals, by_node, by_parameters = self.timed.linearised(comm, z, parameters, flown)
        elif arrived is None:
            residuals = what.residuals(z, parameters, flown)
            by_node, by_parameters = what.slopes(z, parameters, flown)
        else:
            shared = what.have_shared_slopes
            found = measured(self.model, what, z, parameters, flown, slopes=not shared)
            residuals, alive = found.residuals, arrived & found.finite
            if found.rows_by_node is None or found.rows_by_parameters is None:
                by_node, by_parameters = what.slopes(z, parameters, flown)
            else:
                by_node, by_parameters = found.rows_by_node, found.rows_by_parameters
        conditions = None if self.conditions is None else self.conditions.linearised(z, parameters)
        if conditions is not None:
            residuals = replace(residuals, conditions=conditions.values)
        return Chain(
            rows_by_node=by_node,
            rows_by_parameters=by_parameters,
            links_by_node=flown.by_start[:, :, -1],
            links_by_parameters=flown.by_parameters[:, :, -1],
            residuals=residuals,
            linked=self.grid.linked,
            alive=alive,
            arrivals=flown.ends[:, :, -1],
            conditions=conditions,
        )

    @property
    def measurements(self) -> Measurements:
        return Measurements(self.grid, self.readings, self.data, self.weights, self.free)

    @property
    def timed(self) -> TimedMeasurements | None:
        """The measurements where their times are unknown."""
        if self.sigma_t is None:
            return None
        return TimedMeasurements(self.measurements, self.model, self.sigma_t, self.tolerance, self.method)

    def read(self, comm: Any, z: Unknowns) -> tuple[Array, Array]:
        """What is read of the path (M, N, n_outputs - 1, o), and when, from the nominal times."""
        assert self.timed is not None
        parameters = self.all_parameters(z.parameters)
        flown, _ = self._integrate(comm, z, parameters, sensitivities=False)
        return self.timed.read(comm, z, parameters, flown)

    def failures(self, z: Unknowns) -> str:
        """Where member 0 cannot be integrated, for a person; '' if it can."""
        one, parameters = z.take(np.array([0])), self.all_parameters(z.parameters[:1])
        found = [
            (int(intervals[failure.lane]), failure)
            for intervals, columns in self.grid.pieces
            for failure in self._propagate(one, parameters, False, intervals, columns).failures
        ]
        if not found:
            return self._unreadable(one)
        j, first = min(found, key=lambda each: each[0])
        where = f"{self._experiment_of(j)}from the node at t = {self.grid.times[j]:g} to t = {first.time:g}"
        return f"{where}: {first.outcome.value} ({first.cause})"

    def steps(self, z: Unknowns) -> NDArray[np.int64]:
        """How many steps the integrator takes from each node of member 0 (N - 1,)."""
        one, parameters = z.take(np.array([0])), self.all_parameters(z.parameters[:1])
        found = np.zeros(len(self.grid.outputs), dtype=np.int64)
        for intervals, columns in self.grid.pieces:
            found[intervals] = self._propagate(one, parameters, False, intervals, columns).steps
        return found

    def _unreadable(self, one: Unknowns) -> str:
        """Where an observable or a condition of a path that exists is not finite; '' if all are."""
        if self.conditions is not None:
            values = self.conditions.values(one, self.all_parameters(one.parameters))[0]
            for text in (self.conditions.texts[k] for k in np.flatnonzero(~np.isfinite(values))):
                return f"with the constraint {text}, which has no finite value"
        rows = self.take(np.array([0])).residuals(SERIAL, one).rows.reshape(*self.data.shape[1:3], -1)
        if np.isfinite(rows).all():
            return ""
        node, output, column = np.argwhere(~np.isfinite(rows))[0]
        t, who = self.grid.data_times[node, output], self._experiment_of(node)
        return f"{who}at t = {t:g}: {(*self.readings.names, 'its time')[column]} is not finite"

    def _experiment_of(self, node: int) -> str:
        """Which of several experiments a node belongs to, for a person."""
        return f"in experiment {self.grid.experiment[node] + 1} " if self.grid.experiment[-1] else ""

    def all_parameters(self, free: Array) -> Array:
        """Free and fixed ones (M, n_p)."""
        whole = np.repeat(self.fixed[None], len(free), axis=0)
        whole[:, self.free] = free
        return whole

    def _integrate(
        self, comm: Any, z: Unknowns, parameters: Array, *, sensitivities: bool
    ) -> tuple[Intervals, Arrived]:
        """All intervals but their begin, and which members arrived everywhere, if that is known.

        Zero where an interval has no such output.
        """
        members, links = len(z.nodes), len(self.grid.outputs)
        shooting = can_shoot(self.model, self.method)
        whole: list[Array] = []
        arrived = np.ones(members, dtype=bool)
        for intervals, columns in self.grid.pieces:
            if shooting:
                parts, ended = self._shot(comm, z, parameters, sensitivities, intervals, columns)
                arrived &= ended
            else:
                work = partial(self._propagate, z, parameters, sensitivities, intervals, columns, comm)
                parts = self._gathered(comm, everywhere(comm, work), members, len(intervals))
            if len(intervals) == links:
                return Intervals(*parts), arrived if shooting else None
            outputs = (members, links, self.grid.outputs.shape[1] - 1)
            whole = whole or [np.zeros((*outputs, *part.shape[3:])) for part in parts]
            for table, part in zip(whole, parts, strict=True):
                table[:, intervals[:, None], columns[1:] - 1] = part
        return Intervals(*whole), arrived if shooting else None

    def _shot(
        self,
        comm: Any,
        z: Unknowns,
        parameters: Array,
        sensitivities: bool,
        intervals: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> tuple[list[Array], NDArray[np.bool_]]:
        """Some intervals of all members; ranks share the intervals."""
        mine = share(comm, len(intervals))
        own = intervals[mine.start : mine.stop]
        everything = len(own) == len(self.grid.outputs)
        shots = everywhere(
            comm,
            lambda: shoot(
                self.model,
                self.grid.outputs[own[:, None], columns],
                z.nodes if everything else z.nodes[:, own],
                parameters,
                sensitivities=sensitivities,
                tolerance=self.tolerance,
                max_steps=self._max_steps,
            ),
        )
        parts = [gathered(comm, part, axis=1) for part in self._parts(shots)]
        return parts, np.all(comm.allgather(shots.arrived), axis=0)

    def _gathered(self, comm: Any, lanes: Lanes, members: int, intervals: int) -> list[Array]:
        """The lanes of all ranks, by member and interval, without their begin."""
        shape = (members, intervals)
        after = replace(
            lanes,
            states=lanes.states[:, 1:],
            by_start=None if lanes.by_start is None else lanes.by_start[:, 1:],
            by_parameters=None if lanes.by_parameters is None else lanes.by_parameters[:, 1:],
        )
        return [gathered(comm, part).reshape(*shape, *part.shape[1:]) for part in self._parts(after)]

    def _parts(self, found: Shots | Lanes) -> list[Array]:
        """States, and derivatives by start and by the free parameters where they were asked for."""
        if found.by_start is None or found.by_parameters is None:
            return [found.states]
        every = self.free == tuple(range(len(self.fixed)))
        return [
            found.states,
            found.by_start,
            found.by_parameters if every else found.by_parameters[..., self.free],
        ]

    @property
    def _max_steps(self) -> int:
        return MAP_STEPS if self.model.kind == "map" else MAX_STEPS

    def _propagate(
        self,
        z: Unknowns,
        parameters: Array,
        sensitivities: bool,
        intervals: NDArray[np.int64],
        columns: NDArray[np.int64],
        comm: Any = SERIAL,
    ) -> Lanes:
        """This rank's part of the intervals of all members."""
        members, _, n = z.nodes.shape
        starts = z.nodes[:, intervals].reshape(-1, n)
        times = np.broadcast_to(
            self.grid.outputs[intervals[:, None], columns], (members, len(intervals), len(columns))
        )
        mine = share(comm, len(starts))
        lanes = slice(mine.start, mine.stop)
        return propagate(
            self.model,
            times.reshape(len(starts), -1)[lanes],
            starts[lanes],
            np.repeat(parameters, len(intervals), axis=0)[lanes],
            sensitivities=sensitivities,
            tolerance=self.tolerance,
            method=self.method,
            max_steps=self._max_steps,
        )
