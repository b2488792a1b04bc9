"""What a spectrum is asked for, checked, and with all that was left open filled in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import LARGEST_TOLERANCE, METHODS, chosen_method, propagate
from hpcfit.lyapunov.hamiltonian import Pairs, canonical_pairs, random_frame, symplectic_frame
from hpcfit.lyapunov.jacobians import jacobians_at, slopes, usual_interval
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.models.names import nearest
from hpcfit.records import Array, Failure, FitResult, InputError, Mistake
from hpcfit.studies.simulate import in_order

BLOCKS, FEWEST_BLOCKS = 1000, 50  # of a trajectory, where nothing is asked
MOST_LOGARITHMS = 50_000_000  # that are kept
TRANSIENT = 0.05  # of the duration
APART = 100.0  # orthonormalisations between the starts of trajectories
MARKS = 64  # times at which invariants are looked at and errors compared with what is asked
RESTING = 1e-14  # slope of an equilibrium, relative
ON_SURFACE = 1e-9  # relative difference of an invariant from what is asked

Values = Mapping[str, float] | Sequence[float]


@dataclass(frozen=True)
class Asked:
    """What a caller wants; None is left to the study."""

    duration: float
    trajectories: int | None = None
    exponents: int | None = None
    transient: float | None = None
    interval: float | None = None
    block: float | None = None
    error: float | None = None
    starts: Sequence[Values] | None = None
    spacing: float | None = None
    begin: float = 0.0
    invariant: float | None = None
    method: str | None = None
    tolerance: float | None = None
    symplectic: bool | None = None
    draws: int = 0
    seed: int = 0


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
    symplectic: bool
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
    """Check what is asked and complete it; all mistakes that can be found are raised together."""
    mistakes = lengths_wrong(asked, len(model.states), model.kind) + _method_wrong(model, asked)
    if mistakes:
        raise InputError(mistakes)
    firsts, values = _beginnings(model, asked, start, parameters, fit)
    _check_beginnings(model, asked, firsts, values)
    k = asked.exponents or len(model.states)
    count = asked.trajectories or 1 + len(asked.starts or ())
    block, interval, blocks = _times(model, asked, firsts[0], values[0], count * len(firsts) * k)
    transient = math.ceil(
        (TRANSIENT * asked.duration if asked.transient is None else asked.transient) / block - 1e-9
    )
    spacing = asked.spacing or max(transient * block, APART * interval)
    pairs = _pairs(model, asked, firsts[0], values[0])
    starts, failures = _starts(model, asked, firsts, values, count, spacing)
    lanes = np.repeat(values, count, axis=0)
    plan = Plan(
        starts=starts,
        parameters=lanes,
        frames=np.empty(0),
        draws=np.repeat(np.arange(len(firsts)), count),
        failures=failures,
        begin=asked.begin,
        block=block,
        interval=interval,
        transient_blocks=transient,
        blocks=blocks,
        symplectic=pairs is not None,
        driven=is_driven(model),
    )
    return replace(plan, frames=_frames(model, plan, pairs, k, asked.seed))


def lengths_wrong(asked: Asked, states: int | None, kind: str) -> list[Mistake]:
    """What is wrong with numbers that stand for themselves; None: it is not known how many states there are."""
    found: list[Mistake] = []

    def wrong(key: str, problem: str, remedy: str) -> None:
        found.append(Mistake("", problem, remedy, key, getattr(asked, key)))

    for key in ("duration", "interval", "block", "spacing", "error", "transient", "begin", "invariant"):
        value = getattr(asked, key)
        if value is None:
            continue
        if not math.isfinite(value):
            wrong(key, "must be finite", "give a number")
        elif key not in ("transient", "begin", "invariant") and value <= 0.0:
            wrong(
                key,
                "must be positive",
                "give the time that the exponents are averaged over"
                if key == "duration"
                else "leave it out for the usual one",
            )
        elif key == "transient" and value < 0.0:
            wrong(key, "must not be negative", "give 0 to discard nothing")
        elif (
            kind == "map"
            and key in ("duration", "interval", "block", "spacing", "transient", "begin")
            and (value != round(value))
        ):
            wrong(key, "a map has whole numbers of iterations", "round it")
    if found:
        return found
    if asked.block is not None and asked.block > asked.duration:
        wrong(
            "block", f"is longer than the duration {asked.duration:g}", "give a part of it, or leave it out"
        )
    longest, name = (asked.duration, "duration") if asked.block is None else (asked.block, "block")
    if asked.interval is not None and asked.interval > longest:
        wrong("interval", f"is longer than the {name} {longest:g}", "give a part of it, or leave it out")
    if states is not None and asked.exponents is not None and not 1 <= asked.exponents <= states:
        wrong("exponents", f"the model has {states} states, and as many exponents", f"give 1 to {states}")
    if asked.starts is not None and asked.trajectories not in (None, len(asked.starts) + 1):
        problem = f"the start and {len(asked.starts)} further starts make {len(asked.starts) + 1}"
        wrong("trajectories", problem, "leave it out")
    for key, least in (("trajectories", 1), ("draws", 0)):
        value = getattr(asked, key)
        if value is not None and value < least:
            wrong(key, f"must be {least} or more", "leave it out for the usual one")
    return found


def _method_wrong(model: Model, asked: Asked) -> list[Mistake]:
    method = chosen_method(model, asked.method)
    if method not in METHODS:
        return [Mistake("", "is unknown", nearest(method, METHODS), "method", method)]
    if method.startswith("taylor") and model.opaque:
        return [Mistake("", "an opaque model cannot be compiled", 'use "extrapolation"', "method", method)]
    smallest = METHODS[method].smallest_tolerance
    if asked.tolerance is not None and not smallest <= asked.tolerance <= LARGEST_TOLERANCE:
        problem = f"method {method} takes {smallest:g} to {LARGEST_TOLERANCE:g}"
        return [Mistake("", problem, "leave it out", "tolerance", asked.tolerance)]
    return []


def _beginnings(
    model: Model, asked: Asked, start: Values | None, parameters: Values | None, fit: FitResult | None
) -> tuple[Array, Array]:
    """Start (D + 1, n) and parameters (D + 1, n_p) of what is asked and of the draws from its covariance."""
    if fit is not None:
        return _from_fit(model, asked, fit, start, parameters)
    if asked.draws:
        raise InputError(
            Mistake("", "draws need the covariance of a fit", "give one, or no draws", "draws", asked.draws)
        )
    if start is None and not model.examples:
        raise InputError(Mistake("", "is missing", f"{model.name} has no example to take it from", "start"))
    given = model.examples[0].start if start is None else start
    if parameters is None and model.parameters and not model.examples:
        raise InputError(Mistake("", "are missing", f"give {' '.join(model.parameters)}", "parameters"))
    usual = model.examples[0].parameters if model.examples else ()
    values = usual if parameters is None else parameters
    first = in_order(model.name, "start", given, model.states)
    return first[None], in_order(model.name, "parameters", values, model.parameters)[None]


def _from_fit(
    model: Model, asked: Asked, fit: FitResult, start: Values | None, parameters: Values | None
) -> tuple[Array, Array]:
    """The estimates of a fit, and draws of all of its unknowns together."""
    names = (*model.states, *model.parameters)
    if fit.state_names != model.states:
        problem = f"the fit is of {fit.model} with the states {' '.join(fit.state_names)}"
        raise InputError(Mistake("", problem, f"give a fit of {model.name}", "from"))
    known = {**fit.fixed, **fit.unknowns.by_name()}
    lacking = [name for name in names if name not in known]
    if lacking:
        problem = f"the fit tells no {', '.join(lacking[:8])}"
        raise InputError(Mistake("", problem, "local parameters have no value for all", "from"))
    rows = [fit.unknowns.values]
    if asked.draws:
        if not np.isfinite(fit.unknowns.covariance).all():
            raise InputError(Mistake("", "the fit has no covariance", "give no draws", "draws", asked.draws))
        rates, axes = np.linalg.eigh(fit.unknowns.covariance)
        root = axes * np.sqrt(np.maximum(rates, 0.0))
        for draw in range(1, asked.draws + 1):
            random = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(draw, 0)))
            rows.append(fit.unknowns.values + root @ random.normal(size=len(rates)))
    places = {name: k for k, name in enumerate(fit.unknowns.names)}
    table = np.array(
        [[row[places[name]] if name in places else known[name] for name in names] for row in rows]
    )
    firsts, values = table[:, : len(model.states)], table[:, len(model.states) :]
    if start is not None:
        firsts = np.broadcast_to(in_order(model.name, "start", start, model.states), firsts.shape)
    if parameters is not None:
        values = np.broadcast_to(
            in_order(model.name, "parameters", parameters, model.parameters), values.shape
        )
    return np.ascontiguousarray(firsts), np.ascontiguousarray(values)


def _check_beginnings(model: Model, asked: Asked, firsts: Array, values: Array) -> None:
    """No start that rests, or lies on another energy surface than is asked."""
    own = [firsts[0], *(in_order(model.name, "starts", each, model.states) for each in asked.starts or ())]
    keys = ["start", *(f"starts.{number}" for number in range(1, len(own)))]
    for key, first in zip(keys, own, strict=True):
        for name, numbers in (("start", first), ("parameters", values[0])):
            if not np.isfinite(numbers).all():
                raise InputError(Mistake("", f"{name} is not finite", "give numbers", key))
        _check_moving(model, asked, key, first, values[0])
        _check_invariant(model, asked, key, first, values[0])


def _check_moving(model: Model, asked: Asked, key: str, start: Array, parameters: Array) -> None:
    if model.kind == "map" or is_driven(model) or model.opaque:
        return
    time = np.array([asked.begin])
    with np.errstate(all="ignore"):
        slope = slopes(model, time, start[None], parameters)[0]
        speed = np.abs(jacobians_at(model, time, start[None], parameters)[0])
    if not np.isfinite(slope).all():
        return  # said by the integrator, with the operation that has no value
    size = float((np.nan_to_num(speed) @ np.abs(start)).max(initial=0.0))
    if np.abs(slope).max() <= RESTING * max(size, np.finfo(float).tiny):
        shown = ", ".join(f"{name} = {value:g}" for name, value in zip(model.states[:4], start, strict=False))
        remedy = "give a start that moves; its exponents are the real parts of the eigenvalues of f_x"
        raise InputError(Mistake("", f"is an equilibrium ({shown})", remedy, key))


def _check_invariant(model: Model, asked: Asked, key: str, start: Array, parameters: Array) -> None:
    if asked.invariant is None:
        return
    if model.invariant is None or model.graph is None:
        problem = f"{model.name} has no invariant"
        raise InputError(Mistake("", problem, "leave it out", "invariant", asked.invariant))
    (own,) = Program(model.graph, [model.invariant])(asked.begin, start, parameters)
    if not abs(own - asked.invariant) <= ON_SURFACE * max(abs(asked.invariant), abs(own)):
        problem = f"has the invariant {own:.12g}, not {asked.invariant:.12g} as asked"
        raise InputError(Mistake("", problem, f"move it, or set invariant = {own:.12g}", key))


def _times(
    model: Model, asked: Asked, start: Array, parameters: Array, columns: int
) -> tuple[float, float, int]:
    """Block, interval, and number of blocks."""
    most = min(BLOCKS, max(FEWEST_BLOCKS, MOST_LOGARITHMS // columns))
    longest = asked.duration if asked.block is None else asked.block
    interval = asked.interval
    if interval is None:
        interval = usual_interval(model, start, parameters, asked.begin, longest)
    if asked.block is not None:
        block = asked.block
    elif model.kind == "map":
        block = float(max(math.ceil(asked.duration / most), math.ceil(interval)))
    else:
        block = asked.duration / min(max(math.floor(asked.duration / interval), 1), most)
    return block, interval, max(1, math.ceil(asked.duration / block - 1e-9))


def _pairs(model: Model, asked: Asked, start: Array, parameters: Array) -> Pairs | None:
    """Coordinates and momenta, where tangents are to be conjugate."""
    if asked.symplectic is False:
        return None
    pairs = canonical_pairs(model, start, parameters, asked.begin)
    if pairs is None and asked.symplectic:
        problem = f"{model.name} is not Hamiltonian in its states {' '.join(model.states[:8])}"
        remedy = "leave it out; or use canonical states, coordinates first and momenta in the same order"
        raise InputError(Mistake("", problem, remedy, "symplectic", True))
    return pairs


def _starts(
    model: Model, asked: Asked, firsts: Array, values: Array, count: int, spacing: float
) -> tuple[Array, tuple[Failure, ...]]:
    """Starts of all trajectories (L, n), those of a draw beside each other, and those that do not exist."""
    if asked.starts is not None:
        further = [in_order(model.name, "starts", each, model.states) for each in asked.starts]
        return np.concatenate([np.stack([first, *further]) for first in firsts]), ()
    times = asked.begin + spacing * np.arange(count)
    if count == 1:
        return firsts.copy(), ()
    lanes = propagate(model, times, firsts, values, method=asked.method, tolerance=asked.tolerance)
    failures = [
        Failure(each.lane * count + j, each.time, each.outcome, f"the orbit of starts ends: {each.cause}")
        for each in lanes.failures
        for j in range(1, count)
        if times[j] > each.time
    ]
    return lanes.states.reshape(-1, firsts.shape[1]), tuple(failures)


def _frames(model: Model, plan: Plan, pairs: Pairs | None, k: int, seed: int) -> Array:
    """Orthonormal tangents of every trajectory (L, n, k), by seed, draw and place."""
    flows = pairs is not None and model.kind == "flow" and not plan.driven
    frames = []
    for lane, (start, values) in enumerate(zip(plan.starts, plan.parameters, strict=True)):
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(lane, 1)))
        if pairs is None:
            frames.append(random_frame(len(model.states), k, random))
            continue
        slope = slopes(model, np.array([plan.begin]), start[None], values)[0] if flows else None
        good = slope is not None and np.isfinite(slope).all() and np.abs(slope).max() > 0.0
        frames.append(symplectic_frame(pairs, slope if good else None, random)[:, :k])
    return np.stack(frames)


def is_driven(model: Model) -> bool:
    """True if f depends on the time; unknown counts as False."""
    if model.graph is None:
        return False
    return any(
        model.graph.nodes[index].operation == "time" for index in model.graph.reachable(model.equations)
    )
