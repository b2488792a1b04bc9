"""Trajectories with their tangent frames on ranks, carried on from block to block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.frames import grow
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.mpi.together import everywhere, share
from hpcfit.records import Array, Bundle, Failure

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ride:
    """How trajectories are carried: the same for all of them."""

    block: float
    interval: float
    begin: float
    method: str | None
    tolerance: float | None


@dataclass(frozen=True)
class Leg:
    """What some blocks brought, for all trajectories and on all ranks."""

    logarithms: Array  # (L, r, k)
    divergence: Array  # (L, r)
    invariants: Array  # (L,) at its end; empty where the model has none
    failures: tuple[Failure, ...]
    steps: Numbers  # (L,)


class Carrier(Protocol):
    """Who carries a bundle on."""

    def advance(self, blocks: int) -> Leg:
        """Take all trajectories through so many blocks (collective)."""

    def whole(self) -> Bundle:
        """All trajectories as they are now, on all ranks (collective)."""


class Dealt:
    """Every rank carries some of the trajectories; the bits of each depend on itself alone."""

    def __init__(self, comm: Any, model: Model, ride: Ride, bundle: Bundle) -> None:
        self._comm, self._model, self._ride = comm, model, ride
        self._first = share(comm, len(bundle.states)).start
        self._own = part(bundle, np.array(share(comm, len(bundle.states)), dtype=np.int64))

    def advance(self, blocks: int) -> Leg:
        own = everywhere(self._comm, lambda: self._grown(blocks))
        legs: list[Leg] = self._comm.allgather(own)
        return Leg(
            logarithms=np.concatenate([leg.logarithms for leg in legs]),
            divergence=np.concatenate([leg.divergence for leg in legs]),
            invariants=np.concatenate([leg.invariants for leg in legs]),
            failures=tuple(failure for leg in legs for failure in leg.failures),
            steps=np.concatenate([leg.steps for leg in legs]),
        )

    def whole(self) -> Bundle:
        return joined(self._comm.allgather(self._own))

    def _grown(self, blocks: int) -> Leg:
        """Those that have not stopped go on; the others hold NaN."""
        own, going = self._own, np.flatnonzero(np.isfinite(self._own.states).all(axis=1))
        (count, _, k), ride = own.frames.shape, self._ride
        logarithms, divergence = np.full((count, blocks, k), np.nan), np.full((count, blocks), np.nan)
        steps, failures = np.zeros(count, dtype=np.int64), tuple[Failure, ...]()
        end = replace(own, blocks=own.blocks + blocks)
        if going.size:
            grown = grow(
                self._model,
                part(own, going),
                blocks=blocks,
                block=ride.block,
                interval=ride.interval,
                begin=ride.begin,
                method=ride.method,
                tolerance=ride.tolerance,
            )
            logarithms[going], divergence[going], steps[going] = (
                grown.logarithms,
                grown.divergence,
                grown.steps,
            )
            failures = tuple(
                replace(each, lane=self._first + int(going[each.lane])) for each in grown.failures
            )
            end = with_part(end, going, grown.bundle)
        self._own = end
        return Leg(logarithms, divergence, invariants_at(self._model, ride, end), failures, steps)


def invariants_at(model: Model, ride: Ride, bundle: Bundle) -> Array:
    """The invariant of every trajectory (L,); empty where the model has none."""
    if model.graph is None or model.invariant is None:
        return np.empty(0)
    time = ride.begin + bundle.blocks * ride.block
    (values,) = Program(model.graph, [model.invariant])(time, bundle.states.T, bundle.parameters.T)
    return np.broadcast_to(values, (len(bundle.states),)).copy()


def part(bundle: Bundle, lanes: Numbers) -> Bundle:
    """Some trajectories of a bundle."""
    arrays = {name: getattr(bundle, name)[lanes] for name in ("states", "frames", "parameters")}
    return replace(bundle, **arrays, low=bundle.low and part(bundle.low, lanes))


def with_part(bundle: Bundle, lanes: Numbers, own: Bundle) -> Bundle:
    """A bundle of which some trajectories have moved."""
    arrays = {name: getattr(bundle, name).copy() for name in ("states", "frames")}
    for name, array in arrays.items():
        array[lanes] = getattr(own, name)
    low = None if own.low is None else with_part(_low(bundle), lanes, own.low)
    return replace(bundle, **arrays, low=low)


def joined(bundles: Sequence[Bundle]) -> Bundle:
    """Bundles one after another, which are at the same block."""
    first = bundles[0]
    names = ("states", "frames", "parameters")
    arrays = {name: np.concatenate([getattr(each, name) for each in bundles]) for name in names}
    quad = any(each.low is not None for each in bundles)
    return replace(first, **arrays, low=joined([_low(each) for each in bundles]) if quad else None)


def _low(bundle: Bundle) -> Bundle:
    """What the doubles of a bundle do not hold; nothing where nothing is known."""
    if bundle.low is not None:
        return replace(bundle.low, blocks=bundle.blocks)
    nothing = {name: np.zeros_like(getattr(bundle, name)) for name in ("states", "frames", "parameters")}
    return replace(bundle, **nothing)
