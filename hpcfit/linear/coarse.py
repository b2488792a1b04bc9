"""What is left of the segments of a chain: joined along a tree, then experiments meet in their parameters.

Each experiment becomes a triangle on n numbers of its own, y, and the parameters p:

    Ry y + Sy p + c = 0        Rp p + cp = 0

The rows on p of all experiments are one more triangle; from p follows each y, and from y and p all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcfit.linear.compiled import passed
from hpcfit.linear.segments import Numbers, Segments
from hpcfit.linear.tree import Forest, Nodes
from hpcfit.mpi.together import gathered
from hpcfit.records import Array

RANK_TOLERANCE = 1e-10  # singular values below this part of the largest count as zero


class Kind(Protocol):
    """Blocks of exact or of weak continuity; `values` of a block (., width, columns) tell all about it."""

    @property
    def n(self) -> int: ...

    @property
    def q(self) -> int: ...

    def join(self, left: Numbers, right: Numbers, into: Numbers, blocks: Array) -> Array:
        """Pairs of blocks become one; returns the ways back."""

    def split(self, ways: Array, whole: Array, one: float) -> tuple[Array, Array]:
        """Values of the left and of the right, from those of the whole; one: 1, or 0 for directions."""

    def settle(self, blocks: Array) -> tuple[Array, Array]:
        """Whole experiments: triangles on y, p, 1 (E, n + q, n + q + 1), and what `lift` needs."""

    def lift(self, lifts: Array, y: Array, p: Array, one: float) -> Array:
        """Values (E, width, columns) by y (E, n, columns) and p (q, columns)."""


@dataclass(frozen=True)
class Roots:
    """Whole experiments, each with its triangle."""

    experiment: Numbers  # (E,)
    triangles: Array  # (E, n + q, n + q + 1)
    lifts: Array  # (E, ...)


class Coarse:
    """The problem of all segments on all ranks; made and used by all of them together."""

    def __init__(self, comm: Any, kind: Kind, blocks: Array, segments: Segments) -> None:
        """blocks (S, ...): of this rank's segments."""
        self.kind = kind
        leaves = Nodes.leaves(segments.experiment, segments.number, segments.of)
        self.own = Forest(kind.join, blocks, leaves)
        left = self.own.left_over
        parts = comm.allgather((left, self.own.blocks[left.at]))
        self.offset = sum(len(part) for part, _ in parts[: comm.rank])
        everybody = Nodes.joined(*(part for part, _ in parts))
        published = Nodes(
            np.arange(len(everybody)), everybody.group, everybody.level, everybody.index, everybody.total
        )
        self.shared = Forest(kind.join, np.concatenate([block for _, block in parts]), published)
        self.roots = [self._settled(forest) for forest in (self.own, self.shared)]
        self._meet(comm)

    def _settled(self, forest: Forest) -> Roots:
        triangles, lifts = self.kind.settle(forest.blocks[forest.roots.at])
        return Roots(forest.roots.group, triangles, lifts)

    def _meet(self, comm: Any) -> None:
        """The rows on the parameters of all experiments, in their order, become one triangle."""
        n, q = self.kind.n, self.kind.q
        own, shared = self.roots
        experiment = np.concatenate([gathered(comm, own.experiment), shared.experiment])
        rows = np.concatenate([gathered(comm, own.triangles[:, n:, n:]), shared.triangles[:, n:, n:]])
        stacked = rows[np.argsort(experiment)].reshape(-1, q + 1)
        padded = np.concatenate([stacked, np.zeros((q, q + 1))])
        triangle: Array = np.linalg.qr(padded, mode="r")  # type: ignore[assignment]
        self.n_experiments = len(experiment)
        self.border, self.border_right = triangle[:q, :q], triangle[:q, q]
        self.inverse_border = pseudo_inverse(self.border)
        deficits = n * len(own.experiment) - int(ranks(own.triangles[:, :n, :n]).sum())
        deficits = int(gathered(comm, np.array([deficits])).sum())
        deficits += n * len(shared.experiment) - int(ranks(shared.triangles[:, :n, :n]).sum())
        self.freedoms = n * self.n_experiments + q
        self.rank = self.freedoms - deficits - (q - int(ranks(self.border)))

    def solve(self) -> tuple[Array, Array]:
        """Values of this rank's leaves (S, width, 1), and dp (q,)."""
        p = -self.inverse_border @ self.border_right
        own, shared = (self._lifted(roots, p) for roots in self.roots)
        return self._spread(own, shared, 1.0), p

    def _lifted(self, roots: Roots, p: Array) -> Array:
        n, q = self.kind.n, self.kind.q
        right = roots.triangles[:, :n, n : n + q] @ p + roots.triangles[:, :n, n + q]
        y = -(pseudo_inverse(roots.triangles[:, :n, :n]) @ right[..., None])
        return self.kind.lift(roots.lifts, y, p[:, None], 1.0)

    def factors(self) -> tuple[Array, Array]:
        """L of the covariance L L^t: values of the leaves (S, width, n + q), and parameters (q, n + q).

        The first n columns are the experiment's own, the others are common to all.
        """
        n, q = self.kind.n, self.kind.q
        parameters = np.concatenate([np.zeros((q, n)), self.inverse_border], axis=1)
        lifted = []
        for roots in self.roots:
            inverse = pseudo_inverse(roots.triangles[:, :n, :n])
            beside = -inverse @ roots.triangles[:, :n, n : n + q] @ self.inverse_border
            y = np.concatenate([inverse, beside], axis=2)
            lifted.append(self.kind.lift(roots.lifts, y, parameters, 0.0))
        return self._spread(lifted[0], lifted[1], 0.0), parameters

    def unseen(self) -> tuple[Array, Array]:
        """Directions that the data do not see, else zero: leaves (S, width, n + q), parameters (q, n + q)."""
        n, q = self.kind.n, self.kind.q
        parameters = np.concatenate([np.zeros((q, n)), null_space(self.border)], axis=1)
        lifted = []
        for roots in self.roots:
            triangle = roots.triangles[:, :n, :n]
            beside = -pseudo_inverse(triangle) @ roots.triangles[:, :n, n : n + q] @ parameters[:, n:]
            y = np.concatenate([null_space(triangle), beside], axis=2)
            lifted.append(self.kind.lift(roots.lifts, y, parameters, 0.0))
        return self._spread(lifted[0], lifted[1], 0.0), parameters

    def _spread(self, own: Array, shared: Array, one: float) -> Array:
        """From whole experiments to the leaves of this rank."""

        def split(ways: Array, whole: Array) -> tuple[Array, Array]:
            return self.kind.split(ways, whole, one)

        common = self.shared.spread(self.shared.roots, shared, split)
        mine = common[self.offset : self.offset + len(self.own.left_over)]
        known = Nodes.joined(self.own.roots, self.own.left_over)
        return self.own.spread(known, np.concatenate([own, mine]), split)


