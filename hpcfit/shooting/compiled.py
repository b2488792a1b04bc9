"""Rows, gaps and slopes of all members in machine code; `Measurements` is the reference."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcfit.kernels.readings import readings_kernel
from hpcfit.kernels.room import room
from hpcfit.linear.chain import Residuals, Unknowns
from hpcfit.models.define import Model
from hpcfit.records import Array
from hpcfit.shooting.measurements import Intervals, Measurements


class _Reading(ctypes.Structure):
    """The `reading` of kernels/runtime/rows.h."""

    _fields_ = [
        *[(name, ctypes.c_long) for name in ("members", "nodes", "outputs", "q", "weight_stride")],
        *[(name, ctypes.c_void_p) for name in ("at_nodes", "ends", "by_start", "by_parameters")],
        *[(name, ctypes.c_void_p) for name in ("parameters", "times", "data", "weights", "linked", "free")],
        *[(name, ctypes.c_void_p) for name in ("rows", "links", "rows_by_node", "rows_by_parameters")],
        ("finite", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Measured:
    """F(z) of all members, A and B where they were asked for, and which members are finite (M,)."""

    residuals: Residuals
    rows_by_node: Array | None
    rows_by_parameters: Array | None
    finite: NDArray[np.bool_]


def measured(
    model: Model, what: Measurements, z: Unknowns, parameters: Array, flown: Intervals, *, slopes: bool
) -> Measured:
    """The same as the reference's `residuals` and, for members with slopes of their own, `slopes`."""
    (members, nodes, n), (outputs, o), q = z.nodes.shape, what.data.shape[2:], len(what.free)
    rows, links = room(members, nodes, outputs * o), room(members, nodes - 1, n)
    arrays: dict[str, Any] = {
        "at_nodes": np.ascontiguousarray(z.nodes),
        "ends": np.ascontiguousarray(flown.ends),
        "parameters": np.ascontiguousarray(parameters),
        "times": np.ascontiguousarray(what.grid.data_times),
        "data": np.ascontiguousarray(what.data),
        "weights": np.ascontiguousarray(what.weights),
        "linked": what.grid.linked.astype(np.uint8),
        "free": np.array(what.free, dtype=np.int64),
        "rows": rows,
        "links": links,
        "finite": np.empty(members, dtype=np.uint8),
    }
    if slopes:
        assert flown.by_start is not None
        assert flown.by_parameters is not None
        arrays |= {
            "by_start": np.ascontiguousarray(flown.by_start),
            "by_parameters": np.ascontiguousarray(flown.by_parameters),
            "rows_by_node": room(members, nodes, outputs * o, n),
            "rows_by_parameters": room(members, nodes, outputs * o, q),
        }
    job = _Reading(
        members=members,
        nodes=nodes,
        outputs=outputs,
        q=q,
        weight_stride=0 if len(what.weights) == 1 else nodes * outputs * o,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    readings_kernel(model, what.readings.names).library.measure(ctypes.byref(job))
    return Measured(
        Residuals(rows, links),
        arrays.get("rows_by_node"),
        arrays.get("rows_by_parameters"),
        arrays["finite"].astype(bool),
    )
