"""Conditions on a fit, as its result tells of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcfit.leastsq.statistics import Spread
from hpcfit.linear.chain import Unknowns, violated
from hpcfit.linear.inverse import first_nodes
from hpcfit.records import Constraint
from hpcfit.shooting.pose import Posed

NOT_MET = 1e-6  # of what a condition adds up: more is no rounding error


def constraints_at(
    posed: Posed, z: Unknowns, spread: Spread, names: Sequence[str], beta2: float
) -> tuple[Constraint, ...]:
    """Every condition where member 0 came to its end; names of the unknowns, beta2 the common factor."""
    conditions = posed.problem.conditions
    if conditions is None:
        return ()
    one = z.take(np.array([0]))
    values = conditions.values(one, posed.problem.all_parameters(one.parameters))[0]
    states = len(names) - z.parameters.shape[1]
    bounded = conditions.bounded(first_nodes(posed.problem.grid.linked))
    found = []
    for k, (text, unknown) in enumerate(zip(conditions.texts, bounded, strict=True)):
        apart = spread.contradictory[0, k] > 0.0
        multiplier = float("nan") if apart else float(spread.multipliers[0, k])
        about = "" if unknown is None else names[unknown[1] + (states if unknown[0] == "parameter" else 0)]
        found.append(
            Constraint(
                text=text,
                exact=bool(conditions.exact[k]),
                value=float(values[k]),
                active=not apart and bool(conditions.exact[k] or np.isfinite(multiplier)),
                multiplier=multiplier if np.isfinite(multiplier) else 0.0,
                error=float(spread.multiplier_errors[0, k] * np.sqrt(beta2)),
                bounds=about,
            )
        )
    return tuple(found)


def not_met(posed: Posed, z: Unknowns) -> str:
    """The conditions that member 0 does not meet, for a person; '' if it meets all."""
    conditions, one = posed.problem.conditions, z.take(np.array([0]))
    if conditions is None:
        return ""
    here = conditions.linearised(one, posed.problem.all_parameters(one.parameters))
    sizes = np.einsum("vcn,vn->c", np.abs(here.by_node[0]), np.abs(one.nodes[0, here.nodes]))
    sizes = sizes + np.abs(here.by_parameters[0]) @ np.abs(one.parameters[0])
    lacking = violated(here.values, here.exact)[0]
    return "; ".join(conditions.texts[k] for k in np.flatnonzero(lacking > NOT_MET * sizes))
