"""heyoka: Taylor series, compiled by LLVM, on the variational system; one lane or a batch at a time."""

from __future__ import annotations

from typing import Any

import heyoka as hy
import numpy as np

from benchmarks.peers import Answer, Run, kept
from benchmarks.peers.translate import leaves, table, translate
from hpcfit.models.define import Model
from hpcfit.records import Array

# Above so many equations LLVM needs minutes for the unrolled code, which is faster than loops (compact mode).
MOST_UNROLLED = 120

# |x| from heyoka's relu; exact where x does not change its sign within a step.
_FUNCTIONS = table(
    hy,
    abs=lambda x: hy.relu(x) + hy.relu(-x),
    sign=lambda x: hy.relup(x) - hy.relup(-x),
)


def variational_system(model: Model) -> Any:
    """The equations with their derivatives by all start values and parameters, derived by heyoka itself."""
    variables = [hy.expression(f"x{i}") for i in range(len(model.states))]
    parameters = [hy.par[j] for j in range(len(model.parameters))]
    leaf = leaves(hy.time, variables, parameters, hy.expression)
    sides = translate(model, model.equations, _FUNCTIONS, leaf)
    arguments = hy.var_args.vars | hy.var_args.params if parameters else hy.var_args.vars
    return hy.var_ode_sys(list(zip(variables, sides, strict=True)), arguments, order=1)


def integrator(model: Model, tolerance: float, lanes: int, fp_type: type = float) -> Any:
    """A compiled integrator of the variational system: of one lane, or of a batch."""
    n, n_p = len(model.states), len(model.parameters)
    unrolled = fp_type is float and n * (1 + n + n_p) <= MOST_UNROLLED
    options = {"tol": fp_type(tolerance), "compact_mode": not unrolled}
    system = variational_system(model)
    if lanes == 1:
        start: Array = np.zeros(n, fp_type)
        return hy.taylor_adaptive(system, start, pars=np.zeros(n_p, fp_type), fp_type=fp_type, **options)
    return hy.taylor_adaptive_batch(system, np.zeros((n, lanes)), pars=np.zeros((n_p, lanes)), **options)


def prepare(model: Model, tolerance: float, lanes: int = 4) -> Run:
    """The integrator is compiled here, once, and set to new start values for each group of lanes."""
    n = len(model.states)
    made = integrator(model, tolerance, lanes)

    def one_by_one(starts: Array, parameters: Array, t0: Array, dt: float) -> tuple[Array, ...]:
        return with_identity(starts, len(made.state)), parameters, t0, t0 + dt

    def in_groups(*inputs: Any) -> tuple[Array, ...]:
        full, parameters, t0, t1 = one_by_one(*inputs)
        return tuple(in_batches(v, lanes) for v in (full, parameters, t0[:, None], t1[:, None]))

    propagate, packed = (propagate_one, one_by_one) if lanes == 1 else (propagate_batch, in_groups)
    packed = kept(packed)

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        ends = propagate(made, *packed(starts, parameters, t0, dt))
        return unpacked(ends[: len(starts)], n)

    return run


def with_identity(starts: Array, width: int) -> Array:
    """Full start vectors (L, width): heyoka orders derivatives by component, starts before parameters."""
    n = starts.shape[1]
    full = np.zeros((len(starts), width), starts.dtype)
    full[:, :n] = starts
    full[:, n:].reshape(len(starts), n, -1)[:, range(n), range(n)] = 1.0
    return full


def unpacked(ends: Array, n: int) -> Answer:
    """States and derivatives from the full vectors (..., n + n (n + n_p))."""
    tangents = ends[..., n:].reshape(*ends.shape[:-1], n, -1)
    return Answer(ends[..., :n], tangents[..., :n], tangents[..., n:])


def propagate_one(made: Any, full: Array, parameters: Array, t0: Array, t1: Array) -> Array:
    """Lane after lane."""
    ends = np.empty_like(full)
    state, pars = made.state, made.pars
    for lane, (begin, end) in enumerate(zip(t0.tolist(), t1.tolist(), strict=True)):
        state[:] = full[lane]
        pars[:] = parameters[lane]
        made.time = begin
        made.propagate_until(end)
        ends[lane] = state
    return ends


def propagate_batch(made: Any, full: Array, parameters: Array, t0: Array, t1: Array) -> Array:
    """Group after group, every lane to its own final time; all inputs `in_batches`."""
    ends = np.empty_like(full)
    state, pars = made.state, made.pars
    for end, start, values, begin, until in zip(ends, full, parameters, t0, t1, strict=True):
        state[:] = start
        pars[:] = values
        made.set_time(begin[0])
        made.propagate_until(until[0])
        end[:] = state
    return ends.transpose(0, 2, 1).reshape(-1, full.shape[1])


def in_batches(values: Array, size: int) -> Array:
    """(L, width) as (groups, width, size); the last lane fills up the last group."""
    lanes = np.minimum(np.arange(-(-len(values) // size) * size), len(values) - 1)
    grouped = values[lanes].reshape(-1, size, values.shape[1])
    return np.ascontiguousarray(grouped.transpose(0, 2, 1))


def prepare_overhead(lanes: int = 4) -> Run:
    """The same calls for x' = p: what calling heyoka from Python costs, whatever the model."""
    slope = hy.taylor_adaptive_batch(
        [(hy.expression("x"), hy.par[0])], np.zeros((1, lanes)), pars=np.zeros((1, lanes))
    )

    def pack(starts: Array, parameters: Array, t0: Array, dt: float) -> list[Array]:
        ones = np.ones((len(starts), 1))
        return [in_batches(v, lanes) for v in (ones, ones, t0[:, None], t0[:, None] + dt)]

    packed = kept(pack)

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        ends = propagate_batch(slope, *packed(starts, parameters, t0, dt))
        return Answer(ends, ends[:, None], ends[:, None])

    return run


def prepare_dense(
    model: Model, tolerance: float, fractions: Array, *, lanes: int = 4, c_output: bool = False
) -> Run:
    """At these fractions (T,) of the span; the answer's axes are groups, lanes of a group, times, ..."""
    n = len(model.states)
    made = integrator(model, tolerance, lanes)

    def pack(starts: Array, parameters: Array, t0: Array, dt: float) -> list[Array]:
        grid = t0[:, None] + dt * np.concatenate([[0.0], fractions])
        return [in_batches(v, lanes) for v in (with_identity(starts, len(made.state)), parameters, grid)]

    packed = kept(pack)

    def output(grid: Array) -> Array:
        """(T, width, lanes) at the times grid[1:]; grid[0] is the start."""
        if c_output:
            polynomials, _ = made.propagate_until(grid[-1], c_output=True)
            return polynomials(grid[1:])
        return made.propagate_grid(grid)[1][1:]

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        full, pars, grids = packed(starts, parameters, t0, dt)
        ends = np.empty((len(full), len(fractions), *full.shape[1:]))
        for end, begin, values, grid in zip(ends, full, pars, grids, strict=True):
            made.state[:] = begin
            made.pars[:] = values
            made.set_time(grid[0])
            end[:] = output(grid)
        return unpacked(ends.transpose(0, 3, 1, 2), n)

    return run
