"""A driven oscillator in which everything depends on everything, and its flow to thirty digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcfit.flow.propagate import propagate
from hpcfit.models.define import Model
from hpcfit.models.strings import model_from_strings

DRIVEN = model_from_strings(
    "driven",
    states=["x", "y"],
    parameters=["a", "b", "c"],
    equations={"x": "y + b*sin(t)*x/4", "y": "-a*x - c*y**3 + cos(t)"},
    observables={"g": "exp(-a*t/5)*x*y + b*t", "h": "x/(2 + c*y**2) + sin(t)"},
)
TRUTH = (1.3, 0.4, 0.2)
Wide = np.ndarray  # of numpy.longdouble


def read(name: str, t: Wide, u: Wide, p: Wide) -> Wide:
    """What an instrument reads: the observables once more, by hand. u (..., 2), p (3,)."""
    x, y = u[..., 0], u[..., 1]
    a, b, c = p
    return {
        "x": x,
        "y": y,
        "g": np.exp(-a * t / 5) * x * y + b * t,
        "h": x / (2 + c * y**2) + np.sin(t),
    }[name]


def wide_flow(model: Model, times: Sequence[float], start: np.ndarray, parameters: np.ndarray) -> Wide:
    """States (n_times, n) as long doubles, from the 128-bit flow."""
    lanes = propagate(model, times, start, parameters, method="taylor128")
    assert lanes.low is not None
    return lanes.states[0].astype(np.longdouble) + lanes.low.states[0]
