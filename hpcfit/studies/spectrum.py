"""Lyapunov spectra: exponents of one trajectory or of many, with errors, on any number of ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hpcfit.flow.frames import grow
from hpcfit.flow.propagate import chosen_method
from hpcfit.lyapunov.estimate import estimate
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.mpi.together import on_root
from hpcfit.records import Array, Bundle, FitResult, Halt, Spectrum
from hpcfit.studies.beginnings import Values
from hpcfit.studies.carriers import Carrier, Dealt, Leg, Ride, invariants_at, part
from hpcfit.studies.spectrum_asked import Asked
from hpcfit.studies.spectrum_plan import Plan, plan_spectrum
from hpcfit.studies.spectrum_result import made_of, precise_enough, with_section
from hpcfit.studies.wide import Wide, is_wide

ROUND_SECONDS = 0.25  # between two times at which ranks come together

Watch = Callable[[float], None]


def spectrum(
    model: Model,
    *,
    duration: float,
    start: Values | None = None,
    parameters: Values | None = None,
    fit: FitResult | None = None,
    draws: int = 0,
    trajectories: int | None = None,
    exponents: int | None = None,
    transient: float | None = None,
    interval: float | None = None,
    block: float | None = None,
    error: float | None = None,
    starts: Sequence[Values] | None = None,
    spacing: float | None = None,
    begin: float = 0.0,
    invariant: float | None = None,
    section: Mapping[str, Any] | None = None,
    symplectic: bool | None = None,
    method: str | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    comm: Any = SERIAL,
    watch: Watch | None = None,
) -> Spectrum:
    """Lyapunov exponents of a flow or a map (Benettin et al. 1980), natural logarithm per unit of time.

    start, parameters: by name; absent: the model's example. fit: its estimates instead, and `draws` further
    ones from its covariance, each with trajectories of its own. exponents: the first so many (default: all).
    A transient is discarded, then come `duration` units of time, in blocks (the finite-time exponents);
    tangents are orthonormalised after every `interval`. error: end when all standard errors are below it.
    Further trajectories begin at `starts`, or at points of the first orbit that are `spacing` apart.
    invariant: the energy that starts must have. symplectic: conjugate tangents (default: where f allows).
    section: {"surface": "x1", "direction": 1, "axes": ("x2", "x4"), "points": 10000}, a Poincaré section.
    In a driven system, where f depends on t, time has one more exponent, 0, which is not listed.
    The bits of a trajectory depend on the arguments alone, not on the number of ranks.
    """
    asked = Asked(
        duration=duration,
        trajectories=trajectories,
        exponents=exponents,
        transient=transient,
        interval=interval,
        block=block,
        error=error,
        starts=starts,
        spacing=spacing,
        begin=begin,
        invariant=invariant,
        section=section,
        method=method,
        tolerance=tolerance,
        symplectic=symplectic,
        draws=draws,
        seed=seed,
    )
    for stage in spectrum_stages(comm, model, asked, start=start, parameters=parameters, fit=fit):
        if watch:
            watch(stage.done)
    assert stage.result is not None
    return stage.result


@dataclass(frozen=True)
class Stage:
    """How far a spectrum has come; the last one has the result."""

    done: float  # part of all blocks
    covered: float  # time, of all trajectories together
    seconds: float
    estimate: Callable[[], tuple[Array, Array]]  # exponents and errors so far
    halt: Callable[[], Halt]  # all that is needed to go on from here (collective)
    result: Spectrum | None = None


def spectrum_stages(
    comm: Any,
    model: Model,
    asked: Asked,
    *,
    start: Values | None = None,
    parameters: Values | None = None,
    fit: FitResult | None = None,
    resume: Halt | None = None,
) -> Iterator[Stage]:
    """A spectrum on its way: a stage every fraction of a second, from the beginning or from an earlier halt.

    The stages differ from run to run, the result does not.
    """
    clock = time.perf_counter()
    plan = on_root(comm, lambda: plan_spectrum(model, asked, start=start, parameters=parameters, fit=fit))
    ride = Ride(plan.block, plan.interval, plan.begin, asked.method, asked.tolerance)
    log = _Log(plan, resume or _first_halt(model, plan, ride))
    on_root(comm, lambda: _compile(model, ride, log.halt.bundle))
    carrier = _carrier(comm, model, ride, log.halt.bundle)
    pace = _Pace()
    while True:
        ended = log.blocks == plan.total or not log.going
        if log.blocks in plan.marks and not ended:
            ended = precise_enough(asked.error, plan, log.after_transient())
        seconds = log.halt.seconds + time.perf_counter() - clock
        result = on_root(comm, partial(_last, model, plan, asked, log, seconds)) if ended else None
        yield log.stage(seconds, carrier, result)
        if ended:
            return
        began = time.perf_counter()
        leg = carrier.advance(pace.blocks(log.until_next_mark()))
        log.add(leg)
        pace.learn(leg.logarithms.shape[1], max(comm.allgather(time.perf_counter() - began)))


def _last(model: Model, plan: Plan, asked: Asked, log: _Log, seconds: float) -> Spectrum:
    return finished(model, plan, asked, log.halt_at(None, seconds))


def finished(model: Model, plan: Plan, asked: Asked, halt: Halt) -> Spectrum:
    """The spectrum at its end, with its section if one is asked for."""
    found = made_of(model, plan, asked, halt)
    return found if asked.section is None else with_section(model, plan, asked, found)


def run_out(model: Model, plan: Plan, asked: Asked) -> Halt:
    """The end of all trajectories of a plan, on this rank alone and without a look at errors."""
    clock = time.perf_counter()
    ride = Ride(plan.block, plan.interval, plan.begin, asked.method, asked.tolerance)
    log = _Log(plan, _first_halt(model, plan, ride))
    carrier = _carrier(SERIAL, model, ride, log.halt.bundle)
    while log.blocks < plan.total and log.going:
        log.add(carrier.advance(log.until_next_mark()))
    return log.halt_at(None, time.perf_counter() - clock)


def _carrier(comm: Any, model: Model, ride: Ride, bundle: Bundle) -> Carrier:
    """Ranks share trajectories, or where these are few and have many tangents, the tangents."""
    count, _, k = bundle.frames.shape
    kind = Wide if is_wide(count, k, chosen_method(model, ride.method)) else Dealt
    return kind(comm, model, ride, bundle)


def _first_halt(model: Model, plan: Plan, ride: Ride) -> Halt:
    """Before the first block."""
    count, _, k = plan.frames.shape
    bundle = Bundle(0, plan.starts.copy(), plan.frames.copy(), plan.parameters)
    for failure in plan.failures:
        bundle.states[failure.lane] = np.nan
    own = invariants_at(model, ride, bundle)
    return Halt(
        bundle=bundle,
        logarithms=np.empty((count, 0, k)),
        divergence=np.empty((count, 0)),
        invariants=own[:, None] if own.size else np.empty((count, 0)),
        failures=plan.failures,
        steps=np.zeros(count, dtype=np.int64),
        seconds=0.0,
    )


def _compile(model: Model, ride: Ride, bundle: Bundle) -> None:
    """Have one rank compile for all, with a step that goes nowhere."""
    able = np.flatnonzero(np.isfinite(bundle.states).all(axis=1))[:1]
    if able.size:
        short = 1.0 if model.kind == "map" else min(ride.block, ride.interval) * 1e-6
        grow(
            model,
            part(bundle, able),
            blocks=1,
            block=short,
            interval=short,
            begin=ride.begin,
            method=ride.method,
            tolerance=ride.tolerance,
        )


class _Log:
    """What has been found so far, on all ranks."""

    def __init__(self, plan: Plan, halt: Halt) -> None:
        self._plan, self.halt = plan, halt
        self.blocks = halt.bundle.blocks
        self._logarithms, self._divergence = [halt.logarithms], [halt.divergence]
        self._invariants, self._failures, self._steps = halt.invariants, halt.failures, halt.steps

    @property
    def going(self) -> bool:
        """True if any trajectory has not stopped."""
        return len(self._failures) < len(self._plan.starts)

    def until_next_mark(self) -> int:
        return min(mark for mark in self._plan.marks if mark > self.blocks) - self.blocks

    def add(self, leg: Leg) -> None:
        self.blocks += leg.logarithms.shape[1]
        self._logarithms.append(leg.logarithms)
        self._divergence.append(leg.divergence)
        self._failures = tuple(sorted((*self._failures, *leg.failures), key=lambda each: each.lane))
        self._steps = self._steps + leg.steps
        if self.blocks in self._plan.marks and leg.invariants.size:
            self._invariants = np.concatenate([self._invariants, leg.invariants[:, None]], axis=1)

    def after_transient(self) -> Array:
        """Logarithms (L, b, k)."""
        self._logarithms = [np.concatenate(self._logarithms, axis=1)]
        return self._logarithms[0][:, self._plan.transient_blocks :]

    def estimate(self) -> tuple[Array, Array]:
        """Exponents and errors so far, of the first draw."""
        own = self.after_transient()[self._plan.draws == 0]
        if not own.shape[1]:
            return np.empty(0), np.empty(0)
        found = estimate(own, self._plan.block)
        return found.exponents, np.where(np.isnan(found.errors), found.bounds, found.errors)

    def halt_at(self, bundle: Bundle | None, seconds: float) -> Halt:
        self.after_transient()
        self._divergence = [np.concatenate(self._divergence, axis=1)]
        return Halt(
            bundle=bundle or self.halt.bundle,
            logarithms=self._logarithms[0],
            divergence=self._divergence[0],
            invariants=self._invariants,
            failures=self._failures,
            steps=self._steps,
            seconds=seconds,
        )

    def stage(self, seconds: float, carrier: Carrier, result: Spectrum | None) -> Stage:
        plan = self._plan
        return Stage(
            done=1.0 if result else self.blocks / plan.total,
            covered=self.blocks * plan.block * len(plan.starts),
            seconds=seconds,
            estimate=self.estimate,
            halt=lambda: self.halt_at(carrier.whole(), seconds),
            result=result,
        )


class _Pace:
    """How many blocks take a fraction of a second."""

    def __init__(self) -> None:
        self._blocks = 1.0

    def blocks(self, most: int) -> int:
        return max(1, min(int(self._blocks), most))

    def learn(self, blocks: int, seconds: float) -> None:
        own = blocks * ROUND_SECONDS / max(seconds, 1e-9)
        self._blocks = min(own, 8.0 * max(self._blocks, 1.0))
