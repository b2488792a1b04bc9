"""What a spectrum is asked for, with all that was left open filled in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import chosen_method
from hpcfit.lyapunov.hamiltonian import hamiltonian_form
from hpcfit.lyapunov.intervals import FEWEST_BLOCKS, Rhythm, rhythm
from hpcfit.models.define import Model
from hpcfit.records import Array, Failure, FitResult, InputError, Mistake
from hpcfit.studies.beginnings import (
    Values,
    first_frames,
    points_on_orbits,
)
from hpcfit.studies.simulate import in_order
from hpcfit.studies.spectrum_asked import Asked, check_asked
from hpcfit.studies.wide import is_wide

TRANSIENT = 0.05  # of the duration
APART = 100.0  # orthonormalisations between the starts of trajectories
MARKS = 64  # times at which invariants are looked at and errors compared with what is asked
WIDE_FACTOR = 2  # intervals of wide frames, which are made orthonormal twice, are longer than usual


@dataclass(frozen=True)
class Plan:
    """Trajectories and their times, complete; the same on all ranks."""

    starts: Array  # (L, n)
    parameters: Array  # (L, n_p)
    frames: Array  # (L, n, k)
    draws: NDArray[np.int64]  # (L,)
    failures: tuple[Failure, ...]  # trajectories that have no start
    begin: float
    block: float
    interval: float
    transient_blocks: int
    blocks: int  # without those of the transient
    hamiltonian: bool
    driven: bool

    @property
    def total(self) -> int:
        """Blocks, those of the transient included."""
        return self.transient_blocks + self.blocks

    @property
    def marks(self) -> tuple[int, ...]:
        """Blocks after which the study stands still to look around; the first is the start."""
        own = {self.transient_blocks + math.ceil(self.blocks * j / MARKS) for j in range(MARKS + 1)}
        return tuple(sorted(own | {0}))


def plan_spectrum(
    model: Model, asked: Asked, *, start: Values | None, parameters: Values | None, fit: FitResult | None
) -> Plan:
    """Check what is asked and complete it."""
    firsts, values = check_asked(model, asked, start=start, parameters=parameters, fit=fit)
    k = asked.exponents or len(model.states)
    count = asked.trajectories or 1 + len(asked.starts or ())
    own = _rhythm(model, asked, firsts[0], values[0], count * len(firsts))
    transient = TRANSIENT * asked.duration if asked.transient is None else asked.transient
    transient_blocks = math.ceil(transient / own.block - 1e-9)
    share = math.ceil(own.blocks / count) * own.block  # orbits stick for long, and starts must not share it
    spacing = asked.spacing or max(transient_blocks * own.block, APART * own.interval, share)
    form = _form(model, asked, firsts[0], values[0])
    starts, failures = _starts(model, asked, firsts, values, count, spacing)
    lanes = np.repeat(values, count, axis=0)
    conjugate = None if asked.symplectic is False else form
    return Plan(
        starts=starts,
        parameters=lanes,
        frames=first_frames(model, conjugate, starts, lanes, columns=k, seed=asked.seed),
        draws=np.repeat(np.arange(len(firsts)), count),
        failures=failures,
        begin=asked.begin,
        block=own.block,
        interval=own.interval,
        transient_blocks=transient_blocks,
        blocks=own.blocks,
        hamiltonian=form is not None,
        driven=model.driven,
    )


def _rhythm(model: Model, asked: Asked, start: Array, parameters: Array, trajectories: int) -> Rhythm:
    """Blocks and intervals as asked, the others as usual."""
    usual = Rhythm(1, asked.duration, asked.interval or asked.duration)
    if asked.block is None or asked.interval is None:
        usual = rhythm(
            model,
            start,
            parameters,
            duration=asked.duration,
            trajectories=trajectories,
            directions=asked.exponents,
            begin=asked.begin,
            method=asked.method,
            tolerance=asked.tolerance,
        )
    if is_wide(trajectories, asked.exponents or len(model.states), chosen_method(model, asked.method)):
        interval = min(WIDE_FACTOR * usual.interval, asked.duration / FEWEST_BLOCKS)
        blocks = min(usual.blocks, math.floor(asked.duration / interval))
        usual = Rhythm(blocks, asked.duration / blocks, interval)
    if asked.block is not None:
        blocks = max(1, math.ceil(asked.duration / asked.block - 1e-9))
        return Rhythm(blocks, asked.block, asked.interval or min(usual.interval, asked.block))
    if asked.interval is None:
        return usual
    if model.kind == "map":
        block = max(usual.block, asked.interval)
        return Rhythm(math.ceil(asked.duration / block), block, asked.interval)
    blocks = min(usual.blocks, max(1, math.floor(asked.duration / asked.interval)))
    return Rhythm(blocks, asked.duration / blocks, asked.interval)


def _form(model: Model, asked: Asked, start: Array, parameters: Array) -> Array | None:
    """J of a Hamiltonian system."""
    form = hamiltonian_form(model, start, parameters, asked.begin)
    if form is None and asked.symplectic:
        problem = f"{model.name} is not Hamiltonian in its states {' '.join(model.states[:8])}"
        remedy = "leave it out; or use canonical states, coordinates first and momenta in the same order"
        raise InputError(Mistake("", problem, remedy, "symplectic", True))
    return form


def _starts(
    model: Model, asked: Asked, firsts: Array, values: Array, count: int, spacing: float
) -> tuple[Array, tuple[Failure, ...]]:
    """Starts of all trajectories (L, n), those of a draw beside each other, and those that do not exist."""
    if asked.starts is not None:
        further = [in_order(model.name, "starts", each, model.states) for each in asked.starts]
        return np.concatenate([np.stack([first, *further]) for first in firsts]), ()
    return points_on_orbits(model, firsts, values, asked.begin, spacing, count, asked.method, asked.tolerance)
