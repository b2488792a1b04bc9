"""Derivatives of paths by differences of 128-bit runs: good to far more digits than doubles have."""

from __future__ import annotations

import numpy as np

from hpcfit.flow.propagate import propagate
from hpcfit.models.define import Model
from hpcfit.records import Array


def quad_derivatives(model: Model, times: Array, start: Array, parameters: Array) -> Array:
    """d state / d (start, parameters) (n_times, n, n + n_p): central differences, extrapolated once."""
    z = np.concatenate([start, parameters]).astype(float)
    n, levels = len(start), []
    for size in (2.0**-24, 2.0**-25):
        shifts = size * np.diag(np.maximum(np.abs(z), 0.1))
        up, down = z + shifts, z - shifts
        moved = np.concatenate([up, down])
        lanes = propagate(model, times, moved[:, :n], moved[:, n:], method="taylor128")
        assert lanes.failures == (), lanes.failures
        assert lanes.low is not None
        widths = np.array([(up[i, i] - down[i, i]) for i in range(len(z))])
        high, low = (part[: len(z)] - part[len(z) :] for part in (lanes.states, lanes.low.states))
        levels.append(((high + low) / widths[:, None, None]).transpose(1, 2, 0))
    derivatives: Array = levels[1] + (levels[1] - levels[0]) / 3
    return derivatives
