"""Parameters that every experiment has for itself: fitted as states, shown as parameters k@1, k@2, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpcfit.records import FitResult, Pieces


def local_names(names: Sequence[str], local: Sequence[str]) -> tuple[str, ...]:
    """Those of the unknowns k@1, k@2, ... that are local parameters, by parameter."""
    return tuple(name for own in local for name in names if "@" in name and name.partition("@")[0] == own)


def with_local_parameters(result: FitResult, local: Sequence[str]) -> FitResult:
    """The same fit with the states that stand for local parameters as parameters, after the shared ones."""
    if not local:
        return result
    own = local_names(result.unknowns.names, local)
    parameters = (*result.parameter_names, *own)
    shown = set(parameters)
    states = [name for name in result.unknowns.names if name not in shown]
    true = [k for k, name in enumerate(result.state_names) if name not in local]
    guess = {name: result.guess[name.partition("@")[0]] for name in own}
    return replace(
        result,
        state_names=tuple(result.state_names[k] for k in true),
        parameter_names=parameters,
        unknowns=result.unknowns.part((*states, *parameters)),
        nodes=np.ascontiguousarray(result.nodes[:, true]),
        node_errors=np.ascontiguousarray(result.node_errors[:, true]),
        initial=_of_states(result.initial, true),
        final=_of_states(result.final, true),
        guess={name: value for name, value in result.guess.items() if name not in local} | guess,
    )


def _of_states(pieces: Pieces, states: Sequence[int]) -> Pieces:
    return Pieces(pieces.times, np.ascontiguousarray(pieces.states[..., list(states)]), pieces.nodes)
