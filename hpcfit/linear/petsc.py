"""The solver for one long series on many ranks: the augmented system, factorised by PETSc with MUMPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from hpcfit.linear.augmented import CompressedRows, Layout, upper_triangle
from hpcfit.linear.chain import Chain, Members, Residuals, Unknowns
from hpcfit.linear.dense import GeneralisedInverse, generalised_inverse
from hpcfit.linear.windows import Windows, carried, condense
from hpcfit.mpi.serial import Serial
from hpcfit.mpi.together import agreed, everywhere, gathered
from hpcfit.records import Array, InputError, Mistake

REFINEMENTS = 2
MUMPS_OPTIONS = {
    7: 6,  # QAMD: an ordering that keeps the dense rows of the border last; others take twenty times as long
    13: 1,  # all pivots in one way, so that all are counted
    24: 1,  # go on at a zero pivot, and count it
}
PREFIX = "hpcfit_"
WORKSPACES = (50, 400, 3000)  # per cent more than MUMPS expects
TOO_SMALL, SINGULAR = (-8, -9), -10  # INFOG(1)
SUSPICIOUS = 1e-7  # singular values below this part of the largest may be zero, for all that the factors tell


@dataclass(frozen=True)
class PetscInverse:
    """J+ of (4.9) for one scaled chain of one member, if the data determine all its unknowns.

    All ranks make it and use it together, and get the same answers. f degrees of freedom.
    """

    comm: Any
    chain: Chain
    windows: Windows
    layout: Layout
    rows: CompressedRows
    system: System

    def solve(self, residuals: Residuals) -> Unknowns:
        """dz = -J+ F (4.9); NaN for an F that is not finite."""
        _, n_nodes, _, n, q = self.chain.shape
        if not residuals.finite().all():
            return Unknowns(np.full((1, n_nodes, n), np.nan), np.full((1, q), np.nan))
        at_nodes, solution = self._solution(residuals)
        nodes, parameters = self._expanded(solution[:, None])
        return Unknowns(at_nodes + nodes[None, ..., 0], parameters[None, :, 0])

    @property
    def rank(self) -> NDArray[np.int64]:
        """Full (1,)."""
        return np.array([self.freedoms])

    @property
    def freedoms(self) -> int:
        """How many unknowns the data have to determine."""
        return self.layout.freedoms

    def covariance_factor(self) -> tuple[Array, Array]:
        """L of the covariance L L^t: for the nodes (1, N, n, f) and for the parameters (1, q, f).

        L is J+ applied to an orthonormal base of all that the unknowns can do to the rows, J J+ applied to as
        many random rows. An error of the base counts only in second order.
        """
        random = np.random.default_rng(0).normal(size=(self.freedoms, self.layout.n_rows))
        left = [self.layout.rows_of(self.system.solve(self.layout.packed(rows=each))) for each in random]
        base, _ = np.linalg.qr((random - np.array(left)).T)
        changes = base.T / self.rows.size
        solutions = [self.system.solve(self.layout.packed(rows=each)) for each in changes]
        nodes, parameters = self._expanded(np.stack(solutions, axis=1))
        return nodes[None], parameters[None]

    def null_directions(self, node: int = 0) -> tuple[Array, Array]:
        """None, so zero: node (1, n, f), parameters (1, q, f)."""
        _, _, _, n, q = self.chain.shape
        return np.zeros((1, n, self.freedoms)), np.zeros((1, q, self.freedoms))

    def multipliers(self, residuals: Residuals, step: Unknowns) -> Array:
        """lambda_c of (4.10) for every link (1, N - 1, n): at joints by the system, inside by recursion."""
        chain, layout = self.chain, self.layout
        rho = residuals.rows[0] + (chain.rows_by_node[0] @ step.nodes[0, ..., None])[..., 0]
        rho += chain.rows_by_parameters[0] @ step.parameters[0]
        pull = np.einsum("jki,jk->ji", chain.rows_by_node[0], rho)  # A^t rho
        result = np.zeros_like(residuals.links[0])
        _, solution = self._solution(residuals)
        result[layout.joints] = -(self.rows.size**2) * solution[layout.multipliers]
        for j in np.flatnonzero(~self.windows.closes[0])[::-1]:
            result[j] = -pull[j + 1]
            if j + 1 < len(result):
                result[j] += chain.links_by_node[0, j + 1].T @ result[j + 1]
        return result[None]

    def take(self, members: Members) -> PetscInverse:
        """There is one member to take."""
        return self

    def is_determined(self) -> bool:
        """Whether the rank is full, with a margin.

        Where the inertia is wrong it is not; where it is right it need not be, since chance gives a sign to
        a pivot that should be zero. But then the covariance, applied to random numbers, is too large.
        """
        layout = self.layout
        if not self.system.has_negative_pivots(layout.n_rows + layout.multipliers.size):
            return False
        random = np.zeros(layout.size)
        random[layout.unknowns] = np.random.default_rng(0).normal(size=len(layout.unknowns))
        covariance = np.linalg.norm(self.system.solve(random)[layout.unknowns])
        return bool(covariance < SUSPICIOUS**-2)

    def _solution(self, residuals: Residuals) -> tuple[Array, Array]:
        """The inhomogeneous part of the nodes (1, N, n), and the unknowns of the system."""
        at_nodes, at_ends = carried(self.chain.links_by_node, self.windows, residuals.links)
        rows = residuals.rows[0] + (self.chain.rows_by_node[0] @ at_nodes[0, ..., None])[..., 0]
        compressed = self.rows.compressed(self.comm, rows)
        links = at_ends[0, self.layout.joints]
        return at_nodes, self.system.solve(self.layout.packed(rows=compressed, links=links))

    def _expanded(self, solutions: Array) -> tuple[Array, Array]:
        """Nodes (N, n, f) and parameters (q, f) of solutions (., f), without the inhomogeneous part."""
        states, parameters = solutions[self.layout.states], solutions[self.layout.parameters]
        nodes: Array = self.windows.by_window[0] @ states[self.windows.number[0]]
        return nodes + self.windows.by_parameters[0] @ parameters, parameters


def petsc_inverse(comm: Any, chain: Chain) -> PetscInverse | GeneralisedInverse:
    """Condense, compress, assemble and factorise; all ranks have the chain, each deals with some windows.

    A problem of deficient rank, or close to it, goes to the dense solver: the factors of a singular matrix
    tell neither which directions the data do not see, nor the relaxed solution.
    """
    petsc = everywhere(comm, _petsc)
    if chain.shape[0] != 1:
        mistake = f"this solver fits one member at a time, not {chain.shape[0]}"
        raise InputError(Mistake("", mistake, 'choose "dense"', "fit.solver", "petsc"))
    windows = condense(chain)
    layout = Layout.of(chain, windows)
    rows = CompressedRows.of(comm, chain, windows)
    system = System.of(comm, petsc, upper_triangle(layout, windows, rows))
    plus = PetscInverse(comm, chain, windows, layout, rows, system)
    return plus if plus.is_determined() else generalised_inverse(chain)


def _petsc() -> Any:
    """PETSc, imported and initialised now; the arguments of this program are not for it."""
    try:
        import petsc4py

        petsc4py.init()
        from petsc4py import PETSc
    except ImportError as error:
        remedy = (
            "load the site's PETSc module (with petsc4py and MUMPS), install python3-petsc4py-real, "
            'or choose "dense"'
        )
        raise InputError(Mistake("", f"PETSc is missing ({error})", remedy, "fit.solver", "petsc")) from None
    return PETSc


@dataclass(frozen=True)
class System:
    """A symmetric matrix, factorised L D L^t by MUMPS."""

    comm: Any
    matrix: Any
    solver: Any
    factors: Any
    vectors: tuple[Any, Any, Any, Any]

    @classmethod
    def of(cls, comm: Any, petsc: Any, upper: csr_matrix) -> System:
        """Each rank gives its rows of the upper triangle."""
        group = petsc.COMM_SELF if isinstance(comm, Serial) else comm
        petsc.garbage_cleanup(group)  # destruction is collective: now, of what all ranks have dropped
        rows, size = upper.shape
        matrix = petsc.Mat().createSBAIJ(
            ((rows, size), (rows, size)),
            1,
            csr=(upper.indptr.astype(petsc.IntType), upper.indices.astype(petsc.IntType), upper.data),
            comm=group,
        )
        for workspace in WORKSPACES:
            solver = _factorised(petsc, matrix, workspace)
            factors = solver.getPC().getFactorMatrix()
            if factors.getMumpsInfog(1) not in TOO_SMALL:
                break
        if factors.getMumpsInfog(1) < 0 and factors.getMumpsInfog(1) != SINGULAR:
            told = f"INFOG = {factors.getMumpsInfog(1)}, {factors.getMumpsInfog(2)}"
            raise agreed(RuntimeError(f'MUMPS could not factorise ({told}); choose fit.solver = "dense"'))
        right, left = matrix.createVecs()
        return cls(comm, matrix, solver, factors, (right, left, right.duplicate(), right.duplicate()))

    def has_negative_pivots(self, count: int) -> bool:
        """Whether the matrix is regular and has this inertia."""
        regular = self.factors.getMumpsInfog(1) != SINGULAR and self.factors.getMumpsInfog(28) == 0
        return regular and self.factors.getMumpsInfog(12) == count

    def solve(self, right: Array) -> Array:
        """With iterative refinement; all ranks give the same right-hand side and get the whole solution."""
        first, last = self.matrix.getOwnershipRange()
        whole, solution, rest, correction = self.vectors
        whole.setArray(right[first:last])
        self.solver.solve(whole, solution)
        for _ in range(REFINEMENTS):
            self.matrix.mult(solution, rest)
            rest.aypx(-1.0, whole)
            self.solver.solve(rest, correction)
            solution.axpy(1.0, correction)
        return gathered(self.comm, solution.getArray().copy())


def _factorised(petsc: Any, matrix: Any, workspace: int) -> Any:
    """A solver that has factorised the matrix, with this much more workspace than estimated (per cent)."""
    solver = petsc.KSP().create(matrix.getComm())
    solver.setOperators(matrix)
    solver.setType("preonly")
    way = solver.getPC()
    way.setType("cholesky")
    way.setFactorSolverType("mumps")
    way.setFactorSetUpSolverType()
    way.getFactorMatrix().setOptionsPrefix(PREFIX)
    options = petsc.Options(PREFIX)  # MatMumpsSetIcntl does not reach the ordering on one rank
    for number, value in (MUMPS_OPTIONS | {14: workspace}).items():
        options[f"mat_mumps_icntl_{number}"] = value
    solver.setUp()
    return solver
