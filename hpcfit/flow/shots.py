"""Shots: short pieces of path from many nodes of many members at once, without words and without copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.propagate import METHODS, chosen_method
from hpcfit.flow.taylor import FINISHED, call_kernel
from hpcfit.kernels.build import kernel_for
from hpcfit.kernels.room import room
from hpcfit.models.define import Model
from hpcfit.records import Array


@dataclass(frozen=True)
class Shots:
    """M members, L pieces, T times after the begin; NaN after the time at which a piece could not go on."""

    states: Array  # (M, L, T, n)
    by_start: Array | None  # (M, L, T, n, n)
    by_parameters: Array | None  # (M, L, T, n, n_p)
    arrived: NDArray[np.bool_]  # (M,) all pieces came to their end


def can_shoot(model: Model, method: str | None) -> bool:
    """Whether the model runs as a kernel of doubles."""
    return chosen_method(model, method) == "taylor"


def shoot(
    model: Model,
    times: Array,
    starts: Array,
    parameters: Array,
    *,
    sensitivities: bool,
    tolerance: float | None,
    max_steps: int,
) -> Shots:
    """times (L, 1 + T), starts (M, L or more, n), parameters (M, n_p); the bits of `propagate`."""
    (members, rows, n), n_p, (pieces, outputs) = starts.shape, parameters.shape[1], times[:, 1:].shape
    shape = (members, pieces, outputs, n)
    arrays: dict[str, Any] = {
        "times": np.ascontiguousarray(times),
        "starts": np.ascontiguousarray(starts),
        "parameters": np.ascontiguousarray(parameters),
        "states": room(*shape),
        **({"by_start": room(*shape, n), "by_parameters": room(*shape, n_p)} if sensitivities else {}),
        "steps": np.empty(members * pieces, dtype=np.int64),
        "outcome": np.zeros((members, pieces), dtype=np.int32),
    }
    call_kernel(
        kernel_for(model),
        arrays,
        n_lanes=members * pieces,
        time_rows=pieces,
        sharing=pieces,
        start_rows=rows,
        first=1,
        tolerance=METHODS["taylor"].tolerance if tolerance is None else tolerance,
        max_steps=max_steps,
    )
    arrived = (arrays["outcome"] == FINISHED).all(axis=1)
    return Shots(arrays["states"], arrays.get("by_start"), arrays.get("by_parameters"), arrived)
