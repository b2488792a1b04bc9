"""Trajectories: states and sensitivities at given times, and what is seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpcfit.records.arrays import Array
from hpcfit.records.outcomes import Failure, Outcome

TIMES = ("measured", "exact")  # of observation: as well as their sigma_t says, or without an error


@dataclass(frozen=True)
class Crossings:
    """Events met by the lanes of a propagation, in the order of lane and time."""

    lanes: NDArray[np.int64]  # (n_events,)
    events: NDArray[np.int64]  # (n_events,) which of the event functions
    times: Array  # (n_events,)
    states: Array  # (n_events, n)


@dataclass(frozen=True)
class Switchings:
    """Switches and jumps that a path has met, in the order of time."""

    names: tuple[str, ...]  # as in "the switch slip", "jump dose"
    times: Array  # (n_met,)
    states: Array  # (n_met, n) before the jump


@dataclass(frozen=True)
class Lanes:
    """Many trajectories through time; a failed lane holds NaN after the time of its failure."""

    times: Array  # (n_lanes, n_times); the first is the start
    states: Array  # (n_lanes, n_times, n)
    by_start: Array | None  # (n_lanes, n_times, n, n)
    by_parameters: Array | None  # (n_lanes, n_times, n, n_p)
    failures: tuple[Failure, ...]
    steps: NDArray[np.int64]  # (n_lanes,) accepted steps
    crossings: Crossings | None = None  # where events were asked for
    switchings: Crossings | None = None  # where they were asked for: 2 * surface + 1 if the state jumped
    low: Lanes | None = None  # of a 128-bit run: what the doubles above cannot hold, to be added to them


@dataclass(frozen=True)
class Noise:
    """Gaussian measurement errors; exactly one of the three sizes is given.

    sd: absolute, one number or one per name. fraction: of the mean modulus of the component.
    proportional: of the modulus of each value. beyond_3_sigma: keep | redraw | discard; the last two
    reduce the standard deviation to 0.987 of the nominal one. sd_t: of the times of observation, which are
    kept however far they are off.
    """

    sd: float | Mapping[str, float] | None = None
    fraction: float | Mapping[str, float] | None = None
    proportional: float | Mapping[str, float] | None = None
    beyond_3_sigma: str = "keep"
    sd_t: float = 0.0


@dataclass(frozen=True)
class Series:
    """Values of named quantities at given times, with their standard deviations; NaN = missing."""

    names: tuple[str, ...]
    times: Array  # (n_times,)
    values: Array  # (n_times, n_names)
    sigma: Array | None = None  # (n_times, n_names)
    sigma_t: Array | None = None  # (n_times,) of the times, 0 = exact; None: all are

    @property
    def count(self) -> int:
        return len(self.times)

    @property
    def has_sigma(self) -> bool:
        return self.sigma is not None

    @property
    def has_sigma_t(self) -> bool:
        return self.sigma_t is not None

    def rows(self, first: int, last: int) -> Series:
        """The values from one time to another, which is not included; a view."""
        own = slice(first, last)
        sigma = None if self.sigma is None else self.sigma[own]
        sigma_t = None if self.sigma_t is None else self.sigma_t[own]
        return Series(self.names, self.times[own], self.values[own], sigma, sigma_t)


@dataclass(frozen=True)
class Path:
    """One trajectory: states, sensitivities, and what an instrument would have seen of it."""

    model: str
    state_names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    kind: str  # flow | map
    start: Array  # (n,)
    parameters: Array  # (n_p,)
    times: Array  # (n_times,)
    states: Array  # (n_times, n)
    outcome: Outcome
    cause: str = ""
    by_start: Array | None = None  # (n_times, n, n)
    by_parameters: Array | None = None  # (n_times, n, n_p)
    invariant: Array | None = None  # (n_times,)
    observed: Series | None = None  # with noise
    exact: Series | None = None  # the same quantities without
    data: Series | None = None  # a recording to compare with
    units: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    steps: int = 0
    switchings: Switchings | None = None  # of a model with switches or jumps

    @property
    def converged(self) -> bool:
        return self.outcome is Outcome.DONE
