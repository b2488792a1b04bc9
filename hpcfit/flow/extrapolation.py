"""Gragg–Bulirsch–Stoer extrapolation, each lane with an order and a step size of its own.

The integrator of PARFIT (Bulirsch and Stoer 1966). A lane's numbers depend on that lane alone.
"""

from __future__ import annotations

import numpy as np

from hpcfit.flow.attempt import SMALLEST_FACTOR, Attempt, Numbers, Tolerances, scaled_error, try_step
from hpcfit.flow.progress import Progress
from hpcfit.flow.tableau import Row, step_polynomial
from hpcfit.flow.tangents import DIFFERENCE_TOLERANCE, ExactField, Frame, FrameMaker
from hpcfit.records import Array, Outcome

INTERPOLATION_MARGIN = 10.0  # the polynomial inside a step may err this much more than its end


def extrapolate(progress: Progress, *, tolerance: float, max_steps: int, differences: bool = False) -> None:
    """Take all lanes to their last times.

    `differences` differentiates the scheme numerically, as PARFIT did and opaque models need; otherwise
    the tangents are moved by the exact derivatives of the model.
    """
    model, sensitivities = progress.model, progress.tangents.shape[1] > 0
    numerically = differences or model.opaque
    frames: FrameMaker = progress.function.frame if numerically else ExactField(model, sensitivities).frame
    tolerances = Tolerances(tolerance, max(tolerance, DIFFERENCE_TOLERANCE) if numerically else tolerance)
    n_lanes = len(progress.t)
    h = _first_steps(progress)
    row = np.full(n_lanes, tolerances.usual_row, dtype=np.int64)
    attempts = np.zeros(n_lanes, dtype=np.int64)
    not_finite = np.zeros(n_lanes, dtype=bool)
    while (going := np.flatnonzero(progress.alive)).size:
        frame = frames(progress.state[:, going], progress.tangents[..., going], progress.parameters[:, going])
        attempt = _advance(progress, going, frame, h[going], row[going], tolerances)
        h[going], row[going], not_finite[going] = attempt.next_h, attempt.next_row, attempt.not_finite
        attempts[going] += 1
        progress.stop_spent(attempts, max_steps)
        progress.stop_tiny(h, not_finite)
        progress.tell()


def _first_steps(progress: Progress) -> Array:
    """A tenth of the time in which f would change the state by its own size."""
    slope = progress.function(progress.t, progress.state[:, None], progress.parameters[:, None])[:, 0]
    size, speed = np.abs(progress.state).max(axis=0), np.abs(slope).max(axis=0)
    for lane in np.flatnonzero(progress.alive & ~np.isfinite(speed)):
        progress.fail(int(lane), Outcome.NOT_FINITE, progress.culprit(int(lane)))
    guess = 0.1 * np.where(size > 0.0, size, 1.0) / speed
    span = progress.times[:, -1] - progress.t
    return np.where(np.isfinite(guess) & (guess > 0.0), np.minimum(guess, span), span)


def _advance(
    progress: Progress, going: Numbers, frame: Frame, h: Array, row: Numbers, tolerances: Tolerances
) -> Attempt:
    """Try one step for the lanes `going`; those that succeed move on and write their outputs."""
    t, end_time = progress.t[going], progress.times[going, -1]
    h = np.minimum(h, end_time - t)
    new_t = np.where(t + h >= end_time, end_time, t + h)
    dense = progress.due(going) < new_t
    attempt = try_step(frame, t, h, row, tolerances, keep_history=bool(dense.any()))
    end_slope = frame.rhs(new_t, attempt.end)
    cannot_start_here = attempt.accepted & ~np.isfinite(end_slope).all(axis=(0, 1))
    attempt.not_finite |= cannot_start_here
    attempt.reject(cannot_start_here, h[cannot_start_here] * SMALLEST_FACTOR)
    for k in np.unique(attempt.last_row[dense & attempt.accepted]):
        inside = np.flatnonzero(dense & attempt.accepted & (attempt.last_row == k))
        _write_inside(progress, going, inside, frame, attempt, end_slope, t, h, new_t, tolerances)
    ok = np.flatnonzero(attempt.accepted)
    lanes = going[ok]
    progress.state[:, lanes], progress.tangents[..., lanes] = frame.take(ok).gather(attempt.end[..., ok])
    progress.t[lanes] = new_t[ok]
    progress.steps[lanes] += 1
    arrived = lanes[progress.due(lanes) == new_t[ok]]
    progress.write(arrived, progress.state[:, arrived], progress.tangents[..., arrived])
    return attempt


def _write_inside(
    progress: Progress,
    going: Numbers,
    inside: Numbers,
    frame: Frame,
    attempt: Attempt,
    end_slope: Array,
    t: Array,
    h: Array,
    new_t: Array,
    tolerances: Tolerances,
) -> None:
    """Outputs strictly inside an accepted step; where its polynomial errs too much, the step is rejected.

    `inside` counts within the lanes `going`; they all converged in the same row.
    """
    k = int(attempt.last_row[inside[0]])
    rows = [
        Row(row.end[..., inside], row.middle[..., inside], [slope[..., inside] for slope in row.slopes])
        for row in attempt.history[: k + 1]
    ]
    part, end, step = frame.take(inside), attempt.end[..., inside], h[inside]
    polynomial = step_polynomial(rows, step, part.y, end, attempt.slope[..., inside], end_slope[..., inside])
    error = scaled_error(part, polynomial.error(), end, tolerances) / INTERPOLATION_MARGIN
    bad = error > 1.0
    shrink = np.maximum(0.9 * np.where(bad, error, 1.0) ** (-1.0 / (2 * k + 3)), SMALLEST_FACTOR)
    attempt.reject(inside[bad], (step * shrink)[bad])
    while True:
        lanes = going[inside]
        due = progress.due(lanes)
        writing = np.flatnonzero(~bad & (due < new_t[inside]))
        if not writing.size:
            return
        theta = np.where(np.isfinite(due), (due - t[inside]) / step, 0.0)
        state, tangents = part.gather(polynomial(theta))
        progress.write(lanes[writing], state[:, writing], tangents[..., writing])
