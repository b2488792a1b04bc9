"""Nodes that full steps would throw about are held back, each for itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcfit.leastsq.anchors import Anchors
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.gauss_newton import GaussNewton
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns
from hpcfit.linear.segments import Segments
from hpcfit.records import Outcome
from tests.leastsq.toy_problems import run_phase

COUNT, FAR = 200, (17, 90, 143)
MINIMUM = 2.0  # so that angles have a size


@dataclass(frozen=True)
class Circles:
    """For each node the angle at which a unit circle is next to a point of its own, on the axis.

    J^t J = 1 and the whole second derivative is the distance of the point from the centre: full steps
    multiply the error by 1 - distance. Nothing links the nodes.
    """

    distance: np.ndarray  # (N,)
    segments: Segments

    def take(self, members: Members) -> Circles:
        return self

    def put(self, members: Members, other: Circles) -> None:
        raise NotImplementedError

    def roughly(self, tolerance: float) -> Circles:
        return self

    def across(self, comm: Any) -> Across:
        return Across(comm, self.segments)

    def residuals(self, comm: Any, z: Unknowns) -> Residuals:
        angle = z.nodes[..., 0] - MINIMUM
        rows = np.stack([np.cos(angle) - self.distance, np.sin(angle)], axis=2)
        return Residuals(rows, np.zeros((1, len(self.distance) - 1, 1)))

    def linearise(self, comm: Any, z: Unknowns) -> Chain:
        angle, nodes = z.nodes[..., 0] - MINIMUM, len(self.distance)
        return Chain(
            rows_by_node=np.stack([-np.sin(angle), np.cos(angle)], axis=2)[..., None],
            rows_by_parameters=np.zeros((1, nodes, 2, 0)),
            links_by_node=np.zeros((1, nodes - 1, 1, 1)),
            links_by_parameters=np.zeros((1, nodes - 1, 1, 0)),
            residuals=self.residuals(comm, z),
            linked=np.zeros(nodes - 1, dtype=bool),
            segments=self.segments,
        )


def fitted(monkeypatch: Any, hold: bool) -> tuple[Course, GaussNewton]:
    distance = np.full(COUNT, 1.3)
    distance[list(FAR)] = 2.5, 4.0, 6.0
    problem = Circles(distance, Segments.cut(np.ones(COUNT, dtype=np.int64), 8))
    if not hold:
        monkeypatch.setattr(Anchors, "learn", lambda *given: None)
    start = Unknowns(np.full((1, COUNT, 1), MINIMUM + 0.1), np.zeros((1, 0)))
    course, phase = Course.begin(start, None, experiments=COUNT), GaussNewton(1)
    run_phase(problem, course, phase)
    return course, phase


def test_held_nodes_come_to_the_minimum_and_the_others_are_not_kept_waiting(monkeypatch: Any) -> None:
    course, phase = fitted(monkeypatch, hold=True)
    assert course.outcomes == [Outcome.CONVERGED]
    np.testing.assert_allclose(course.z.nodes, MINIMUM, rtol=0.0, atol=1e-8)
    assert phase.anchors.holds is not None
    held = np.flatnonzero(phase.anchors.holds[0])
    assert set(FAR) & set(held.tolist())
    assert len(held) < COUNT // 4
    alone, _ = fitted(monkeypatch, hold=False)
    assert course.iterations[0] < alone.iterations[0]


def test_errors_at_the_end_are_those_without_holds(monkeypatch: Any) -> None:
    """The data alone say how well an angle is known: J^t J = 1 for all of them."""
    course, _ = fitted(monkeypatch, hold=True)
    np.testing.assert_allclose(course.spread.node_errors, 1.0, rtol=1e-12)


def test_what_anchors_say_of_a_trial_is_what_the_step_expects(monkeypatch: Any) -> None:
    """Of linear residuals, a part alpha of the step leaves (1 - alpha) of it, whatever is held."""
    from hpcfit.linear.long import LongInverse
    from tests.linear.chains import random_chain

    chain = random_chain(3, stretch=1.05, n_nodes=30)
    chain = replace(chain, segments=Segments.cut(np.array([30]), 8))
    from hpcfit.mpi.serial import SERIAL

    z = Unknowns(np.ones((1, 30, 3)), np.ones((1, 2)))
    anchors = Anchors()
    anchors.weights = np.abs(np.random.default_rng(4).normal(size=(1, 30, 3)))
    inverse = LongInverse(SERIAL, anchors.added(chain), z)
    alpha = np.array([0.3])
    moved = chain.residuals
    rows = np.einsum("mjkn,mjn->mjk", chain.rows_by_node, inverse.step.nodes)
    rows += np.einsum("mjkq,mq->mjk", chain.rows_by_parameters, inverse.step.parameters)
    links = np.einsum("mjab,mjb->mja", chain.links_by_node, inverse.step.nodes[:, :-1])
    links += np.einsum("mjaq,mq->mja", chain.links_by_parameters, inverse.step.parameters)
    links -= inverse.step.nodes[:, 1:]
    trial = Residuals(moved.rows + 0.3 * rows, moved.links + 0.3 * links)
    away = inverse.away(alpha, np.array([0]), anchors.pulled(trial, inverse.step, alpha))
    assert away[0] < 1e-12 * inverse.increment[0]
