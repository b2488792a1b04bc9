"""From the growth of tangent frames to a spectrum: what is averaged, what follows from it, how it ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcfit.lyapunov.convergence import history, reached
from hpcfit.lyapunov.dimension import Derived, derived
from hpcfit.lyapunov.estimate import Estimate, estimate
from hpcfit.lyapunov.sections import section
from hpcfit.models.define import Model
from hpcfit.records import Array, Failure, Halt, Outcome, Spectrum
from hpcfit.studies.spectrum_asked import Asked, section_axes
from hpcfit.studies.spectrum_plan import Plan

SECTION_POINTS = 10_000


def precise_enough(error: float | None, plan: Plan, growth: Array) -> bool:
    """True if all errors are as small as asked; growth (L, b, k) without the transient."""
    if error is None or not growth.shape[1]:
        return False
    own = growth[plan.draws == 0]
    return reached(estimate(own, plan.block), error, own.shape[1])


def made_of(model: Model, plan: Plan, asked: Asked, halt: Halt) -> Spectrum:
    """The spectrum of what was found until the end."""
    growth = halt.logarithms[:, plan.transient_blocks :]
    blocks = growth.shape[1]
    known = growth if blocks else np.full((len(growth), 1, growth.shape[2]), np.nan)
    each = [estimate(known[plan.draws == draw], plan.block) for draw in range(int(plan.draws.max()) + 1)]
    found = each[0]
    follows = _derived(model, plan, known[plan.draws == 0], found)
    return Spectrum(
        model=model.name,
        state_names=model.states,
        parameter_names=model.parameters,
        kind=model.kind,
        starts=plan.starts,
        parameters=plan.parameters,
        outcome=_outcome(asked, plan, found, blocks),
        cause=_cause(halt.failures),
        exponents=found.exponents,
        errors=found.errors,
        bounds=found.bounds,
        half_widths=found.half_widths,
        dimension=follows.dimension,
        dimension_error=follows.dimension_error,
        entropy=follows.entropy,
        entropy_error=follows.entropy_error,
        doubling_time_error=follows.doubling_time_error,
        integrals=follows.integrals,
        zeros=found.zeros,
        duration=blocks * plan.block,
        transient=plan.transient_blocks * plan.block,
        block=plan.block,
        interval=plan.interval,
        growth=growth,
        regular=np.concatenate([own.regular for own in each]),
        failures=halt.failures,
        divergence=_mean_divergence(halt.divergence[:, plan.transient_blocks :], plan, found),
        drift=drift(halt.invariants),
        warnings=found.warnings,
        hamiltonian=plan.hamiltonian,
        history=history(known[plan.draws == 0], plan.block, found) if found.used.any() else None,
        seconds=halt.seconds,
        units=model.units,
        seed=asked.seed,
        begin=plan.begin,
        driven=plan.driven,
        steps=int(halt.steps.sum()),
        draws=plan.draws if len(each) > 1 else None,
        draw_exponents=np.array([own.exponents for own in each[1:]]) if len(each) > 1 else None,
        draw_errors=np.array([own.errors for own in each[1:]]) if len(each) > 1 else None,
    )


def with_section(model: Model, plan: Plan, asked: Asked, found: Spectrum) -> Spectrum:
    """A spectrum with the section of its trajectories, and how often they come back to it."""
    assert asked.section is not None
    stopped = {failure.lane for failure in found.failures}
    own = [lane for lane in np.flatnonzero(plan.draws == 0).tolist() if lane not in stopped]
    if not own:
        return found
    given = dict(asked.section)
    seen = section(
        model,
        plan.starts[own],
        plan.parameters[own],
        surface=given["surface"],
        direction=given.get("direction", 1),
        axes=tuple(given.get("axes") or section_axes(model, given["surface"])),
        duration=found.duration,
        begin=plan.begin,
        most=given.get("points") or SECTION_POINTS,
        method=asked.method,
        tolerance=asked.tolerance,
    )
    seen = replace(seen, trajectories=np.array(own, dtype=np.int64)[seen.trajectories])
    return replace(found, section=seen, orbits=seen.turns)


def _derived(model: Model, plan: Plan, growth: Array, found: Estimate) -> Derived:
    """What follows from the exponents; NaN where there are none."""
    if not found.used.any():
        return Derived(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, None)
    series = growth[found.used] / plan.block
    states = len(model.states)
    return derived(found.cleaned, series, found.zeros, states, hamiltonian=plan.hamiltonian)


def _outcome(asked: Asked, plan: Plan, found: Estimate, blocks: int) -> Outcome:
    if not found.used.any():
        return Outcome.NOT_INTEGRABLE
    if asked.error is not None and not reached(found, asked.error, blocks):
        return Outcome.NOT_PRECISE
    return Outcome.DONE


def _cause(failures: tuple[Failure, ...]) -> str:
    """The first trajectory that stopped, how many others did, and what can be done."""
    if not failures:
        return ""
    first, others = failures[0], len(failures) - 1
    where = f"trajectory {first.lane} stopped at t = {first.time:.6g}"
    so_did = f"; so did {others} other{'s' * (others > 1)}" if others else ""
    return f"{where}: {first.outcome.value} ({first.cause}){so_did}; give another start or other parameters"


def _mean_divergence(divergence: Array, plan: Plan, found: Estimate) -> float:
    """Of the trajectories in the means, per unit of time."""
    own = divergence[plan.draws == 0][found.used]
    return float(own.mean() / plan.block) if own.size else float("nan")


def drift(invariants: Array) -> float:
    """The largest change of an invariant (L, marks) since the start, relative; absolute where it is 0."""
    finite = np.isfinite(invariants).all(axis=1)
    if not invariants.shape[1] or not finite.any():
        return float("nan")
    own, first = invariants[finite], invariants[finite, :1]
    return float((np.abs(own - first) / np.where(first == 0.0, 1.0, np.abs(first))).max())