def ranks(square: Array) -> NDArray[np.int64]:
    values = np.linalg.svd(square, compute_uv=False)
    return np.count_nonzero(values > _smallest(values), axis=-1)


def pseudo_inverse(square: Array) -> Array:
    """Of square matrices (..., m, m)."""
    left, values, right = np.linalg.svd(square)
    kept = values > _smallest(values)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    result: Array = (right.swapaxes(-1, -2) * inverse[..., None, :]) @ left.swapaxes(-1, -2)
    return result


def null_space(square: Array) -> Array:
    """Directions that a matrix does not see, as columns (..., m, m); else zero."""
    _, values, right = np.linalg.svd(square)
    result: Array = right.swapaxes(-1, -2) * (values <= _smallest(values))[..., None, :]
    return result


def _smallest(values: Array) -> Array:
    largest = values.max(axis=-1, keepdims=True, initial=0.0)
    smallest: Array = RANK_TOLERANCE * largest
    return smallest


@dataclass(frozen=True)
class Exact:
    """Blocks with n + q free numbers u, which satisfy all links inside (kernels/runtime/joints.h)."""

    library: Any
    n: int
    q: int

    def leaves(self, rows: Array, ends: Array) -> Array:
        """Windows: u is their first state and the parameters."""
        n, q, f = self.n, self.q, self.n + self.q
        blocks = np.zeros((len(rows), f + n + n + q, f + 1))
        blocks[:, :f] = rows
        blocks[:, f : f + n, :n] = np.eye(n)
        blocks[:, f + n : f + n + n] = ends
        blocks[:, f + n + n :, n:f] = np.eye(q)
        return blocks

    def join(self, left: Numbers, right: Numbers, into: Numbers, blocks: Array) -> Array:
        f = self.n + self.q
        ways = np.empty((len(left), 2 * f, f + 1))
        self.library.join_exact(*_addresses(len(left), left, right, into, blocks, ways))
        return ways

    def split(self, ways: Array, whole: Array, one: float) -> tuple[Array, Array]:
        f = self.n + self.q
        both = ways[:, :, :f] @ whole + one * ways[:, :, f:]
        return both[:, :f], both[:, f:]

    def settle(self, blocks: Array) -> tuple[Array, Array]:
        """u = Z1 Rp^-t (p - pi) + Z2 y, with P^t = (Z1 Z2) (Rp; 0)."""
        n, q, f = self.n, self.q, self.n + self.q
        rows, border = blocks[:, :f], blocks[:, f + n + n :]
        turned, triangle = np.linalg.qr(border[..., :f].swapaxes(1, 2), mode="complete")
        lifts = np.empty((len(blocks), f, f + 1))
        lifts[..., :n] = turned[..., q:]
        lifts[..., n:f] = turned[..., :q] @ np.linalg.inv(triangle[:, :q].swapaxes(1, 2))
        lifts[..., f:] = -lifts[..., n:f] @ border[..., f:]
        by_own = rows[..., :f] @ lifts
        by_own[..., f] += rows[..., f]
        return _triangles(by_own), lifts

    def lift(self, lifts: Array, y: Array, p: Array, one: float) -> Array:
        n, f = self.n, self.n + self.q
        values: Array = lifts[..., :n] @ y + lifts[..., n:f] @ p + one * lifts[..., f:]
        return values


