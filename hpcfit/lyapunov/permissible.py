"""The part of a section that the energy permits, as (5.7) of Kallrath et al. 1993: the line around it."""

from __future__ import annotations

import numpy as np

from hpcfit.models.define import Model
from hpcfit.models.derivatives import derivative
from hpcfit.models.evaluate import Program, evaluate
from hpcfit.models.graph import Symbol
from hpcfit.models.strings import expression_of
from hpcfit.records import Array

STEPS_ROUND = 360  # about so many points on the line
MOST_STEPS = 20 * STEPS_ROUND
MOST_RAYS = 400  # steps from a point of the section to the line
ITERATIONS = 40
CLOSE = 1e-11


def border(
    model: Model, surface: str, axes: tuple[str, str], inside: Array, start: Array, parameters: Array
) -> Array:
    """The line (n_border, 2) around the points that a trajectory from `start` may reach; or none, (0, 2).

    A point (u, v) of the plane of two states can be reached if the least energy over all other states, on
    the surface, is not above that of the trajectory. `inside` is a state on the surface.
    """
    if model.invariant is None or not set(axes) <= set(model.states) or axes[0] == axes[1]:
        return np.zeros((0, 2))
    energy = float(evaluate(model, [model.invariant], 0.0, list(start), list(parameters))[0])
    excess = _Excess(model, surface, axes, energy, parameters)
    outside = _first_outside(excess, inside)
    if outside is None:
        return np.zeros((0, 2))
    return _around(excess, *outside)


class _Excess:
    """min E(u, v, y) - E over the other states y with surface(u, v, y) = 0, by Newton on the KKT system."""

    def __init__(
        self, model: Model, surface: str, axes: tuple[str, str], energy: float, parameters: Array
    ) -> None:
        assert model.graph is not None
        assert model.invariant is not None
        self.shown = [model.states.index(name) for name in axes]
        self.hidden = [i for i in range(len(model.states)) if i not in self.shown]
        self.energy, self.parameters = energy, list(parameters)
        leaves = [model.graph.leaf("state", i) for i in range(len(model.states))]
        both = [model.invariant, expression_of(model, surface)]
        slopes = [derivative(both, leaf) for leaf in leaves]  # by state: of the energy, of the surface
        bends = [[derivative(slopes[i], leaves[j]) for j in self.hidden] for i in self.hidden]
        outputs: list[Symbol] = [*both, *(s for pair in slopes for s in pair)]
        outputs += [each for row in bends for pair in row for each in pair]
        self._program = Program(model.graph, outputs)
        self.size = len(model.states)

    def at(self, place: Array, other: Array) -> tuple[float, Array, Array]:
        """The excess at (u, v), its gradient (2,), and the other states, which are sought from `other` on."""
        m = len(self.hidden)
        x = np.empty(self.size)
        x[self.shown] = place
        y, multiplier = other.copy(), 0.0
        for _ in range(ITERATIONS):
            x[self.hidden] = y
            values = np.array([float(v) for v in self._program(0.0, list(x), self.parameters)])
            slopes = values[2 : 2 + 2 * self.size].reshape(self.size, 2)
            bends = values[2 + 2 * self.size :].reshape(m, m, 2)
            of_energy, of_surface = slopes[self.hidden].T
            system = np.zeros((m + 1, m + 1))
            system[:m, :m] = bends[..., 0] + multiplier * bends[..., 1]
            system[:m, m] = system[m, :m] = of_surface
            wanted = -np.concatenate([of_energy, [values[1]]])
            if not np.isfinite(system).all():
                break
            step = np.linalg.lstsq(system, wanted, rcond=1e-13)[0]
            y, change, multiplier = y + step[:m], np.abs(step[:m]).max(), float(step[m])
            if change <= CLOSE * max(1.0, np.abs(y).max()):
                gradient = slopes[self.shown] @ np.array([1.0, multiplier])
                return values[0] - self.energy, gradient, y
        return float("nan"), np.full(2, np.nan), other


def _first_outside(excess: _Excess, inside: Array) -> tuple[Array, Array, float] | None:
    """A point on the line, the other states there, and the size of the area; None: nothing stops the ray."""
    place, other = inside[excess.shown], inside[excess.hidden]
    value, _, other = excess.at(place, other)
    if not value < 0.0:
        return None
    step = 0.02 * max(1e-3, float(np.abs(inside).max()))
    for k in range(1, MOST_RAYS):
        further = place + np.array([step * k, 0.0])
        value, _, y = excess.at(further, other)
        if np.isnan(value):
            return None
        if value >= 0.0:
            return _bisect(excess, place[0] + step * (k - 1), further[0], place[1], y), y, step * k
        other = y
    return None


def _bisect(excess: _Excess, low: float, high: float, v: float, other: Array) -> Array:
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess.at(np.array([middle, v]), other)[0] < 0.0 else (low, middle)
    return np.array([0.5 * (low + high), v])


def _around(excess: _Excess, first: Array, other: Array, size: float) -> Array:
    """Follow the line from a point on it until it comes back: along the tangent, then back onto the line."""
    step = 8.0 * size / STEPS_ROUND
    line, place = [first], first
    for k in range(MOST_STEPS):
        _, slope, other = excess.at(place, other)
        tangent = np.array([-slope[1], slope[0]]) / np.linalg.norm(slope)
        moved = _onto(excess, place + step * tangent, other)
        if moved is None:
            return np.zeros((0, 2))
        if k > 2 and np.linalg.norm(moved - first) < 0.75 * step:
            return np.array([*line, first])
        line.append(moved)
        place = moved
        if k and k % STEPS_ROUND == 0:
            step *= 1.5  # a long line
    return np.zeros((0, 2))


def _onto(excess: _Excess, place: Array, other: Array) -> Array | None:
    """The point of the line near a place, by Newton along the gradient."""
    for _ in range(ITERATIONS):
        value, slope, other = excess.at(place, other)
        norm = float(slope @ slope)
        if not norm > 0.0:
            return None
        move = -value / norm * slope
        place = place + move
        if np.linalg.norm(move) <= CLOSE * max(1.0, float(np.linalg.norm(place))):
            return place
    return None
