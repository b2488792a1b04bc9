"""The ways to solve a condensed problem, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcfit.linear.chain import Chain
from hpcfit.linear.dense import generalised_inverse

SOLVERS = ("dense", "petsc")


def chosen_solver(name: str | None) -> Callable[[Any, Chain], Any]:
    """The solver of that name; PETSc is imported only where it is asked for."""
    if name != "petsc":
        return generalised_inverse
    from hpcfit.linear.petsc import petsc_inverse

    return petsc_inverse
