"""The variational equations of a traced model, built and integrated by heyoka: an independent answer."""

from __future__ import annotations

import heyoka as hy
import numpy as np

_FUNCTIONS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "negative": lambda x: -x,
    "exp": hy.exp,
    "log": hy.log,
    "sqrt": hy.sqrt,
    "sin": hy.sin,
    "cos": hy.cos,
    "tan": hy.tan,
    "asin": hy.asin,
    "acos": hy.acos,
    "atan": hy.atan,
    "sinh": hy.sinh,
    "cosh": hy.cosh,
    "tanh": hy.tanh,
}


def right_hand_sides(model):
    """[(variable, expression)] of a smooth model, its parameters as heyoka's run-time parameters."""
    variables = hy.make_vars(*model.states)
    variables = variables if isinstance(variables, list) else [variables]
    known = {}
    for index in model.graph.reachable(model.equations):
        operation, arguments, value = model.graph.nodes[index]
        match operation:
            case "constant":
                known[index] = hy.expression(float(value))
            case "time":
                known[index] = hy.time
            case "state":
                known[index] = variables[value]
            case "parameter":
                known[index] = hy.par[value]
            case _:
                known[index] = _FUNCTIONS[operation](*(known[argument] for argument in arguments))
    return list(zip(variables, (known[symbol.index] for symbol in model.equations), strict=True))


def variational(model, start, parameters, times, tolerance=1e-16):
    """States (T, n) and derivatives by start (T, n, n) and parameters (T, n, n_p)."""
    n, n_p = len(model.states), len(model.parameters)
    system = hy.var_ode_sys(right_hand_sides(model), hy.var_args.vars | hy.var_args.params, order=1)
    integrator = hy.taylor_adaptive(
        system, list(start), pars=list(parameters), time=float(times[0]), tol=tolerance, compact_mode=True
    )
    grid = integrator.propagate_grid(np.asarray(times, dtype=float))[-1]
    # heyoka orders the first derivatives component by component, by start before by parameters
    tangents = grid[:, n:].reshape(len(times), n, n + n_p)
    return grid[:, :n], tangents[..., :n], tangents[..., n:]
