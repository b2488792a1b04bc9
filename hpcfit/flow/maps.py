"""Discrete maps: iterate the state and, by the chain rule, its tangents."""

from __future__ import annotations

import numpy as np

from hpcfit.flow.progress import Progress
from hpcfit.flow.tangents import ExactField
from hpcfit.records import Outcome


def iterate(progress: Progress, *, max_steps: int) -> None:
    """Take all lanes of a map to their last times, which are whole numbers."""
    model, sensitivities = progress.model, progress.tangents.shape[1] > 0
    frames = progress.function.frame if model.opaque else ExactField(model, sensitivities).frame
    while (going := np.flatnonzero(progress.alive)).size:
        frame = frames(progress.state[:, going], progress.tangents[..., going], progress.parameters[:, going])
        state, tangents = frame.gather(frame.rhs(progress.t[going], frame.y))
        finite = np.isfinite(state).all(axis=0) & np.isfinite(tangents).all(axis=(0, 1))
        for lane in going[~finite]:
            progress.fail(int(lane), Outcome.NOT_FINITE, progress.culprit(int(lane)))
        lanes = going[finite]
        progress.state[:, lanes], progress.tangents[..., lanes] = state[:, finite], tangents[..., finite]
        progress.t[lanes] += 1.0
        progress.steps[lanes] += 1
        arrived = lanes[progress.due(lanes) == progress.t[lanes]]
        progress.write(arrived, progress.state[:, arrived], progress.tangents[..., arrived])
        progress.stop_spent(progress.steps, max_steps)
        progress.tell()
