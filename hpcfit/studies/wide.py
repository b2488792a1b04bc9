"""Few trajectories with many tangents: ranks share the columns of each frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hpcfit.flow.frames import carry
from hpcfit.flow.frames_reference import vanished
from hpcfit.lyapunov.columns import Columns, orthonormal_columns
from hpcfit.models.define import Model
from hpcfit.mpi.together import everywhere
from hpcfit.records import Array, Bundle, Carried, Failure
from hpcfit.studies.carriers import Leg, Ride, invariants_at, part

FEWEST_COLUMNS = 64
MOST_TRAJECTORIES = 8


def is_wide(trajectories: int, columns: int, method: str) -> bool:
    """Whether ranks share tangents, not trajectories; the same for any number of ranks."""
    return columns >= FEWEST_COLUMNS and trajectories < MOST_TRAJECTORIES and method == "taylor"


class Wide:
    """Every rank goes along every orbit, to the same bits, and carries some of its tangents."""

    def __init__(self, comm: Any, model: Model, ride: Ride, bundle: Bundle) -> None:
        self._comm, self._model, self._ride = comm, model, ride
        self._columns = Columns(comm.rank, comm.size, bundle.frames.shape[2])
        frames = np.stack([self._columns.part(frame) for frame in bundle.frames])
        self._own = replace(bundle, states=bundle.states.copy(), frames=frames)

    def whole(self) -> Bundle:
        frames = [self._columns.whole(self._comm, frame) for frame in self._own.frames]
        return replace(self._own, frames=np.stack(frames))

    def advance(self, blocks: int) -> Leg:
        count, k = len(self._own.states), self._columns.count
        logarithms, divergence = np.full((count, blocks, k), np.nan), np.full((count, blocks), np.nan)
        steps, failures = np.zeros(count, dtype=np.int64), []
        for lane in range(count):
            for b in range(blocks):
                if not np.isfinite(self._own.states[lane]).all():
                    break
                done = self._through_a_block(lane, self._own.blocks + b)
                steps[lane] += done.steps
                if done.failure is not None:
                    failures.append(done.failure)
                    self._own.states[lane], self._own.frames[lane] = np.nan, np.nan
                else:
                    logarithms[lane, b], divergence[lane, b] = done.logarithms, done.divergence
        self._own = replace(self._own, blocks=self._own.blocks + blocks)
        invariants = invariants_at(self._model, self._ride, self._own)
        return Leg(logarithms, divergence, invariants, tuple(failures), steps)

    def _through_a_block(self, lane: int, number: int) -> _Block:
        """One trajectory to the end of a block, its frame orthonormal again."""
        ride, reached = self._ride, np.zeros(1)
        logarithms, divergence, steps = np.zeros(self._columns.count), 0.0, 0
        bundle = replace(part(self._own, np.array([lane])), blocks=number)
        while reached[0] < ride.block:
            carried = everywhere(self._comm, partial(self._carried, bundle, reached))
            bundle, reached, steps = carried.bundle, carried.reached, steps + int(carried.steps[0])
            if carried.failures:
                return _Block(logarithms, divergence, steps, replace(carried.failures[0], lane=lane))
            frame, sizes = orthonormal_columns(self._comm, self._columns, bundle.frames[0])
            if not (np.isfinite(sizes) & (sizes > 0.0)).all():
                time = ride.begin + number * ride.block + float(reached[0])
                return _Block(logarithms, divergence, steps, vanished(lane, time))
            bundle = replace(bundle, frames=frame[None])
            logarithms += np.log(sizes)
            divergence += float(carried.divergence[0])
        self._own.states[lane], self._own.frames[lane] = bundle.states[0], bundle.frames[0]
        return _Block(logarithms, divergence, steps, None)

    def _carried(self, bundle: Bundle, reached: Array) -> Carried:
        ride = self._ride
        return carry(
            self._model,
            bundle,
            reached,
            block=ride.block,
            interval=ride.interval,
            begin=ride.begin,
            method=ride.method,
            tolerance=ride.tolerance,
        )


@dataclass(frozen=True)
class _Block:
    """What one trajectory did in one block."""

    logarithms: Array  # (k,)
    divergence: float
    steps: int
    failure: Failure | None
