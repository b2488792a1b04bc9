"""The other programs that compute Lyapunov spectra, each with the same face.

prepare(model, tolerance) -> grow
grow(starts (L, n), parameters (L, n_p), duration, interval) -> Stretched
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.translate import leaves, table, translate
from hpcfit.models.define import Model
from hpcfit.records import Array


class Stretched(NamedTuple):
    """Where trajectories have come to, and the mean logarithm of the growth of each direction."""

    states: Array  # (L, n)
    exponents: Array  # (L, n)


Spectra = Callable[[Array, Array, float, float], Stretched]


def prepare_heyoka(model: Model, tolerance: float, lanes: int) -> Spectra:
    """heyoka's variational equations, orthonormalised by numpy between its steps, all lanes at once."""
    import heyoka as hy

    from benchmarks.peers.heyoka import MOST_UNROLLED

    n, n_p = len(model.states), len(model.parameters)
    variables = [hy.expression(f"x{i}") for i in range(n)]
    leaf = leaves(hy.time, variables, [hy.par[j] for j in range(n_p)], hy.expression)
    sides = translate(model, model.equations, table(hy), leaf)
    system = hy.var_ode_sys(list(zip(variables, sides, strict=True)), hy.var_args.vars, order=1)
    options: dict[str, Any] = {"tol": tolerance, "compact_mode": n * (1 + n) > MOST_UNROLLED}
    if lanes == 1:
        made = hy.taylor_adaptive(system, np.zeros(n), pars=np.zeros(n_p), **options)
    else:
        made = hy.taylor_adaptive_batch(system, np.zeros((n, lanes)), pars=np.zeros((n_p, lanes)), **options)

    def group(starts: Array, parameters: Array, duration: float, interval: float) -> Stretched:
        state = made.state.reshape(n + n * n, lanes)
        state[:n] = starts.T
        state[n:] = np.eye(n).reshape(-1, 1)
        made.pars.reshape(n_p, lanes)[:] = parameters.T
        if lanes == 1:
            made.time = 0.0
        else:
            made.set_time(0.0)
        sums = np.zeros((lanes, n))
        for t in np.arange(1, round(duration / interval) + 1) * interval:
            made.propagate_until(t)
            q, r = np.linalg.qr(state[n:].T.reshape(lanes, n, n))
            sums += np.log(np.abs(np.einsum("lkk->lk", r)))
            state[n:] = q.reshape(lanes, n * n).T
        return Stretched(state[:n].T.copy(), sums / duration)

    def grow(starts: Array, parameters: Array, duration: float, interval: float) -> Stretched:
        parts = [
            group(starts[i : i + lanes], parameters[i : i + lanes], duration, interval)
            for i in range(0, len(starts), lanes)
        ]
        return Stretched(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    return grow


def prepare_jitcode(model: Model, tolerance: float) -> Spectra:
    """jitcode_lyap, which orthonormalises at each call, under the Fortran DOP853 of scipy."""
    import symengine
    from jitcode import jitcode_lyap, t, y

    n = len(model.states)
    symbols = [symengine.Symbol(f"p_{name}") for name in model.parameters]
    sides = translate(
        model,
        model.equations,
        table(symengine),
        leaves(t, [y(i) for i in range(n)], symbols, lambda value: value),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all exponents are wanted
        made = jitcode_lyap(sides, n_lyap=n, simplify=False, control_pars=symbols, verbose=False)
    made.generate_f_C(simplify=False, chunk_size=100)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made.compile_C()
    made.set_integrator("dop853", rtol=tolerance, atol=tolerance)

    def grow(starts: Array, parameters: Array, duration: float, interval: float) -> Stretched:
        states, exponents = np.empty((len(starts), n)), np.zeros((len(starts), n))
        times = np.arange(1, round(duration / interval) + 1) * interval
        for lane, start in enumerate(starts):
            made.set_parameters(parameters[lane])
            made.set_initial_value(start, 0.0)
            for time in times:
                exponents[lane] += made.integrate(time)[1]
            states[lane] = made.y[:n]
        return Stretched(states, exponents / len(times))

    return grow
