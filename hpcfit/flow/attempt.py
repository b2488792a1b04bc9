"""One tried step of many lanes: the tableau as far as each lane needs it, and what to try next.

Order and step control follow Deuflhard (1983) as given by Hairer, Nørsett and Wanner, section II.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.tableau import SUBSTEPS, Row, extrapolated, midpoint_row
from hpcfit.flow.tangents import Frame
from hpcfit.records import Array

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LONGEST_TABLEAU = 10  # rows
SMALLEST_FACTOR, LARGEST_FACTOR = 0.1, 4.0  # of the step size, per step
SMALLEST_SIZE = np.finfo(float).tiny / np.finfo(float).eps  # below it, numbers lose relative precision
WORK = np.cumsum(SUBSTEPS) + 1.0  # evaluations of f up to each row


@dataclass(frozen=True)
class Tolerances:
    """Relative local errors that are allowed in the state and in the tangents."""

    state: float
    tangents: float

    @property
    def usual_row(self) -> int:
        """The row in which a lane may be expected to converge before anything is known about it."""
        return int(np.clip(round(-math.log10(self.state) * 0.6 + 1.5), 2, LONGEST_TABLEAU - 2))


@dataclass
class Attempt:
    """The outcome of a tried step, per lane."""

    accepted: Flags
    end: Array  # (n, columns, lanes)
    last_row: Numbers
    next_h: Array
    next_row: Numbers  # where convergence is expected next time
    not_finite: Flags
    slope: Array  # f at the start of the step
    history: list[Row]  # all rows, if they were to be kept

    def reject(self, lanes: Numbers | Flags, h: Array) -> None:
        """Withdraw the acceptance of some lanes; they try again with the step size h."""
        self.accepted[lanes] = False
        self.next_h[lanes] = h


def try_step(
    frame: Frame, t: Array, h: Array, expected: Numbers, tolerances: Tolerances, keep_history: bool
) -> Attempt:
    """Rows of the tableau until each lane has converged or given up."""
    n_lanes = len(t)
    slope = frame.rhs(t, frame.y)
    attempt = Attempt(
        accepted=np.zeros(n_lanes, dtype=bool),
        end=frame.y.copy(),
        last_row=np.zeros(n_lanes, dtype=np.int64),
        next_h=h.copy(),
        next_row=expected.copy(),
        not_finite=np.zeros(n_lanes, dtype=bool),
        slope=slope,
        history=[],
    )
    errors = np.full((LONGEST_TABLEAU, n_lanes), np.inf)
    undecided, part = np.arange(n_lanes), frame
    tableau: list[Array] = []
    for k in range(LONGEST_TABLEAU):
        row = midpoint_row(part, t[undecided], h[undecided], slope[..., undecided], SUBSTEPS[k], keep_history)
        if keep_history:
            attempt.history.append(_spread(row, undecided, n_lanes))
        tableau = extrapolated(tableau, row.end, SUBSTEPS[: k + 1])
        attempt.last_row[undecided] = k
        if k == 0:
            continue
        error = scaled_error(part, tableau[-1] - tableau[-2], tableau[-1], tolerances)
        errors[k, undecided] = error
        done, hopeless = _verdict(k, error, expected[undecided])
        attempt.accepted[undecided[done]] = True
        attempt.end[..., undecided[done]] = tableau[-1][..., done]
        going = ~(done | hopeless)
        if not going.any():
            break
        if not going.all():
            part, tableau = part.take(going), [column[..., going] for column in tableau]
            undecided = undecided[going]
    _plan_next(attempt, errors, h)
    return attempt


def scaled_error(frame: Frame, error: Array, y: Array, tolerances: Tolerances) -> Array:
    """Largest error of state and tangents in units of what is allowed; inf where not finite.

    A component is measured by its own size, at least a thousandth of the largest component; a tangent by
    its largest component, at least a thousandth of the size (state / unknown) that is natural for it.
    """
    state_error, tangent_error = frame.gather(error)
    state_end, tangent_end = frame.gather(y)
    state_start, tangent_start = frame.gather(frame.y)
    size = np.maximum(np.abs(state_end), np.abs(state_start))
    size = np.maximum(size, np.maximum(1e-3 * size.max(axis=0), SMALLEST_SIZE))
    worst = np.where(state_error == 0.0, 0.0, np.abs(state_error) / (tolerances.state * size)).max(axis=0)
    if tangent_error.shape[1]:
        span = np.maximum(np.abs(tangent_end), np.abs(tangent_start)).max(axis=0)
        span = np.maximum(span, np.maximum(1e-3 * frame.tangent_scale, SMALLEST_SIZE))
        ratio = np.abs(tangent_error) / (tolerances.tangents * span)
        worst = np.maximum(worst, ratio.max(axis=(0, 1)))
    return np.where(np.isfinite(worst), worst, np.inf)


def _spread(row: Row, lanes: Numbers, n_lanes: int) -> Row:
    """The row with room for all lanes, so that lanes keep their numbers when others drop out."""
    if len(lanes) == n_lanes:
        return row

    def wide(values: Array) -> Array:
        full = np.full((*values.shape[:-1], n_lanes), np.nan)
        full[..., lanes] = values
        return full

    return Row(wide(row.end), wide(row.middle), [wide(slope) for slope in row.slopes])


def _verdict(k: int, error: Array, expected: Numbers) -> tuple[Flags, Flags]:
    """Lanes that converged in row k, and lanes that will not in the rows they have left."""
    done = (error <= 1.0) & (k >= expected - 1)
    gain = (SUBSTEPS[k + 1] / SUBSTEPS[0]) ** 2  # what the next row can be expected to win
    gain_of_two = gain * (SUBSTEPS[k + 2] / SUBSTEPS[0]) ** 2
    hopeless = ((k == expected - 1) & (error > gain_of_two)) | ((k == expected) & (error > gain))
    hopeless |= (k >= expected + 1) | (k == LONGEST_TABLEAU - 1) | ~np.isfinite(error)
    return done, hopeless & ~done


def _plan_next(attempt: Attempt, errors: Array, h: Array) -> None:
    """Step size and row of the next try: the cheapest per unit of time."""
    order = 2.0 * np.arange(LONGEST_TABLEAU)[:, None] + 1.0
    factor = 0.94 * (0.65 / np.maximum(errors, 1e-30)) ** (1.0 / order)
    best_h = h * np.clip(factor, SMALLEST_FACTOR, LARGEST_FACTOR)
    work = WORK[:LONGEST_TABLEAU, None] / best_h
    lanes = np.arange(len(h))
    k = np.maximum(attempt.last_row, 1)
    here, below = work[k, lanes], work[np.maximum(k - 1, 1), lanes]
    lower = (k > 2) & (below < 0.8 * here)
    higher = attempt.accepted & ~lower & ((k == 1) | (here < 0.9 * below)) & (k < LONGEST_TABLEAU - 2)
    target = np.where(lower, k - 1, np.where(higher, k + 1, k))
    longer = np.where(higher, WORK[k + 1] / WORK[k], 1.0)  # as much longer as the higher row costs more
    next_h = np.minimum(best_h[np.minimum(target, k), lanes] * longer, h * LARGEST_FACTOR)
    attempt.not_finite = ~np.isfinite(errors[attempt.last_row, lanes])
    attempt.next_h = np.where(attempt.not_finite, h * SMALLEST_FACTOR, next_h)
    target = np.where(attempt.not_finite, attempt.next_row, target)
    attempt.next_row = np.clip(target, 2, LONGEST_TABLEAU - 2)
