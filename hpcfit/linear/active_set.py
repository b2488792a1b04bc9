"""Linear least squares under linear conditions, by a dual active-set method (Goldfarb and Idnani 1983).

Minimise 1/2 ||s y + b||^2 with G y + g = 0 for exact conditions and >= 0 for the others. The method climbs
from the least value on one face (the conditions that are held) to the next: a violated condition is taken up,
held ones whose multiplier would become negative are let go. It ends at the solution, or with the conditions
that contradict each other. It may begin at any face, as that of the iteration before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcfit.records import Array

Flags = NDArray[np.bool_]

DEPENDENT = 1e-9  # part of a unit normal outside the span of others, below which it counts as inside
SATISFIED = 1e-12  # violations below this part of what is added up are rounding errors
CONSISTENT = 1e-8  # the same of conditions that others imply, or the path itself
RANK_TOLERANCE = 1e-10  # singular values below this part of the largest count as zero
UNSEEN = 1e-3  # of the smallest value seen: what keeps a direction that the rows do not see where it is
ELASTIC = 1e-4  # weight of the rows beside violations, where conditions contradict each other


@dataclass(frozen=True)
class Rows:
    """The rows of the problem in coordinates that make them a diagonal, largest first: s y + b."""

    values: Array  # (f,) singular values
    seen: Flags  # (f,) which of them are not zero

    @classmethod
    def of(cls, values: Array, largest: float | None = None) -> Rows:
        """largest: what counts as the largest value, if not that of these."""
        scale = float(values.max(initial=0.0)) if largest is None else largest
        return cls(values, values > RANK_TOLERANCE * scale)

    @cached_property
    def weights(self) -> Array:
        """Positive: what nobody sees is kept where it is, weakly."""
        if self.seen.all():
            return self.values
        least = float(self.values[self.seen].min(initial=np.inf))
        return np.where(self.seen, self.values, UNSEEN * least if np.isfinite(least) else 1.0)

    def right(self, b: Array) -> Array:
        return np.where(self.seen, b, 0.0)


class Face:
    """The points where some independent conditions A y + a = 0 hold: y = -Q1 R^-t a + Q2 v."""

    def __init__(self, weights: Array, seen: Flags, normals: Array) -> None:
        held = len(normals)
        whole, triangle = np.linalg.qr(normals.T, mode="complete")
        self.weights, self.held = weights, held
        self.across, self.along = whole[:, :held], whole[:, held:]
        self.triangle = triangle[:held]
        self.normals = normals
        self.left, self.values, right = np.linalg.svd(weights[:, None] * self.along, full_matrices=False)
        self.right = right.T
        self.seen = seen

    def solve(self, b: Array, a: Array) -> Array:
        """The y that minimises ||s y + b|| on the face."""
        y = -self.across @ np.linalg.solve(self.triangle.T, a)
        rest = self.weights * y + b
        inner: Array = -self.along @ (self.right @ ((self.left.T @ rest) / self.values))
        return y + inner

    def multipliers(self, b: Array, y: Array) -> Array:
        """lambda of s (s y + b) = A^t lambda."""
        pull = self.weights * (self.weights * y + b)
        found: Array = np.linalg.solve(self.triangle, self.across.T @ pull)
        return found

    @cached_property
    def multiplier_errors(self) -> Array:
        """Standard deviations of the multipliers, if those of the rows are one (w,)."""
        bent = self.across.T * self.weights
        bent = bent - (bent @ self.left) @ self.left.T
        errors: Array = np.linalg.norm(np.linalg.solve(self.triangle, bent), axis=1)
        return errors

    @cached_property
    def _directions(self) -> tuple[Array, Array]:
        """L of the covariance of y, and the directions that nobody sees, as columns."""
        seen = (np.where(self.seen, self.weights, 0.0))[:, None] * self.along
        _, values, right = np.linalg.svd(seen, full_matrices=False)
        largest = self.weights[self.seen].max(initial=0.0)
        there = values > RANK_TOLERANCE * largest
        columns = self.along @ right.T
        return columns[:, there] / values[there], columns[:, ~there]

    @property
    def factor(self) -> Array:
        """L of the covariance of y on the face (f, as many columns as directions that are seen)."""
        return self._directions[0]

    @property
    def unseen(self) -> Array:
        """Directions along the face that the rows do not see, as columns."""
        return self._directions[1]

    def outside(self, normal: Array) -> float:
        """How much of a unit normal lies outside the span of those held."""
        return float(np.linalg.norm(self.along.T @ normal))

    def combination(self, normal: Array) -> Array:
        """r with A^t r = normal, for a normal inside the span (w,)."""
        found: Array = np.linalg.solve(self.triangle, self.across.T @ normal)
        return found


@dataclass(frozen=True)
class Solution:
    """Where the problem is solved, with the face there; `conflict` names conditions that cannot all hold."""

    y: Array  # (f,)
    face: Face  # in f unknowns, or more where conditions contradict each other
    held: tuple[int, ...]  # the conditions of the face, in its order
    sizes: Array  # (w,) lengths of their normals
    multipliers: Array  # (c,) zero where not held
    conflict: tuple[int, ...] = ()
    weight: float = 1.0  # of the rows beside violations

    @property
    def active(self) -> Flags:
        """(c,)"""
        found = np.zeros(len(self.multipliers), dtype=bool)
        found[list(self.held)] = True
        return found

    @property
    def factor(self) -> Array:
        """L of the covariance of y on the face, up to f columns; of no meaning where conditions conflict."""
        whole = self.weight * self.face.factor[: len(self.y)]
        if not self.conflict:
            return whole
        triangle: Array = np.linalg.qr(whole.T, mode="r")  # type: ignore[assignment]
        return triangle.T

    @property
    def unseen(self) -> Array:
        """Directions along the face that the rows do not see, as up to f columns."""
        return self.face.unseen[: len(self.y)]

    @property
    def rank(self) -> int:
        """How many unknowns rows and held conditions determine together."""
        return len(self.y) - self.unseen.shape[1]

    def again(self, b: Array, g: Array) -> Array:
        """The y for other right-hand sides on the same face, whose conditions are exact."""
        whole = np.zeros(len(self.face.weights))
        whole[: len(b)] = np.where(self.face.seen[: len(b)], self.weight * b, 0.0)
        return self.face.solve(whole, g[list(self.held)] / self.sizes)[: len(b)]

    @property
    def errors(self) -> Array:
        """Standard deviations of the multipliers (c,); NaN where not held."""
        found = np.full(len(self.multipliers), np.nan)
        if not self.conflict:
            found[list(self.held)] = self.face.multiplier_errors / self.sizes
        return found


def solve(
    rows: Rows,
    b: Array,
    normals: Array,
    g: Array,
    exact: Flags,
    likely: Flags,
    summed: Array | None = None,
) -> Solution:
    """The solution for normals G (c, f), found by way of the face of the `likely` conditions (c,).

    summed (c,): lengths of what the normals are sums of; those far shorter are zero. Where conditions
    contradict each other, the solution is the one that violates them least, in units of their normals.
    """
    lengths = np.linalg.norm(normals, axis=1)
    there = lengths > (0.0 if summed is None else DEPENDENT * summed)
    sizes = np.where(there, lengths, 1.0 if summed is None else summed)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    unit, shift = np.where(there[:, None], normals, 0.0) / sizes[:, None], g / sizes
    search = _Search(rows.weights, rows.seen, rows.right(b), unit, shift, exact)
    conflict = search.run(likely)
    if not conflict:
        return search.solution(len(b), sizes)
    f, c = normals.shape[1], len(g)
    weight = ELASTIC / max(float(rows.weights.max(initial=0.0)), 1e-300)
    elastic = _Search(
        np.concatenate([weight * rows.weights, np.ones(c)]),
        np.concatenate([rows.seen, np.ones(c, dtype=bool)]),
        np.concatenate([weight * rows.right(b), np.zeros(c)]),
        np.concatenate([unit, np.eye(c)], axis=1),
        shift,
        exact,
    )
    elastic.run(likely)
    return elastic.solution(f, sizes, conflict, weight)


class _Search:
    """The way from face to face; normals of unit length."""

    def __init__(self, weights: Array, seen: Flags, b: Array, normals: Array, g: Array, exact: Flags) -> None:
        self.weights, self.seen, self.b = weights, seen, b
        self.normals, self.g, self.exact = normals, g, exact
        self.held: list[int] = []
        self.multipliers = np.zeros(0)
        self._settle()

    def run(self, likely: Flags) -> tuple[int, ...]:
        """To the solution; conditions that contradict each other are returned."""
        for k in np.flatnonzero(self.exact).tolist():
            if conflict := self._hold_exactly(k):
                return conflict
        for k in np.flatnonzero(likely & ~self.exact).tolist():
            if self.face.outside(self.normals[k]) > DEPENDENT:
                self._settle([*self.held, k])
        self._let_go_of_pulling()
        while (k := self._most_violated()) is not None:
            if conflict := self._take_up(k):
                return conflict
        return ()

    def _settle(self, held: list[int] | None = None) -> None:
        """The solution on the face of these conditions."""
        self.held = [] if held is None else held
        self.face = Face(self.weights, self.seen, self.normals[self.held])
        self.y = self.face.solve(self.b, self.g[self.held])
        self.multipliers = self.face.multipliers(self.b, self.y)

    def _hold_exactly(self, k: int) -> tuple[int, ...]:
        if self.face.outside(self.normals[k]) > DEPENDENT:
            self._settle([*self.held, k])
            return ()
        if abs(self.values()[k]) <= CONSISTENT * self._size(k):
            return ()
        return self._involved(k, self.face.combination(self.normals[k]), list(self.held))

    def _let_go_of_pulling(self) -> None:
        """Conditions with negative multipliers, one after the other."""
        while len(free := [i for i, k in enumerate(self.held) if not self.exact[k]]):
            worst = min(free, key=lambda i: self.multipliers[i])
            if self.multipliers[worst] >= 0.0:
                return
            self._settle([k for k in self.held if k != self.held[worst]])

    def values(self) -> Array:
        found: Array = self.normals @ self.y + self.g
        return found

    def _size(self, k: int) -> float:
        return float(np.abs(self.normals[k]) @ np.abs(self.y) + abs(self.g[k])) + 1.0

    def _most_violated(self) -> int | None:
        values = self.values()
        sizes = np.abs(self.normals) @ np.abs(self.y) + np.abs(self.g)
        allowed = SATISFIED * (sizes + 1e-3)
        open_ = ~self.exact & (values < -allowed)
        open_[self.held] = False
        for k in np.flatnonzero(open_):  # rounding errors of what the face implies are larger
            if self.face.outside(self.normals[k]) <= DEPENDENT and values[k] >= -CONSISTENT * self._size(k):
                open_[k] = False
        return int(np.argmin(np.where(open_, values, np.inf))) if open_.any() else None

    def _take_up(self, k: int) -> tuple[int, ...]:
        """Hold a violated condition; its multiplier grows from zero, and others leave at theirs."""
        held, now, own = list(self.held), self.multipliers.copy(), 0.0
        while True:
            face = Face(self.weights, self.seen, self.normals[held])
            free = np.array([not self.exact[j] for j in held], dtype=bool)
            if face.outside(self.normals[k]) <= DEPENDENT:
                r = face.combination(self.normals[k])
                shrinking = free & (r > DEPENDENT)
                if not shrinking.any():
                    return self._involved(k, r, held)
                steps = np.where(shrinking, now / np.where(shrinking, r, 1.0), np.inf)
                i = int(np.argmin(steps))
                now, own = now - steps[i] * r, own + float(steps[i])
            else:
                face = Face(self.weights, self.seen, self.normals[[*held, k]])
                y = face.solve(self.b, self.g[[*held, k]])
                target = face.multipliers(self.b, y)
                falling = free & (target[:-1] < 0.0)
                if not falling.any():
                    self.held, self.face, self.y, self.multipliers = [*held, k], face, y, target
                    return ()
                drop = np.where(falling, now - target[:-1], 1.0)
                steps = np.where(falling, now / drop, np.inf)
                i = int(np.argmin(steps))
                part = float(steps[i])
                now, own = now + part * (target[:-1] - now), own + part * (float(target[-1]) - own)
            del held[i]
            now = np.delete(now, i)

    def _involved(self, k: int, combination: Array, held: list[int]) -> tuple[int, ...]:
        """A condition with those that it contradicts."""
        return tuple(sorted([k, *(j for j, r in zip(held, combination, strict=True) if abs(r) > DEPENDENT)]))

    def solution(self, f: int, sizes: Array, conflict: tuple[int, ...] = (), weight: float = 1.0) -> Solution:
        """In f unknowns, the first ones."""
        multipliers = np.zeros(len(self.g))
        multipliers[self.held] = self.multipliers / sizes[self.held] / weight**2
        return Solution(
            self.y[:f], self.face, tuple(self.held), sizes[self.held], multipliers, conflict, weight
        )
