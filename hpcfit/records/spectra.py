"""Lyapunov spectra: tangent frames on their way, and what is made of their growth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpcfit.records.arrays import Array
from hpcfit.records.outcomes import Failure, Outcome


@dataclass(frozen=True)
class Bundle:
    """Trajectories with their tangent frames at the end of the same block: all that is needed to go on.

    A 128-bit run has in `low` what the doubles cannot hold.
    """

    blocks: int  # that lie behind; the time is begin + blocks * length
    states: Array  # (L, n)
    frames: Array  # (L, n, k), orthonormal columns
    parameters: Array  # (L, n_p)
    low: Bundle | None = None


@dataclass(frozen=True)
class Growth:
    """What happened to a bundle in some blocks; a trajectory that stopped holds NaN from that block on."""

    bundle: Bundle  # at the end
    logarithms: Array  # (L, B, k) of the stretching of each direction in each block
    divergence: Array  # (L, B) integral of the trace of the Jacobian; of maps the sum of log |det|
    failures: tuple[Failure, ...]
    steps: NDArray[np.int64]  # (L,)


@dataclass(frozen=True)
class Carried:
    """A bundle with some columns of its frames at the next time at which they should become orthonormal."""

    bundle: Bundle  # as many blocks lie behind as before; columns that were stretched
    reached: Array  # (L,) time since the begin of the block; its length where the block has ended
    divergence: Array  # (L,) integral of the trace since the time before
    failures: tuple[Failure, ...]
    steps: NDArray[np.int64]  # (L,)


@dataclass(frozen=True)
class Halt:
    """Where a spectrum stands at the end of a block: all that is needed to go on, on any number of ranks."""

    bundle: Bundle  # of all trajectories; NaN in those that stopped
    logarithms: Array  # (L, blocks, k), the transient included
    divergence: Array  # (L, blocks)
    invariants: Array  # (L, marks) at the marks that lie behind; (L, 0) where there is no invariant
    failures: tuple[Failure, ...]
    steps: NDArray[np.int64]  # (L,)
    seconds: float  # of work that lie behind


@dataclass(frozen=True)
class Section:
    """Points in which trajectories pierce a surface, and the area that their energy permits (5.7)."""

    surface: str  # the expression whose roots are the surface
    direction: int  # 1: where it rises, -1: where it falls, 0: both
    axes: tuple[str, str]
    points: Array  # (n_points, 2)
    trajectories: NDArray[np.int64]  # (n_points,)
    border: Array  # (n_border, 2), NaN between pieces; empty where there is no invariant
    times: Array | None = None  # (n_points,)

    @property
    def turns(self) -> float:
        """Returns per unit of time, the mean over trajectories; NaN where there are none."""
        if self.times is None or not self.direction:
            return float("nan")
        own = [self.times[self.trajectories == lane] for lane in np.unique(self.trajectories)]
        rates = [(len(times) - 1) / (times[-1] - times[0]) for times in own if len(times) > 1]
        return float(np.mean(rates)) if rates else float("nan")


@dataclass(frozen=True)
class Convergence:
    """Running exponents: what would have been said after these times."""

    times: Array  # (T,) about equal ratios
    exponents: Array  # (T, k)
    half_widths: Array  # (T, k) of 95 % intervals; NaN while there are too few blocks


@dataclass(frozen=True)
class Spectrum:
    """Lyapunov exponents, natural logarithm per unit of time, largest first, with their errors.

    Regular and failed trajectories are listed and not averaged in.
    """

    model: str
    state_names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    kind: str  # flow | map
    starts: Array  # (L, n)
    parameters: Array  # (L, n_p)
    outcome: Outcome
    cause: str
    exponents: Array  # (k,)
    errors: Array  # (k,) standard errors; NaN where `bounds` has a number
    bounds: Array  # (k,) C/T of exponents that vanish; NaN for the others
    dimension: float  # Kaplan-Yorke
    dimension_error: float
    entropy: float  # the sum of the positive exponents: an upper bound of it
    entropy_error: float
    zeros: int  # exponents that vanish
    duration: float  # of each trajectory, without the transient
    transient: float
    block: float  # time
    interval: float  # between renormalisations
    growth: Array  # (L, B, k) log growth in each block, transient excluded
    regular: NDArray[np.bool_]  # (L,) quasi-periodic trajectories
    failures: tuple[Failure, ...]
    divergence: float  # mean; the sum of all exponents must equal it
    drift: float  # largest relative change of the invariant; NaN without one
    warnings: tuple[str, ...] = ()  # of the errors: stickiness, too few blocks
    section: Section | None = None
    half_widths: Array | None = None  # (k,) of 95 % intervals; the bounds where exponents vanish
    doubling_time_error: float = float("nan")
    hamiltonian: bool = False  # exponents come in pairs of opposite sign
    integrals: int | None = None  # isolating ones, which the zeros of a Hamiltonian system suggest
    history: Convergence | None = None
    orbits: float = float("nan")  # turns per unit of time: bits per orbit (5.10)
    seconds: float = 0.0
    units: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    begin: float = 0.0  # time at the start
    driven: bool = False  # f depends on t: time itself has an exponent 0, which is not among these
    steps: int = 0  # of all trajectories
    draws: NDArray[np.int64] | None = None  # (L,) of which draw a trajectory is; 0: the estimate
    draw_exponents: Array | None = None  # (D, k) of draws 1 to D; NaN without a chaotic trajectory
    draw_errors: Array | None = None  # (D, k)

    @property
    def converged(self) -> bool:
        return self.outcome is Outcome.DONE

    @property
    def trajectories(self) -> int:
        return len(self.starts)

    @property
    def doubling_time(self) -> float:
        """Time in which an error doubles."""
        largest = float(self.exponents[0])
        return float(np.log(2.0) / largest) if largest > 0.0 else float("inf")
