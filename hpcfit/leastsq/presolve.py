"""Start values: the parameters alone, with the nodes held at the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcfit.leastsq.course import Course, Numbers, Problem, linearised
from hpcfit.leastsq.growth import decades
from hpcfit.linear.across import Across
from hpcfit.linear.chain import Residuals, Unknowns
from hpcfit.linear.held import held_step
from hpcfit.records import Array

MAX_ITERATIONS = 8
HALVINGS = 8
SHORT = 256  # nodes; the growth along so few does not matter
ENOUGH = 0.01  # change of the misfit, relative, at which the parameters are good enough to begin with


class Presolve:
    """Gauss-Newton steps in p that minimise the defects.

    precision (n,): 1 / sigma of the nodes. rough: relative errors that do not matter beside the data's.
    """

    def __init__(self, members: int, precision: Array, rough: float = 0.0) -> None:
        self.precision, self.rough = precision, rough
        self.done = np.zeros(members, dtype=np.int64)
        self.growth = np.zeros(members)  # decades, at the last linearisation

    def begin(self, members: Numbers) -> None:
        self.done[members], self.growth[members] = 0, 0.0

    def iterate(self, comm: Any, problem: Problem, course: Course, members: Numbers) -> Numbers:
        if not course.z.parameters.shape[1]:
            return members[:0]
        members, part, z, chain = linearised(comm, problem.roughly(self.rough), course, members)
        if not len(members):
            return members
        if chain.segments is not None or chain.shape[1] > SHORT:
            self.growth[members] = decades(part.across(comm), chain)
        before, step = held_step(comm, chain, z, self.precision)
        alpha, after = self._damped(comm, part, z, step, before)
        course.move(members, Unknowns(z.nodes, z.parameters + alpha[:, None] * step))
        length, rank = np.linalg.norm(step, axis=1), np.full(len(members), step.shape[1])
        defect = part.across(comm).largest(np.abs(chain.residuals.links))
        course.note("presolve", members, (before, defect, length, alpha, rank))
        self.done[members] += 1
        onward = (alpha > 0.0) & (before - after > ENOUGH * before) & (self.done[members] < MAX_ITERATIONS)
        return members[onward]

    def _damped(
        self, comm: Any, part: Problem, z: Unknowns, step: Array, before: Array
    ) -> tuple[Array, Array]:
        """The part of each step that does not raise the misfit, and the misfit there; 0 = no part does."""
        alpha, after = np.ones(len(step)), np.full(len(step), np.inf)
        left = np.arange(len(step))
        for _ in range(HALVINGS):
            nodes, parameters = z.take(left).nodes, z.parameters[left] + alpha[left, None] * step[left]
            trial = part.take(left)
            residuals = trial.residuals(comm, Unknowns(nodes, parameters))
            after[left] = self._misfit(trial.across(comm), residuals)
            left = left[~(after[left] <= before[left])]
            if not len(left):
                return alpha, after
            alpha[left] *= 0.5
        alpha[left] = 0.0
        return alpha, after

    def _misfit(self, across: Across, residuals: Residuals) -> Array:
        links = np.einsum("mji,mji,i->mj", residuals.links, residuals.links, self.precision**2)
        return across.objective(residuals) + across.total(links)
