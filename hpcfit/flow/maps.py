"""Discrete maps: iterate the state and, by the chain rule, its tangents."""

from __future__ import annotations

import numpy as np

from hpcfit.flow.progress import Progress
from hpcfit.flow.tangents import ExactField
from hpcfit.models.define import Model
from hpcfit.records import Array, Lanes, Outcome


def iterate(
    model: Model, times: Array, starts: Array, parameters: Array, *, sensitivities: bool, max_steps: int
) -> Lanes:
    """Propagate lanes of a map: times (L, T) are whole numbers, starts (L, n), parameters (L, n_p)."""
    progress = Progress.begin(model, times, starts, parameters, sensitivities)
    frames = progress.function.frame if model.opaque else ExactField(model, sensitivities).frame
    while (going := np.flatnonzero(progress.alive)).size:
        frame = frames(progress.state[:, going], progress.tangents[..., going], progress.parameters[:, going])
        state, tangents = frame.gather(frame.rhs(progress.t[going], frame.y))
        finite = np.isfinite(state).all(axis=0)
        for lane in going[~finite]:
            progress.fail(int(lane), Outcome.NOT_FINITE, progress.culprit(int(lane)))
        lanes = going[finite]
        progress.state[:, lanes], progress.tangents[..., lanes] = state[:, finite], tangents[..., finite]
        progress.t[lanes] += 1.0
        progress.steps[lanes] += 1
        arrived = lanes[progress.due(lanes) == progress.t[lanes]]
        progress.write(arrived, progress.state[:, arrived], progress.tangents[..., arrived])
        progress.stop_spent(progress.steps, max_steps)
    return progress.lanes()
