"""Spectra of several problems at once: their trajectories fill the lanes together.

The bits of a trajectory do not depend on its company, so that each spectrum is that of its problem alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import chosen_method
from hpcfit.models.define import Model
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Halt, Spectrum
from hpcfit.studies.carriers import part
from hpcfit.studies.spectrum import finished, run_out, spectrum_stages
from hpcfit.studies.spectrum_asked import Asked
from hpcfit.studies.spectrum_plan import Plan, plan_spectrum
from hpcfit.studies.wide import is_wide

Arguments = Mapping[str, Any]  # of spectrum_stages


def spectra_in_lanes(model: Model, several: Sequence[Arguments]) -> list[Spectrum]:
    """The spectrum of each of several problems; those with the same blocks and intervals go side by side."""
    plans = [_plan(model, each) for each in several]
    found: dict[int, Spectrum] = {}
    for numbers in _alike(model, several, plans):
        if len(numbers) == 1:
            found[numbers[0]] = _alone(model, several[numbers[0]])
            continue
        asked = [several[i]["asked"] for i in numbers]
        halt = run_out(model, _joined([plans[i] for i in numbers]), asked[0])
        first = 0
        for i, own in zip(numbers, asked, strict=True):
            lanes = np.arange(first, first + len(plans[i].starts))
            found[i] = finished(model, plans[i], own, _part(halt, lanes))
            first += len(lanes)
    return [found[i] for i in range(len(several))]


def _plan(model: Model, given: Arguments) -> Plan:
    return plan_spectrum(
        model,
        given["asked"],
        start=given.get("start"),
        parameters=given.get("parameters"),
        fit=given.get("fit"),
    )


def _alone(model: Model, given: Arguments) -> Spectrum:
    *_, last = spectrum_stages(SERIAL, model, **given)
    assert last.result is not None
    return last.result


def _alike(model: Model, several: Sequence[Arguments], plans: Sequence[Plan]) -> Iterator[list[int]]:
    """Problems whose trajectories can go side by side; those that end by their errors, or are wide, alone."""
    groups: dict[Any, list[int]] = {}
    for i, (given, plan) in enumerate(zip(several, plans, strict=True)):
        asked: Asked = given["asked"]
        count, _, k = plan.frames.shape
        alone = asked.error is not None or is_wide(count, k, chosen_method(model, asked.method))
        times = (plan.begin, plan.block, plan.interval, plan.transient_blocks, plan.blocks)
        groups.setdefault(i if alone else (*times, k, asked.method, asked.tolerance), []).append(i)
    yield from groups.values()


def _joined(plans: Sequence[Plan]) -> Plan:
    """The trajectories of all plans, one plan after the other."""
    firsts = np.cumsum([0, *(len(plan.starts) for plan in plans)]).tolist()
    return replace(
        plans[0],
        **{
            name: np.concatenate([getattr(plan, name) for plan in plans])
            for name in ("starts", "parameters", "frames")
        },
        draws=np.zeros(firsts[-1], dtype=np.int64),
        failures=tuple(
            replace(failure, lane=first + failure.lane)
            for first, plan in zip(firsts[:-1], plans, strict=True)
            for failure in plan.failures
        ),
    )


def _part(halt: Halt, lanes: NDArray[np.int64]) -> Halt:
    """The trajectories of one problem, as if they had been alone."""
    own = range(lanes[0], lanes[-1] + 1)
    return replace(
        halt,
        bundle=part(halt.bundle, lanes),
        logarithms=halt.logarithms[lanes],
        divergence=halt.divergence[lanes],
        invariants=halt.invariants[lanes],
        failures=tuple(
            replace(failure, lane=failure.lane - own.start)
            for failure in halt.failures
            if failure.lane in own
        ),
        steps=halt.steps[lanes],
    )
