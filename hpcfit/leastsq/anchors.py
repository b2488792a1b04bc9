"""Nodes that the exact method holds back, each for itself, where full steps overshoot.

At a minimum where the data bend more than the linearised path, the increments of Gauss-Newton grow from one
iteration to the next, however near it is; in a long series there are always a few such places. One damping
for all nodes would stop the others. The rows hold * ds (Levenberg), with a hold for each node, vanish at the
minimum and leave it where it is.
"""

from __future__ import annotations

import numpy as np

from hpcfit.leastsq.course import Flags
from hpcfit.linear.across import Across
from hpcfit.linear.anchored import anchored, pulled
from hpcfit.linear.chain import Chain, Residuals, Unknowns
from hpcfit.linear.inverse import Inverse
from hpcfit.records import Array

REACH = 3  # nodes on both sides that are judged together
FIRST_HOLD, STRONGER, WEAKER = 1.0, 4.0, 0.5
GROWS, SLOW = 1.5, 0.5  # squares of steps over those of the iteration before: onward, and turning back
CLOSE = 0.9  # of a hold: weaker ones are tried down to it
PART = 0.3  # of the largest square: smaller ones follow those of other nodes


class Anchors:
    """The holds of one long series, learnt from how the increments of its nodes go on."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.holds, self.least = np.zeros((1, 0)), np.zeros((1, 0))  # (1, N) now; the last that was too weak
        self.changed: Flags = np.zeros((1, 0), dtype=bool)  # (1, N) just now: what follows is no surprise
        self.weights: Array | None = None  # (1, N, n), in the problem's own units; None: nobody is held
        self.last: tuple[Array, Array] | None = None  # the step before (1, N, n), its squares around (1, N)

    @property
    def hold(self) -> bool:
        return self.weights is not None

    @property
    def pace(self) -> float:
        """How much of an increment may be left by the next one, where it is not yet rounding that is left."""
        return 0.95 if self.hold else 0.5

    def added(self, chain: Chain) -> Chain:
        return chain if self.weights is None else anchored(chain, self.weights)

    def pulled(self, residuals: Residuals, step: Unknowns, alpha: Array) -> Residuals:
        """The residuals of a trial, whose nodes are alpha * step away from their anchors."""
        if self.weights is None:
            return residuals
        return pulled(residuals, self.weights * alpha[:, None, None] * step.nodes)

    def learn(self, across: Across, here: Inverse, alpha: Array) -> None:
        """Stronger holds where steps turn back or grow; weaker ones where whole steps only creep on."""
        step = here.scales.scaled(here.step).nodes
        squares = across.around((step**2).sum(axis=2), REACH)
        if self.last is None:
            self.holds, self.least = np.zeros(squares.shape), np.zeros(squares.shape)
            self.changed = np.zeros(squares.shape, dtype=bool)
        else:
            before, length = self.last
            onward = across.around((step * before).sum(axis=2), REACH) > 0.0
            ratio = np.where(self.changed, 0.0, squares / np.maximum(length, 1e-300))
            overshoots = (ratio > np.where(onward, GROWS, SLOW)) & (
                squares > PART * across.largest(squares)[:, None]
            )
            creeps = onward & (ratio > SLOW) & ~overshoots & (alpha == 1.0)[:, None]
            self._change(overshoots, creeps)
            anybody = across.largest(self.holds)[0] > 0.0  # on any rank: all of them have the same rows
            self.weights = self.holds[..., None] / here.scales.states[:, None] if anybody else None
        self.last = step, squares

    def _change(self, overshoots: Flags, creeps: Flags) -> None:
        """Between a hold that was too weak and one that is too strong, the middle is tried."""
        known = self.least > 0.0
        self.least = np.where(overshoots, self.holds, self.least)
        stronger = np.where(known, 2.0, STRONGER) * self.holds
        middle = np.maximum(WEAKER * self.holds, np.sqrt(self.least * self.holds))
        weaker = creeps & (middle < CLOSE * self.holds)
        held = np.where(weaker, middle, self.holds)
        self.holds = np.where(overshoots, np.maximum(stronger, FIRST_HOLD), held)
        self.changed = overshoots | weaker
