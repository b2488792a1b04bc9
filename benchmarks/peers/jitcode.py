"""JiTCODE: the variational system as compiled C, under the Fortran DOP853 of scipy."""

from __future__ import annotations

import contextlib
import tempfile

import numpy as np
import symengine
from jitcode import jitcode, t, y

from benchmarks.peers import Answer, Run
from benchmarks.peers.translate import leaves, nonzero_jacobian, table, translate
from hpcfit.models.define import Model
from hpcfit.records import Array

_FUNCTIONS = table(symengine, abs=symengine.Abs, sign=lambda x: symengine.Abs(x) / x)


def prepare(model: Model, tolerance: float) -> Run:
    """Components: the states, then V row by row (by start, by parameters)."""
    n, m = len(model.states), len(model.states) + len(model.parameters)
    symbols = [symengine.Symbol(f"p_{name}") for name in model.parameters]
    places, entries = nonzero_jacobian(model)
    leaf = leaves(t, [y(i) for i in range(n)], symbols, lambda value: value)
    values = translate(model, [*model.equations, *entries], _FUNCTIONS, leaf)
    tangents = [[symengine.Integer(0)] * m for _ in range(n)]
    for (i, j), entry in zip(places, values[n:], strict=True):
        if j < n:
            tangents[i] = [sum_ + entry * y(n + j * m + k) for k, sum_ in enumerate(tangents[i])]
        else:
            tangents[i][j] += entry
    equations = [*values[:n], *(side for row in tangents for side in row)]
    made = jitcode(equations, n=len(equations), control_pars=symbols, verbose=False)
    made.generate_f_C(simplify=False, chunk_size=100)  # to simplify, it would need sympy
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made.compile_C()  # by setuptools, which would read the pyproject.toml of the folder where it runs
    made.set_integrator("dop853", rtol=tolerance, atol=tolerance, nsteps=100_000)

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        ends = np.empty((len(starts), n + n * m))
        identity = np.eye(n, m).ravel()
        for lane, begin in enumerate(t0.tolist()):
            made.set_parameters(parameters[lane])
            made.set_initial_value(np.concatenate([starts[lane], identity]), begin)
            ends[lane] = made.integrate(begin + dt)
        columns = ends[:, n:].reshape(-1, n, m)
        return Answer(ends[:, :n], columns[..., :n], columns[..., n:])

    return run
