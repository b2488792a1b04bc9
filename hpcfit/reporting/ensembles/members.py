"""Which members count, and what they say of one unknown."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, EnsembleResult, Outcome


def outcomes(ensemble: EnsembleResult) -> dict[Outcome, int]:
    """How many members ended how, the most frequent first."""
    return dict(Counter(ensemble.outcomes).most_common())


def ended(ensemble: EnsembleResult, outcome: Outcome) -> NDArray[np.bool_]:
    """Members with this outcome (M,)."""
    ends = np.fromiter(ensemble.outcomes, dtype=object, count=len(ensemble.outcomes))
    same: NDArray[np.bool_] = np.asarray(ends == outcome, dtype=bool)
    return same


def good(ensemble: EnsembleResult) -> NDArray[np.bool_]:
    """Members that converged (M,)."""
    return ended(ensemble, ensemble.success)


def unknowns(ensemble: EnsembleResult) -> tuple[str, ...]:
    """Parameters, then initial states."""
    states = tuple(name for name in ensemble.names if name not in ensemble.parameter_names)
    return (*ensemble.parameter_names, *states)


def column(ensemble: EnsembleResult, name: str, picked: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Estimates, errors, and (estimate - truth) / error of an unknown, of the picked members."""
    k = ensemble.names.index(name)
    values, errors = ensemble.estimates[picked, k], ensemble.errors[picked, k]
    with np.errstate(divide="ignore", invalid="ignore"):
        return values, errors, (values - ensemble.true(name)[picked]) / errors
