"""Long problems: their nodes are spread over ranks, and come together again in the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hpcfit.flow.shots import can_shoot
from hpcfit.leastsq.course import Course
from hpcfit.leastsq.strategy import Options
from hpcfit.linear.chain import Unknowns
from hpcfit.linear.compiled import has_compiler
from hpcfit.linear.segments import LENGTH, Segments
from hpcfit.linear.solvers import SOLVERS
from hpcfit.mpi.together import gathered
from hpcfit.records import Array, InputError, Mistake
from hpcfit.shooting.pose import Posed
from hpcfit.shooting.problem import Problem
from hpcfit.shooting.slices import Slice

LONG = 512  # nodes from which a problem is cut into segments
MANY = 16  # experiments
WIDE = 16  # states; there a node is so much work that segments pay at once
SHORT = 16  # nodes of a segment of a problem that is not long
PETSC = 50_000  # nodes from which PETSc, where it is there, solves the condensed problem


def segments_of(posed: Posed, *, level: str, solver: str | None) -> Segments | None:
    """The segments of a problem that is long, wide, or has many experiments; None: ranks have it as a whole.

    That depends on the problem alone, not on the ranks.
    """
    problem, lengths = posed.problem, np.bincount(posed.problem.grid.experiment)
    whole = _why_whole(problem, level)
    if solver == "petsc" and whole:
        raise InputError(Mistake("", f"not with {whole}", 'choose "dense"', "fit.solver", solver))
    if whole or solver == "reference":
        return None
    wide = len(problem.model.states) >= WIDE
    if lengths.sum() >= LONG or len(lengths) >= MANY:
        return Segments.cut(lengths, SHORT if wide else LENGTH)
    return Segments.cut(lengths, SHORT) if wide or solver == "petsc" else None


def _why_whole(problem: Problem, level: str) -> str:
    """Why every rank must have the whole problem; '' if it need not."""
    if level != "natural":
        return f'fit.level = "{level}"'
    if not can_shoot(problem.model, problem.method):
        return "an integrator that is not compiled"
    return "" if has_compiler() else "no C compiler"


def chosen_solver(solver: str | None, segments: Segments | None) -> str:
    """The one that was asked for; else by size, and by what is there."""
    if solver is not None or segments is None or segments.nodes.sum() < PETSC:
        return solver or "dense"
    return "petsc" if has_petsc() else "dense"


def has_petsc() -> bool:
    from importlib.util import find_spec

    return find_spec("petsc4py") is not None


def solver_log(comm: Any, options: Options) -> str:
    """What PETSc says of its work, where it was asked."""
    if options.solver is not SOLVERS["petsc"]:
        return ""
    from hpcfit.linear.petsc import log_view

    return log_view(comm)


def brought_together(comm: Any, course: Course) -> Course:
    """A course with the nodes of all ranks, on all of them."""
    z, errors = course.z, course.spread.node_errors
    whole = replace(course.spread, node_errors=gathered(comm, errors, axis=1))
    return replace(course, z=Unknowns(gathered(comm, z.nodes, axis=1), z.parameters), spread=whole)


def all_rows(comm: Any, problem: Slice, z: Unknowns) -> Array:
    """Read less given of all values (1, N, k), without weights, on all ranks."""
    inner = problem.inner
    plain = replace(problem, inner=replace(inner, weights=np.ones_like(inner.weights)))
    return gathered(comm, plain.residuals(comm, z).rows, axis=1)
