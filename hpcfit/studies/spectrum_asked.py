"""What a caller wants of a spectrum, and what of it cannot be meant."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.flow.propagate import LARGEST_TOLERANCE, METHODS, chosen_method
from hpcfit.lyapunov.jacobians import jacobians_at, slopes
from hpcfit.models.define import Model
from hpcfit.models.evaluate import Program
from hpcfit.models.names import nearest
from hpcfit.models.strings import expression_of
from hpcfit.records import Array, FitResult, InputError, Mistake
from hpcfit.studies.beginnings import Values, fitted, given_or_usual
from hpcfit.studies.simulate import in_order

RESTING = 1e-14  # slope of an equilibrium, relative
ON_SURFACE = 1e-9  # relative difference of an invariant from what is asked


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
    section: Mapping[str, Any] | None = None  # surface, direction, axes, points
    draws: int = 0
    seed: int = 0


def check_asked(
    model: Model, asked: Asked, *, start: Values | None, parameters: Values | None, fit: FitResult | None
) -> tuple[Array, Array]:
    """Starts (D + 1, n) and parameters (D + 1, n_p), after every check that needs no long computation."""
    mistakes = lengths_wrong(asked, len(model.states), model.kind) + _method_wrong(model, asked)
    mistakes += _section_wrong(model, asked.section)
    if mistakes:
        raise InputError(mistakes)
    firsts, values = _beginnings(model, asked, start, parameters, fit)
    _check_beginnings(model, asked, firsts, values)
    return firsts, values


def lengths_wrong(asked: Asked, states: int | None, kind: str) -> list[Mistake]:
    """What is wrong with numbers that stand for themselves; states None: their number is not known."""
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


def _section_wrong(model: Model, section: Mapping[str, Any] | None) -> list[Mistake]:
    if section is None:
        return []
    if model.opaque:
        problem = "needs a model that can be traced"
        return [Mistake("", problem, "write its equations as expressions", "section")]
    found = []
    try:
        expression_of(model, str(section.get("surface", "")))
    except InputError as error:
        found.append(Mistake("", str(error), "give an expression of the states", "section.surface"))
    for name in section.get("axes") or ():
        if name not in model.quantities:
            known = nearest(name, model.quantities)
            found.append(Mistake("", f"there is no state or observable '{name}'", known, "section.axes"))
    if len(section.get("axes") or section_axes(model, str(section.get("surface", "")))) != 2:
        found.append(Mistake("", "has no two axes", "name two states or observables", "section.axes"))
    return found


def section_axes(model: Model, surface: str) -> tuple[str, ...]:
    """The first two states that the surface leaves free."""
    names = re.findall(r"[A-Za-z_]\w*", surface)
    return tuple(name for name in model.states if name not in names)[:2]


def _beginnings(
    model: Model, asked: Asked, start: Values | None, parameters: Values | None, fit: FitResult | None
) -> tuple[Array, Array]:
    """Start and parameters of what is asked, and below them those of draws from its covariance."""
    if fit is None and asked.draws:
        remedy = "give a fit, or no draws"
        raise InputError(Mistake("", "draws need the covariance of a fit", remedy, "draws", asked.draws))
    if fit is None:
        return given_or_usual(model, start, parameters)
    for key, given in (("start", start), ("parameters", parameters)):
        if given is not None:
            raise InputError(Mistake("", "is that of the fit", "leave it out, or give no fit", key))
    return fitted(model, fit, asked.draws, asked.seed)


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
    if model.kind == "map" or model.driven or model.opaque:
        return
    time = np.array([asked.begin])
    with np.errstate(all="ignore"):
        slope = slopes(model, time, start[None], parameters)[0]
        speed = np.abs(jacobians_at(model, time, start[None], parameters)[0])
    if not np.isfinite(slope).all():
        return  # said by the integrator, with the operation that has no value
    size: float = (np.nan_to_num(speed) @ np.abs(start)).max(initial=0.0)
    if float(np.abs(slope).max()) <= RESTING * size:
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
