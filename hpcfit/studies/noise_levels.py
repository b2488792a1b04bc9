"""Unknown noise levels: the standard deviation of each quantity, found from the residuals of the fit itself.

Iterated variance components (Helmert; Förstner 1979): sigma_c^2 is the sum of squares of the residuals of a
quantity, divided by its share of the degrees of freedom, sum (1 - h_ii) with the leverages h = J J+; the fit
is repeated with it until it stays. At the end it is the restricted maximum likelihood of Gaussian errors, and
its standard error is sigma_c / sqrt(2 share).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcfit.leastsq.strategy import Options
from hpcfit.linear.chain import Unknowns
from hpcfit.models.names import nearest
from hpcfit.mpi.serial import SERIAL
from hpcfit.records import Array, InputError, Mistake
from hpcfit.shooting.pose import Posed

KEY = "fit.unknown_sigma"
ROUNDS, ENOUGH = 40, 1e-7  # relative change of a standard deviation
FEWEST = 1.0  # degrees of freedom that tell a noise level


@dataclass(frozen=True)
class Levels:
    """Factors of the stated standard deviations, or these themselves where none are stated."""

    values: Mapping[str, float]
    errors: Mapping[str, float]  # standard errors


def check_levels(posed: Posed, names: Sequence[str]) -> None:
    """Refuse levels of what is not observed, and those that the rows cannot tell apart."""
    observed = posed.problem.readings.names
    for name in names:
        if name not in observed:
            raise InputError(
                Mistake("", f"'{name}' is not observed", nearest(name, observed), KEY, list(names))
            )
    if names and posed.problem.timed is not None:
        problem = "errors of values and of times cannot both be told from the residuals"
        raise InputError(Mistake("", problem, 'set fit.times = "exact", or state sigma', KEY, list(names)))


def with_levels(comm: Any, posed: Posed, names: Sequence[str], solve: Any, options: Options) -> Any:
    """The problem with its noise levels, its solution, and the levels; `solve` as `solve_posed`."""
    solved = solve(comm, posed, options)
    observed = posed.problem.readings.names
    factor, share = np.ones(len(observed)), np.ones(len(observed))
    unknown = np.array([name in names for name in observed])
    weights, given = posed.problem.weights, posed.experiments
    for _ in range(ROUNDS):
        squares, share = _components(posed, solved.course.z, options)
        if (share[unknown] < FEWEST).any():
            name = observed[int(np.argmax(unknown & (share < FEWEST)))]
            raise InputError(
                Mistake("", f"the data are too few to tell the noise of {name}", "state its sigma", KEY)
            )
        change = np.where(unknown, np.sqrt(squares / np.where(unknown, share, 1.0)), 1.0)
        if not np.isfinite(change).all() or (change == 0.0).any():
            break  # the fit has failed, or leaves no residuals
        factor = factor * change
        series = tuple(_scaled(each, dict(zip(observed, factor, strict=True))) for each in given)
        before, z = solved.course, solved.course.z
        posed = replace(
            posed,
            problem=replace(posed.problem, weights=weights / factor),
            start=Unknowns(z.nodes, z.parameters),
            experiments=series,
            sigma_known=False,
        )
        again = solve(comm, posed, replace(options, phases="exact"))
        again.course.iterations[:] += before.iterations
        again.course.linearisations[:] += before.linearisations
        if again.course.history and before.history:
            again.course.history[0][:0] = before.history[0]
        if before.attempts:
            again.course.attempts = before.attempts
        solved = replace(again, seconds=solved.seconds + again.seconds)
        if (np.abs(change - 1.0) < ENOUGH).all():
            break
    own = [k for k, name in enumerate(observed) if unknown[k]]
    values = {observed[k]: float(factor[k]) for k in own}
    errors = {observed[k]: float(factor[k] / np.sqrt(2.0 * share[k])) for k in own}
    return posed, solved, Levels(values, errors)


def _components(posed: Posed, z: Unknowns, options: Options) -> tuple[Array, Array]:
    """Of each quantity: the sum of squares of its rows, and its share of the degrees of freedom (o,)."""
    problem = posed.problem
    with np.errstate(all="ignore"):
        chain = problem.linearise(SERIAL, z)
        found = options.solver(SERIAL, chain, z)
        of_nodes, of_parameters = found.covariance_factor(np.array([0]), all_nodes=True)
        seen = chain.rows_by_node[0] @ of_nodes[0] + chain.rows_by_parameters[0] @ of_parameters[0]
    shape = problem.data.shape[1:]
    leverage = (seen**2).sum(axis=-1).reshape(shape)
    there = np.isfinite(problem.data[0]) & (problem.weights[0] > 0.0)
    squares = (chain.residuals.rows[0].reshape(shape) ** 2).sum(axis=(0, 1))
    return squares, np.where(there, 1.0 - leverage, 0.0).sum(axis=(0, 1))


def _scaled(series: Any, factors: Mapping[str, float]) -> Any:
    """The series with standard deviations of this size."""
    stated = np.ones_like(series.values) if series.sigma is None else series.sigma
    return replace(series, sigma=stated * [factors[name] for name in series.names])
