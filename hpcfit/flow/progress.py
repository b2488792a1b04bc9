"""Where each lane of a propagation is, and how a lane that cannot go on is taken out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.tangents import NumericField
from hpcfit.models.define import Model
from hpcfit.records import Array, Failure, Lanes, Outcome

Numbers = NDArray[np.int64]
Watch = Callable[[float], None]  # is told which part of the work is done

STEP_FLOOR = 16 * np.finfo(float).eps  # of the time
BLOWN_UP = 1e6  # growth of the state beyond which a stop at the step floor is called a blow-up


def unit_tangents(n: int, n_p: int, n_lanes: int, sensitivities: bool) -> Array:
    """Tangents (n, m, lanes) at the start: the unit matrix by start, zero by parameters."""
    tangents = np.zeros((n, n + n_p if sensitivities else 0, n_lanes))
    if sensitivities:
        tangents[np.arange(n), np.arange(n)] = 1.0
    return tangents


@dataclass
class Progress:
    """Time, state and tangents of all lanes, overwritten as they advance, and the outputs so far."""

    model: Model
    function: NumericField
    times: Array  # (L, T)
    parameters: Array  # (n_p, L)
    t: Array  # (L,)
    state: Array  # (n, L)
    tangents: Array  # (n, m, L)
    next_output: Numbers
    steps: Numbers
    alive: NDArray[np.bool_]
    out_states: Array  # (L, T, n)
    out_tangents: Array  # (L, T, n, m)
    failures: dict[int, Failure] = field(default_factory=dict)
    watch: Watch | None = None

    @classmethod
    def begin(
        cls, model: Model, times: Array, starts: Array, parameters: Array, sensitivities: bool
    ) -> Progress:
        """All lanes at their first time; lanes with input that is not finite never move."""
        (n_lanes, n_times), n, n_p = times.shape, starts.shape[1], parameters.shape[1]
        tangents = unit_tangents(n, n_p, n_lanes, sensitivities)
        progress = cls(
            model=model,
            function=NumericField(model),
            times=times,
            parameters=parameters.T.copy(),
            t=times[:, 0].copy(),
            state=starts.T.copy(),
            tangents=tangents,
            next_output=np.zeros(n_lanes, dtype=np.int64),
            steps=np.zeros(n_lanes, dtype=np.int64),
            alive=np.ones(n_lanes, dtype=bool),
            out_states=np.full((n_lanes, n_times, n), np.nan),
            out_tangents=np.full((n_lanes, n_times, *tangents.shape[:2]), np.nan),
        )
        everyone = np.arange(n_lanes)
        progress.write(everyone, progress.state, progress.tangents)
        progress._refuse_bad_input(starts, parameters)
        return progress

    def write(self, lanes: Numbers, state: Array, tangents: Array) -> None:
        """Store the next output of some lanes; a lane with all its outputs has finished."""
        self.out_states[lanes, self.next_output[lanes]] = np.moveaxis(state, -1, 0)
        self.out_tangents[lanes, self.next_output[lanes]] = np.moveaxis(tangents, -1, 0)
        self.next_output[lanes] += 1
        self.alive[lanes] &= self.next_output[lanes] < self.times.shape[1]

    def due(self, lanes: Numbers) -> Array:
        """The time of the next output of some lanes; infinite where there is none."""
        last = self.times.shape[1] - 1
        times = self.times[lanes, np.minimum(self.next_output[lanes], last)]
        return np.where(self.next_output[lanes] <= last, times, np.inf)

    def fail(self, lane: int, outcome: Outcome, cause: str) -> None:
        self.failures.setdefault(lane, Failure(lane, float(self.t[lane]), outcome, cause))
        self.alive[lane] = False

    def stop_spent(self, attempts: Numbers, max_steps: int) -> None:
        """Take out lanes whose budget of steps is spent."""
        for lane in np.flatnonzero(self.alive & (attempts >= max_steps)):
            self.fail_spent(int(lane), max_steps)

    def stop_tiny(self, h: Array, not_finite: NDArray[np.bool_]) -> None:
        """Take out lanes whose step `h` is below the floor."""
        end = self.times[:, -1]
        floor = np.minimum(STEP_FLOOR * np.maximum(np.abs(self.t), np.abs(end)), end - self.t)
        for lane in np.flatnonzero(self.alive & (h < floor)):
            self.fail_tiny(int(lane), float(h[lane]), bool(not_finite[lane]))

    def fail_spent(self, lane: int, max_steps: int) -> None:
        remaining = self.times[lane, -1] - self.t[lane]
        self.fail(lane, Outcome.STEP_BUDGET, f"{max_steps} steps, {remaining:.3g} time units to go")

    def fail_tiny(self, lane: int, h: float, not_finite: bool) -> None:
        """Say why the step had to become tiny: an operation without a value, or a blow-up."""
        size = float(np.abs(self.state[:, lane]).max())
        grown = size > BLOWN_UP * max(1.0, float(np.abs(self.out_states[lane, 0]).max()))
        if not_finite and not grown:
            self.fail(lane, Outcome.NOT_FINITE, self.culprit(lane, h))
        else:
            speed = float(np.abs(self.slope(lane)).max())
            self.fail(lane, Outcome.BLOW_UP, f"largest component {size:.3g}, largest slope {speed:.3g}")

    def slope(self, lane: int) -> Array:
        """f at the state of one lane."""
        state, parameters = self.state[:, [lane], None], self.parameters[:, [lane], None]
        return self.function(self.t[[lane]], state, parameters)[:, 0, 0]

    def culprit(self, lane: int, h: float = 0.0) -> str:
        """Which operation has no finite value, at the lane's state or some steps `h` ahead of it."""
        t, state, parameters = float(self.t[lane]), self.state[:, lane], self.parameters[:, lane]
        slope = self.slope(lane)
        for ahead in (0.0, *(h * 2.0**i for i in range(64 if h else 0))):
            at = state + ahead * np.where(np.isfinite(slope), slope, 0.0)
            if found := self.function.culprit(t + ahead, at, parameters):
                return found
        return "the derivatives are not finite"

    def _refuse_bad_input(self, starts: Array, parameters: Array) -> None:
        inputs = (("start of", self.model.states, starts), ("parameter", self.model.parameters, parameters))
        for kind, names, values in inputs:
            for lane, i in np.argwhere(~np.isfinite(values)):
                self.fail(int(lane), Outcome.BAD_INPUT, f"{kind} {names[i]} is {values[lane, i]}")
        for lane in np.flatnonzero(~np.isfinite(self.times).all(axis=1)):
            self.fail(int(lane), Outcome.BAD_INPUT, "a time is not finite")

    def tell(self) -> None:
        """Say how far the lanes have come."""
        if self.watch:
            first, last = self.times[:, 0], self.times[:, -1]
            covered = np.where(self.alive & (last > first), (self.t - first) / (last - first), 1.0)
            self.watch(float(covered.mean()))

    def lanes(self) -> Lanes:
        """What has been computed, as the record that callers get."""
        n, m = self.tangents.shape[:2]
        return Lanes(
            times=self.times,
            states=self.out_states,
            by_start=self.out_tangents[..., :n] if m else None,
            by_parameters=self.out_tangents[..., n:] if m else None,
            failures=tuple(self.failures[lane] for lane in sorted(self.failures)),
            steps=self.steps,
        )
