"""CasADi: Runge–Kutta of order 4, fixed steps, on the variational system; compiled as C, mapped over lanes.

Its `integrator("cvodes")` with forward sensitivities, not compiled and at reltol 1e-12, took 1080 µs for an
interval of Hénon–Heiles where this takes 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from benchmarks.peers import Answer, Run
from benchmarks.peers.translate import leaves, table, translate
from hpcfit.models.define import Model
from hpcfit.records import Array

MOST_STEPS = 4096
N_TRIED = 40  # lanes on which the number of steps is chosen
_FUNCTIONS = table(ca, abs=ca.fabs, sign=ca.sign)
_COMPILED = {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O3", "-march=native"]}}


def prepare(model: Model, tolerance: float) -> Run:
    """The first run with an interval length chooses the number of steps for it, and compiles."""
    step = runge_kutta_step(model)
    chosen: dict[float, Run] = {}

    def choose(starts: Array, parameters: Array, t0: Array, dt: float) -> Run:
        some = np.linspace(0, len(starts) - 1, N_TRIED).astype(int)
        lanes = starts[some], parameters[some], t0[some], dt
        n_steps = enough_steps(lambda n_steps: lanes_with(model, step, n_steps, {})(*lanes), tolerance)
        return lanes_with(model, step, n_steps, _COMPILED)

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        if dt not in chosen:
            chosen[dt] = choose(starts, parameters, t0, dt)
        return chosen[dt](starts, parameters, t0, dt)

    return run


def runge_kutta_step(model: Model) -> Any:
    """(t, x, V), p, h -> the same after a step; V moves by exactly the derivative of the step of x."""
    n, n_p = len(model.states), len(model.parameters)
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    x, p, tangents = ca.SX.sym("x", n), ca.SX.sym("p", n_p), ca.SX.sym("V", n, n + n_p)
    symbols = leaves(t, ca.vertsplit(x), ca.vertsplit(p) if n_p else (), ca.SX)
    side = ca.vertcat(*translate(model, model.equations, _FUNCTIONS, symbols))
    by_parameters = ca.horzcat(ca.SX(n, n), ca.jacobian(side, p))
    slope = ca.vertcat(1.0, side, ca.vec(ca.jacobian(side, x) @ tangents + by_parameters))
    z = ca.vertcat(t, x, ca.vec(tangents))
    f = ca.Function("f", [z, p], [slope], {"cse": True})
    k1 = f(z, p)
    k2 = f(z + h / 2 * k1, p)
    k3 = f(z + h / 2 * k2, p)
    k4 = f(z + h * k3, p)
    return ca.Function("step", [z, p, h], [z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)], {"cse": True})


def enough_steps(answer_with: Callable[[int], Answer], tolerance: float) -> int:
    """Doubled until the answer with half as many was within 5 tolerances: order 4 leaves 1/15 of that."""
    n_steps, coarse = 1, answer_with(1)
    while n_steps < MOST_STEPS:
        n_steps *= 2
        fine = answer_with(n_steps)
        changes = (np.abs(a - b).max() / np.abs(b).max() for a, b in zip(coarse, fine, strict=True) if b.size)
        if max(changes) < 5 * tolerance:
            break
        coarse = fine
    return n_steps


def lanes_with(model: Model, step: Any, n_steps: int, options: dict[str, Any]) -> Run:
    """`n_steps` equal steps, for all lanes in one call of CasADi."""
    n, m = len(model.states), len(model.states) + len(model.parameters)
    z, p, h = (ca.MX.sym(name, step.size1_in(k)) for k, name in enumerate("zph"))
    ends = step.mapaccum(n_steps)(z, ca.repmat(p, 1, n_steps), ca.repmat(h, 1, n_steps))
    interval = ca.Function("interval", [z, p, h], [ends[:, -1]], options)
    mapped: dict[int, Any] = {}

    def run(starts: Array, parameters: Array, t0: Array, dt: float) -> Answer:
        n_lanes = len(starts)
        if n_lanes not in mapped:
            mapped[n_lanes] = interval.map(n_lanes)
        identity = np.tile(np.eye(n, m).ravel(order="F"), (n_lanes, 1))
        z = np.hstack([t0[:, None], starts, identity]).T
        z = mapped[n_lanes](z, parameters.T, np.full((1, n_lanes), dt / n_steps)).full().T
        tangents = z[:, 1 + n :].reshape(n_lanes, m, n).transpose(0, 2, 1)
        return Answer(z[:, 1 : 1 + n], tangents[..., :n], tangents[..., n:])

    return run
