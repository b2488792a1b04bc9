"""Errors against heyoka in extended precision (64 bits of mantissa), which is independent of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.peers import Answer, Run, heyoka
from benchmarks.workloads import Workload
from hpcfit.models.define import Model
from hpcfit.records import Array

N_CHECKED = 48  # lanes
_TOLERANCE = 1e-18

Errors = tuple[float, float]  # of the states, of the sensitivities


def reference(workload: Workload) -> Answer:
    """The answer of a `Run`, in long doubles."""
    t1 = workload.t0 + workload.dt  # the sum in doubles, as every integrator gets it
    return _exact(workload.model, workload.starts, workload.parameters, workload.t0, t1)


def dense_reference(workload: Workload, fractions: Array) -> Answer:
    """The same at fractions of the span, lanes x times: every point integrated afresh from the start."""
    n_times = len(fractions)
    starts, parameters = (np.repeat(v, n_times, axis=0) for v in (workload.starts, workload.parameters))
    t0 = np.repeat(workload.t0, n_times)
    t1 = (workload.t0[:, None] + workload.dt * fractions).ravel()
    return _exact(workload.model, starts, parameters, t0, t1)


def _exact(model: Model, starts: Array, parameters: Array, t0: Array, t1: Array) -> Answer:
    made = heyoka.integrator(model, _TOLERANCE, lanes=1, fp_type=np.longdouble)
    starts, parameters, t0, t1 = (v.astype(np.longdouble) for v in (starts, parameters, t0, t1))
    full = heyoka.with_identity(starts, len(made.state))
    return heyoka.unpacked(heyoka.propagate_one(made, full, parameters, t0, t1), len(model.states))


def errors(answer: Answer, exact: Answer) -> Errors:
    """Largest errors of the states and of the sensitivities, relative to the largest value along the path.

    The scale of a state is its own largest value; that of a tangent is its largest component.
    """
    states, *both = (values.reshape(right.shape) for values, right in zip(answer, exact, strict=True))
    tangents = np.concatenate(both, axis=2)
    exact_tangents = np.concatenate([exact.by_start, exact.by_parameters], axis=2)
    return _largest(states, exact.states, (0,)), _largest(tangents, exact_tangents, (0, 1))


def _largest(values: Array, exact: Array, axes: tuple[int, ...]) -> float:
    scale = np.abs(exact).max(axis=axes, keepdims=True)
    return float((np.abs(values - exact) / np.where(scale > 0, scale, 1.0)).max())


def reaches(found: Errors, aim: Errors) -> bool:
    """True if both are small enough; NaN is not."""
    return found[0] <= aim[0] and found[1] <= aim[1]


def loosest(
    prepare: Callable[[float], Run],
    tolerances: Sequence[float],
    aim: Errors,
    checked: Workload,
    exact: Answer,
) -> tuple[Run, float, Errors]:
    """Run, tolerance and errors at the first tolerance that reaches the aim; at the last if none does."""
    for tolerance in tolerances:
        run = prepare(tolerance)
        found = errors(run(*checked.lanes), exact)
        if reaches(found, aim):
            break
    return run, tolerance, found
