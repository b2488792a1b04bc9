"""The ways to solve a linearised chain, by name: all give the J+ of (4.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcfit.linear.chain import Chain, Unknowns
from hpcfit.linear.compiled import CompiledInverse, can_be_compiled
from hpcfit.linear.constrained import ConstrainedInverse
from hpcfit.linear.dense import generalised_inverse
from hpcfit.linear.inverse import AnyInverse, Inverse
from hpcfit.linear.long import LongInverse

Solver = Callable[[Any, Chain, Unknowns], Inverse]


def reference(comm: Any, chain: Chain, z: Unknowns) -> Inverse:
    """numpy's bodies: readable, and the measure of the others."""
    if chain.conditions is not None:
        return ConstrainedInverse(chain, z)
    return AnyInverse(chain, z, generalised_inverse)


def dense(comm: Any, chain: Chain, z: Unknowns) -> Inverse:
    """Machine code where there is a compiler and the problem is small enough, else the reference."""
    if chain.segments is not None:
        return LongInverse(comm, chain, z)
    compiled = chain.conditions is None and can_be_compiled(chain)
    return CompiledInverse(chain, z) if compiled else reference(comm, chain, z)


def petsc(comm: Any, chain: Chain, z: Unknowns) -> Inverse:
    """PETSc with MUMPS on all ranks, for nodes that are spread over them; imported where it is asked for."""
    from hpcfit.linear.petsc import PetscSolver

    return LongInverse(comm, chain, z, PetscSolver)


SOLVERS: dict[str, Solver] = {"dense": dense, "petsc": petsc, "reference": reference}
