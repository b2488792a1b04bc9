"""The windows of all ranks as one sparse symmetric system (`augmented.py`), by PETSc with MUMPS."""

from __future__ import annotations

import logging
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from hpcfit.linear.augmented import Layout, upper_triangle, window_joints
from hpcfit.linear.long import TreeSolver
from hpcfit.linear.segmented import Condensed, Task
from hpcfit.mpi.serial import Serial
from hpcfit.mpi.together import everywhere, gathered
from hpcfit.records import Array, InputError, Mistake

log = logging.getLogger(__name__)

REFINEMENTS = 2
MUMPS_OPTIONS = {
    7: 6,  # QAMD: an ordering that keeps the dense rows of the border last; others take twenty times as long
    12: 1,  # of the matrix itself: an ordering of its pairs delays so many pivots that memory runs out
    13: 1,  # all pivots in one way, so that all are counted
    24: 1,  # go on at a zero pivot, and count it
}
PREFIX = "hpcfit_"
WORKSPACES = (50, 400)  # per cent more than MUMPS expects
TOO_SMALL, SINGULAR = (-8, -9), -10  # INFOG(1)
STACK = 1 << 27  # bytes: what Linux keeps free for it
SUSPICIOUS = 1e-7  # singular values below this part of the largest may be zero, for all that the factors tell


class PetscSolver(TreeSolver):
    """Steps by PETSc; the tree gives the covariance, and solves what is not determined with a margin."""

    def __init__(self, comm: Any, task: Task) -> None:
        super().__init__(comm, task)
        self.petsc = everywhere(comm, _petsc)
        self.system: System | None = None
        self.usable = True

    def solve(self, windows: Condensed) -> tuple[Array, Array]:
        if self.system is None:
            self._factorise(windows)
        if not self.usable:
            return super().solve(windows)
        assert self.system is not None
        layout, (_, right) = self.layout, self._border(windows)
        solution = self.system.solve(layout.packed(windows, right, self.size))
        return solution[layout.states], self._everybodys(solution) * self.units

    def _factorise(self, windows: Condensed) -> None:
        n, q = self.task.n, self.task.q
        self.layout = Layout.of(self.comm, n, q, window_joints(windows, self.task))
        border, _ = self._border(windows)
        squares = (windows.rows[:, :, : n + q] ** 2).sum(axis=1)
        self.size = float(np.sqrt(gathered(self.comm, squares[:, :n].sum(axis=1)).max())) or 1.0
        shared = np.sqrt(gathered(self.comm, squares[:, n:].sum(axis=0)[None]).sum(axis=0))
        self.units = self.size / np.where(shared > 0.0, shared, self.size)  # of p: its columns grow with N
        upper = upper_triangle(self.layout, windows, border, self.size, self.units)
        self.system = System.of(self.comm, self.petsc, upper)
        self.usable = self.system is not None and self._is_determined()
        if not self.usable:
            super().solve(windows)  # for the rank

    def _border(self, windows: Condensed) -> tuple[Array, Array]:
        """Rows of all windows on parameters alone: one triangle (q, q), and its right-hand side (q,)."""
        n, q = self.task.n, self.task.q
        own = windows.rows[:, n:, n:].reshape(-1, q + 1)
        part: Array = np.linalg.qr(np.concatenate([own, np.zeros((q + 1, q + 1))]), mode="r")  # type: ignore[assignment]
        whole: Array = np.linalg.qr(gathered(self.comm, part), mode="r")  # type: ignore[assignment]
        return whole[:q, :q], whole[:q, q]

    def _everybodys(self, solution: Array) -> Array:
        """The parameters, which the last rank has, on all ranks."""
        layout = self.layout
        own = solution[layout.parameters] if layout.has_border else np.zeros(0)
        return gathered(self.comm, own)

    def _is_determined(self) -> bool:
        """Whether the rank is full, with a margin.

        Where the inertia is wrong it is not; where it is right it need not be, since chance gives a sign to
        a pivot that should be zero. But then the covariance, applied to random numbers, is too large.
        """
        assert self.system is not None
        layout = self.layout
        negative = layout.states.size + layout.multipliers.size + (self.task.q if layout.has_border else 0)
        if not self.system.has_negative_pivots(int(gathered(self.comm, np.array([negative])).sum())):
            return False
        own = layout.unknowns
        random = np.zeros(layout.size)
        random[own] = np.random.default_rng(self.comm.rank).normal(size=len(own))
        squares = (self.system.solve(random)[own] ** 2).sum(keepdims=True)
        return bool(gathered(self.comm, squares).sum() < SUSPICIOUS**-4)

    @property
    def rank(self) -> int:
        return self.freedoms if self.usable else self.coarse.rank

    @property
    def freedoms(self) -> int:
        begins = int((self.task.segments.number == 0).sum())
        return self.task.n * int(gathered(self.comm, np.array([begins])).sum()) + self.task.q


def log_view(comm: Any) -> str:
    """What PETSc says of its own work since it was begun; '' where it was not used."""
    if _BEGUN:
        petsc = _petsc()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.txt"
            name = comm.bcast(str(path))
            group = petsc.COMM_SELF if isinstance(comm, Serial) else comm
            viewer = petsc.Viewer().createASCII(name, comm=group)
            petsc.Log.view(viewer)
            viewer.destroy()
            comm.barrier()
            return str(comm.bcast(path.read_text() if comm.rank == 0 else ""))
    return ""


_BEGUN: list[bool] = []


def _enlarge_stack() -> None:
    """MUMPS has work arrays of the size of the system on its stack; 8 MB are too few for a million points."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))


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
    if not _BEGUN:
        _enlarge_stack()
        PETSc.Log.begin()
        _BEGUN.append(True)
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
    def of(cls, comm: Any, petsc: Any, upper: csr_matrix) -> System | None:
        """Each rank gives its rows of the upper triangle; None, on all ranks, if MUMPS fails."""
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
            log.warning("MUMPS could not factorise the condensed system (%s): the tree solves it", told)
            return None
        right, left = matrix.createVecs()
        return cls(comm, matrix, solver, factors, (right, left, right.duplicate(), right.duplicate()))

    def has_negative_pivots(self, count: int) -> bool:
        """Whether the matrix is regular and has this inertia."""
        regular = self.factors.getMumpsInfog(1) != SINGULAR and self.factors.getMumpsInfog(28) == 0
        return regular and self.factors.getMumpsInfog(12) == count

    def solve(self, right: Array) -> Array:
        """With iterative refinement; each rank has its own part."""
        whole, solution, rest, correction = self.vectors
        whole.setArray(right)
        self.solver.solve(whole, solution)
        for _ in range(REFINEMENTS):
            self.matrix.mult(solution, rest)
            rest.aypx(-1.0, whole)
            self.solver.solve(rest, correction)
            solution.axpy(1.0, correction)
        own: Array = solution.getArray().copy()
        return own


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
