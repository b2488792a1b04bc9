"""How well the data determine the unknowns: covariance, intervals, and what they do not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcfit.leastsq.gauss_newton import Problem
from hpcfit.leastsq.levels import Flags, Numbers
from hpcfit.leastsq.quantiles import fisher, student
from hpcfit.leastsq.scaling import natural_scales
from hpcfit.linear.chain import Chain, Unknowns
from hpcfit.linear.solvers import Solver, dense
from hpcfit.records import Array

INVOLVED = 0.1  # of the largest component: an unknown that takes part in a direction that the data do not see


@dataclass(frozen=True)
class Spread:
    """Covariance factors at the solution without the common factor: covariance = beta^2 L L^t."""

    nodes: Array  # (M, N, n, f) L
    parameters: Array  # (M, q, f) L
    objective: Array  # (M,)
    blind_states: Array  # (M, e n) part of the first nodes in directions that the data do not see
    blind_parameters: Array  # (M, q)


def spread(comm: Any, problem: Problem, z: Unknowns, solver: Solver = dense) -> Spread:
    """One more linearisation, at the solution; NaN for members whose path cannot be integrated."""
    chain = problem.linearise(comm, z)
    alive = chain.finite()
    if not alive.all():
        return _nowhere(chain) if not alive.any() else _some(comm, problem, z, solver, alive)
    scales = natural_scales(chain, z)
    plus = solver(comm, chain, scales)
    nodes, parameters = plus.covariance_factor()
    blind_states, blind_parameters = _blind(plus)
    return Spread(
        nodes * scales.states[:, None, :, None],
        parameters * scales.parameters[..., None],
        chain.residuals.objective(),
        blind_states,
        blind_parameters,
    )


def _blind(plus: Any) -> tuple[Array, Array]:
    """How far each unknown takes part in directions that the data do not see: (M, e n), (M, q)."""
    members, _, _, n, q = plus.chain.shape
    first = [0, *(j + 1 for j, same in enumerate(plus.chain.linked) if not same)]
    if (plus.rank == plus.freedoms).all():
        return np.zeros((members, n * len(first))), np.zeros((members, q))
    directions = [plus.null_directions(node) for node in first]
    states = np.concatenate([nodes for nodes, _ in directions], axis=1)
    return np.linalg.norm(states, axis=2), np.linalg.norm(directions[0][1], axis=2)


def _some(comm: Any, problem: Problem, z: Unknowns, solver: Solver, alive: Flags) -> Spread:
    """The spread of those members that have one."""
    part = spread(comm, problem.take(alive), z.take(alive), solver)
    return Spread(**{name: _padded(values, alive) for name, values in vars(part).items()})


def _padded(values: Array, alive: Flags) -> Array:
    whole = np.full((len(alive), *values.shape[1:]), np.nan)
    whole[alive] = values
    return whole


def _nowhere(chain: Chain) -> Spread:
    members, nodes, _, n, q = chain.shape
    starts = n * (1 + chain.linked.count(False))
    shapes = ((nodes, n, starts + q), (q, starts + q), (), (starts,), (q,))
    return Spread(*(np.full((members, *shape), np.nan) for shape in shapes))


def involved(names: Sequence[str], parts: Array) -> tuple[str, ...]:
    """The unknowns that the data do not determine."""
    largest = np.nanmax(parts, initial=0.0)
    return tuple(name for name, part in zip(names, parts, strict=True) if part > INVOLVED * largest > 0.0)


def common_factor(objective: Array, degrees_of_freedom: Numbers) -> Array:
    """beta^2 (M,); NaN without degrees of freedom."""
    return np.where(degrees_of_freedom > 0, objective / np.maximum(degrees_of_freedom, 1), np.nan)


def fisher_factor(unknowns: int, degrees_of_freedom: int, level: float = 0.95) -> float:
    """gamma = sqrt(l1 F(level; l1, l2)) (5.9)."""
    if degrees_of_freedom < 1:
        return float("nan")
    return float(np.sqrt(unknowns * fisher(unknowns, degrees_of_freedom, level)))


def single_factor(degrees_of_freedom: int, level: float = 0.95) -> float:
    """Student's quantile of a two-sided interval of one unknown."""
    return student(degrees_of_freedom, 0.5 + 0.5 * level) if degrees_of_freedom > 0 else float("nan")
