"""The members that deserve a look, and the command that runs each again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array, EnsembleResult, Outcome
from hpcfit.reporting.ensembles.chi_square import beta2, probabilities
from hpcfit.reporting.ensembles.members import column, ended, good, outcomes, unknowns

MOST = 10


@dataclass(frozen=True)
class Worst:
    """A member, how it ended, and the number that makes it conspicuous."""

    member: int
    outcome: Outcome
    measure: str  # beta^2 | deviation | probability
    value: float
    name: str = ""  # of the unknown that deviates


def worst(ensemble: EnsembleResult, most: int = MOST) -> list[Worst]:
    """Members that did not converge, then those farthest from the truth or of the least probable objective.

    The first get more than half of the places only if the others leave them free.
    """
    failed = _failed(ensemble, most)
    far = _far(ensemble, most) if _known(ensemble) else _improbable(ensemble, most)
    return [*failed[: max(most - most // 2, most - len(far))], *far][:most]


def rerun(provenance: Mapping[str, object], member: int) -> str:
    """The command that runs one member again."""
    given = provenance.get("overrides")
    overrides = given if isinstance(given, list | tuple) else ()
    words = ["hpcfit", "run", str(provenance.get("job_file") or "JOB.toml")]
    words += [word for override in overrides for word in ("--set", str(override))]
    return shlex.join([*words, "--member", str(member)])


def _failed(ensemble: EnsembleResult, most: int) -> list[Worst]:
    """By reason, the rarest first; each reason has its share of the places."""
    reasons = [reason for reason in reversed(outcomes(ensemble)) if reason is not ensemble.success]
    factors = beta2(ensemble)
    found: list[Worst] = []
    for k, reason in enumerate(reasons):
        share = -(-(most - len(found)) // (len(reasons) - k))
        for m in np.flatnonzero(ended(ensemble, reason))[:share]:
            found.append(Worst(int(ensemble.members[m]), reason, "beta^2", float(factors[m])))
    return found


def _known(ensemble: EnsembleResult) -> tuple[str, ...]:
    """Parameters whose truth is known; initial states if there are none."""
    known = tuple(
        name for name in unknowns(ensemble) if name in ensemble.truth or name in ensemble.cell_truth
    )
    return tuple(name for name in known if name in ensemble.parameter_names) or known


def _far(ensemble: EnsembleResult, most: int) -> list[Worst]:
    picked, names = good(ensemble), _known(ensemble)
    largest, which = np.zeros(int(picked.sum())), np.zeros(int(picked.sum()), dtype=np.intp)
    for k, name in enumerate(names):
        size = np.abs(np.nan_to_num(column(ensemble, name, picked)[2], posinf=np.inf, neginf=-np.inf))
        which[size > largest] = k
        np.maximum(largest, size, out=largest)
    members = np.flatnonzero(picked)
    return [
        _deviation(ensemble, int(members[m]), names[which[m]]) for m in _greatest(largest, most) if largest[m]
    ]


def _deviation(ensemble: EnsembleResult, place: int, name: str) -> Worst:
    only = np.zeros(len(ensemble.members), dtype=bool)
    only[place] = True
    value = float(column(ensemble, name, only)[2][0])
    return Worst(int(ensemble.members[place]), Outcome.CONVERGED, "deviation", value, name)


def _improbable(ensemble: EnsembleResult, most: int) -> list[Worst]:
    chances, factors = probabilities(ensemble), beta2(ensemble)
    usable = np.flatnonzero(~np.isnan(chances))
    order = usable[np.lexsort((-factors[usable], chances[usable]))[:most]]  # many may be 0
    return [
        Worst(int(ensemble.members[m]), Outcome.CONVERGED, "probability", float(chances[m])) for m in order
    ]


def _greatest(values: Array, most: int) -> NDArray[np.intp]:
    """Places of the greatest values, the greatest first."""
    return np.argsort(-values, kind="stable")[:most]
