"""Small problems with known answers for the loop: no differential equation in sight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Phase
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns
from hpcfit.mpi.serial import SERIAL

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Curve:
    """Nodes s_j = s_0 + j f(p), measured with errors: straight lines, one a member.

    `slope` is what the problem says of the derivative of f, right or wrong.
    """

    data: np.ndarray  # (M, N)
    function: Function = lambda p: p
    slope: Function = np.ones_like

    def take(self, members: Members) -> Curve:
        return replace(self, data=self.data[members])

    def put(self, members: Members, other: Curve) -> None:
        self.data[members] = other.data

    def roughly(self, tolerance: float) -> Curve:
        return self

    def across(self, comm: Any) -> Across:
        return Across(comm)

    def residuals(self, comm: Any, z: Unknowns) -> Residuals:
        ends = z.nodes[:, :-1] + self.function(z.parameters[:, :1])[:, None]
        return Residuals(z.nodes - self.data[..., None], ends - z.nodes[:, 1:])

    def linearise(self, comm: Any, z: Unknowns) -> Chain:
        members, nodes, _ = z.nodes.shape
        by_parameters = np.zeros((members, nodes - 1, 1, z.parameters.shape[1]))
        by_parameters[..., :1] = self.slope(z.parameters[:, :1])[:, None, :, None]
        return Chain(
            rows_by_node=np.ones((members, nodes, 1, 1)),
            rows_by_parameters=np.zeros((members, nodes, 1, z.parameters.shape[1])),
            links_by_node=np.ones((members, nodes - 1, 1, 1)),
            links_by_parameters=by_parameters,
            residuals=self.residuals(comm, z),
            linked=np.ones(nodes - 1, dtype=bool),
        )

    def begin(self, parameters: Any) -> Unknowns:
        """Nodes at the data."""
        first = np.broadcast_to(np.asarray(parameters, dtype=float), (len(self.data), np.size(parameters)))
        return Unknowns(self.data[..., None].copy(), first.copy())


def run_phase(problem: Any, course: Course, phase: Phase, members: np.ndarray | None = None) -> None:
    """One phase alone, for some members or all of them, until nobody goes on."""
    left = np.arange(len(course.outcomes)) if members is None else members
    phase.begin(left)
    while len(left):
        left = phase.iterate(SERIAL, problem, course, left)


def unknowns_alike(one: Unknowns, other: Unknowns) -> None:
    """Bit for bit."""
    np.testing.assert_array_equal(one.nodes, other.nodes)
    np.testing.assert_array_equal(one.parameters, other.parameters)


def noisy_lines(members: int = 3) -> np.ndarray:
    """(M, 8)"""
    rng = np.random.default_rng(2)
    steps = np.arange(1, members + 1)[:, None]
    return 2.0 + 0.3 * steps * np.arange(8) + 0.1 * rng.normal(size=(members, 8))


def regression(data: np.ndarray) -> np.ndarray:
    """Intercepts and slopes (M, 2), by numpy."""
    return np.stack([np.polynomial.polynomial.polyfit(np.arange(data.shape[1]), row, 1) for row in data])
