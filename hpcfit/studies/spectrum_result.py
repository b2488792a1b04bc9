"""From logarithms of growth to a spectrum with errors."""

from __future__ import annotations

import numpy as np

from hpcfit.models.define import Model
from hpcfit.records import Array, Failure, Halt, Outcome, Spectrum
from hpcfit.studies.spectrum_plan import Asked, Plan

FEWEST_BLOCKS = 32  # before errors are compared with what is asked


def precise_enough(error: float | None, plan: Plan, logarithms: Array) -> bool:
    """True if all standard errors are as small as asked; logarithms (L, b, k) without the transient."""
    if error is None or logarithms.shape[1] < FEWEST_BLOCKS:
        return False
    _, errors = estimates(logarithms, plan.block)
    return bool((errors <= error).all())


def estimates(logarithms: Array, block: float) -> tuple[Array, Array]:
    good = np.isfinite(logarithms).all(axis=(1, 2))
    rates = logarithms[good] / block
    if not rates.size:
        return np.full(logarithms.shape[2], np.nan), np.full(logarithms.shape[2], np.nan)
    return rates.mean(axis=(0, 1)), rates.reshape(-1, rates.shape[2]).std(axis=0) / np.sqrt(
        rates[..., 0].size
    )


def made_of(model: Model, plan: Plan, asked: Asked, halt: Halt) -> Spectrum:
    """The spectrum at its end."""
    logarithms = halt.logarithms[:, plan.transient_blocks :]
    measured = logarithms.shape[1]
    exponents, errors = estimates(logarithms, plan.block)
    k = len(exponents)
    stopped = {failure.lane for failure in halt.failures}
    none_left = len(stopped) == len(plan.starts) or not measured
    outcome = Outcome.NOT_INTEGRABLE if none_left else Outcome.DONE
    if not none_left and asked.error is not None and not (errors <= asked.error).all():
        outcome = Outcome.NOT_PRECISE
    return Spectrum(
        model=model.name,
        state_names=model.states,
        parameter_names=model.parameters,
        kind=model.kind,
        starts=plan.starts,
        parameters=plan.parameters,
        outcome=outcome,
        cause=_cause(halt.failures),
        exponents=exponents,
        errors=errors,
        bounds=np.full(k, np.nan),
        dimension=np.nan,
        dimension_error=np.nan,
        entropy=np.nan,
        entropy_error=np.nan,
        zeros=0,
        duration=measured * plan.block,
        transient=plan.transient_blocks * plan.block,
        block=plan.block,
        interval=plan.interval,
        growth=logarithms,
        regular=np.zeros(len(plan.starts), dtype=bool),
        failures=halt.failures,
        divergence=_mean_divergence(halt, plan),
        drift=drift(halt.invariants),
        seconds=halt.seconds,
        units=model.units,
        seed=asked.seed,
        begin=plan.begin,
        driven=plan.driven,
        symplectic=plan.symplectic,
        steps=int(halt.steps.sum()),
        draws=plan.draws if plan.draws.any() else None,
    )


def _mean_divergence(halt: Halt, plan: Plan) -> float:
    own = halt.divergence[:, plan.transient_blocks :]
    good = np.isfinite(own).all(axis=1)
    return float(own[good].mean() / plan.block) if good.any() and own.size else float("nan")


def drift(invariants: Array) -> float:
    """The largest relative change of an invariant since the start; NaN without one."""
    finite = np.isfinite(invariants).all(axis=1)
    if not invariants.shape[1] or not finite.any():
        return float("nan")
    own = invariants[finite]
    first = own[:, :1]
    size = np.where(first == 0.0, 1.0, np.abs(first))
    return float((np.abs(own - first) / size).max())


def _cause(failures: tuple[Failure, ...]) -> str:
    """The first trajectory that stopped, how many others did, and what can be done."""
    if not failures:
        return ""
    first = failures[0]
    others = f"; so did {len(failures) - 1} others" if len(failures) > 1 else ""
    where = f"trajectory {first.lane + 1} stopped at t = {first.time:.6g}"
    return (
        f"{where}: {first.outcome.value} ({first.cause}){others}; give it another start or other parameters"
    )
