"""The ways to solve a linearised chain, by name: all give J+ of (4.9) in units of the scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcfit.linear.chain import Chain, Scales
from hpcfit.linear.compiled import CompiledInverse, can_be_compiled
from hpcfit.linear.dense import generalised_inverse

Solver = Callable[[Any, Chain, Scales], Any]


def reference(comm: Any, chain: Chain, scales: Scales) -> Any:
    """numpy's bodies: readable, and the measure of the others."""
    return generalised_inverse(comm, chain.scaled(scales))


def dense(comm: Any, chain: Chain, scales: Scales) -> Any:
    """Machine code where there is a compiler and the problem is small enough, else the reference."""
    return CompiledInverse(chain, scales) if can_be_compiled(chain) else reference(comm, chain, scales)


def petsc(comm: Any, chain: Chain, scales: Scales) -> Any:
    """PETSc with MUMPS on all ranks; imported only where it is asked for."""
    from hpcfit.linear.petsc import petsc_inverse

    return petsc_inverse(comm, chain.scaled(scales))


SOLVERS: dict[str, Solver] = {"dense": dense, "petsc": petsc, "reference": reference}