@dataclass(frozen=True)
class Weak:
    """Blocks with rows on their first node a, the node after them c, and p; values are (a, c, p)."""

    library: Any
    n: int
    q: int

    def join(self, left: Numbers, right: Numbers, into: Numbers, blocks: Array) -> Array:
        ways = np.empty((len(left), self.n, 3 * self.n + self.q + 1))
        self.library.join_weak(*_addresses(len(left), left, right, into, blocks, ways))
        return ways

    def split(self, ways: Array, whole: Array, one: float) -> tuple[Array, Array]:
        n = self.n
        right = ways[:, :, n:-1] @ whole + one * ways[:, :, -1:]
        between = -np.linalg.solve(ways[:, :, :n], right)
        a, c, p = whole[:, :n], whole[:, n : n + n], whole[:, n + n :]
        return np.concatenate([a, between, p], axis=1), np.concatenate([between, c, p], axis=1)

    def settle(self, blocks: Array) -> tuple[Array, Array]:
        """y is the first node; nothing comes after an experiment."""
        n, f = self.n, self.n + self.q
        rows = np.concatenate([blocks[..., :n], blocks[..., n + n :]], axis=2)
        return _triangles(rows)[:, :f], np.zeros((len(blocks), 0))

    def lift(self, lifts: Array, y: Array, p: Array, one: float) -> Array:
        borders = np.broadcast_to(p, (len(y), *p.shape))
        return np.concatenate([y, np.zeros_like(y), borders], axis=1)


def _triangles(rows: Array) -> Array:
    triangles: Array = np.linalg.qr(rows, mode="r")  # type: ignore[assignment]
    return triangles


def _addresses(*arguments: Any) -> list[Any]:
    return [passed(argument) for argument in arguments]
