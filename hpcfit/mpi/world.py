"""All ranks of this run."""

from __future__ import annotations

import os
from typing import Any

from hpcfit.mpi.serial import SERIAL

_LAUNCHER_VARIABLES = (
    "OMPI_COMM_WORLD_SIZE",  # Open MPI's mpirun
    "PMI_SIZE",  # MPICH, Intel MPI, srun --mpi=pmi2
    "PMI_RANK",
    "PMIX_RANK",  # srun --mpi=pmix, prterun
    "PALS_RANKID",  # HPE Cray
)


def launched() -> bool:
    """True if a launcher (mpirun, srun) started this process as one rank of several or of one."""
    return any(name in os.environ for name in _LAUNCHER_VARIABLES)


def world() -> Any:
    """MPI's world, initialised now; a communicator of one where nothing launched ranks."""
    if not launched():
        return SERIAL
    try:
        from mpi4py import MPI
    except ImportError:
        if int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))) > 1:
            raise RuntimeError(
                "started as several ranks, but mpi4py is not installed; "
                "install it against the MPI of this launcher (hpcfit doctor)"
            ) from None
        return SERIAL
    return MPI.COMM_WORLD
