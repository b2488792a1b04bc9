"""scipy's DOP853 on the variational system, with exact Jacobians written out as Python code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import DOP853

from benchmarks.peers import Answer, Run
from benchmarks.peers.translate import ELEMENTARY, leaves, nonzero_jacobian, translate
from hpcfit.models.define import Model
from hpcfit.models.graph import Symbol
from hpcfit.records import Array

_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}


def python_function(model: Model, outputs: Sequence[Symbol]) -> Callable[..., list[float]]:
    """f(t, x, p) -> values, one line of Python for each shared subexpression."""
    lines: list[str] = []

    def named(text: str) -> str:
        lines.append(f"    v{len(lines)} = {text}")
        return f"v{len(lines) - 1}"

    def infix(sign: str) -> Callable[..., str]:
        return lambda x, y: named(f"{x} {sign} {y}")

    def call(name: str) -> Callable[..., str]:
        return lambda x: named(f"{name}({x})")

    functions = {name: infix(sign) for name, sign in _INFIX.items()}
    functions |= {name: call(name) for name in (*ELEMENTARY, "abs")}
    functions |= {"negative": call("-"), "sign": lambda x: named(f"copysign(1.0, {x})")}
    states = [f"x[{i}]" for i in range(len(model.states))]
    parameters = [f"p[{j}]" for j in range(len(model.parameters))]
    results = translate(model, outputs, functions, leaves("t", states, parameters, repr))
    source = "\n".join(["def function(t, x, p):", *lines, f"    return [{', '.join(results)}]"])
    scope: dict[str, Any] = {name: getattr(math, name) for name in (*ELEMENTARY, "copysign")}
    exec(source, scope)
    function: Callable[..., list[float]] = scope["function"]
    return function


def prepare(model: Model, tolerance: float) -> Run:
    """V' = f_x V + f_p beside x' = f, all with one step size."""
    n, m = len(model.states), len(model.states) + len(model.parameters)
    places, entries = nonzero_jacobian(model)
    function = python_function(model, [*model.equations, *entries])
    flat = np.array([i * m + j for i, j in places], dtype=int)
    full = np.zeros(n * m)

    def slope(t: float, z: Array, p: list[float]) -> Array:
        values = function(t, z[:n].tolist(), p)
        full[flat] = values[n:]
        both = full.reshape(n, m)
        tangents = both[:, :n] @ z[n:].reshape(n, m)
        tangents[:, n:] += both[:, n:]
        return np.concatenate([values[:n], tangents.ravel()])

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        ends = np.empty((len(starts), n + n * m))
        for lane, (begin, p) in enumerate(zip(t0.tolist(), parameters.tolist(), strict=True)):
            z = np.concatenate([starts[lane], np.eye(n, m).ravel()])
            solver = DOP853(
                lambda t, z, p=p: slope(t, z, p), begin, z, begin + dt, rtol=tolerance, atol=tolerance
            )
            while solver.status == "running":
                solver.step()
            ends[lane] = solver.y
        tangents = ends[:, n:].reshape(-1, n, m)
        return Answer(ends[:, :n], tangents[..., :n], tangents[..., n:])

    return run
