"""What this machine is: for provenance, and for `hpcfit doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_LIBRARIES = ("numpy", "scipy", "h5py", "mpi4py", "petsc4py", "matplotlib")
_PROBE_SECONDS = 60


@dataclass(frozen=True)
class Probe:
    """One thing that hpcfit uses: whether it works, what was found, and how to get it."""

    name: str
    works: bool
    found: str
    remedy: str = ""
    needed: bool = True  # False: hpcfit works without it, with less


def describe(*, commit: bool = True) -> dict[str, str]:
    """Versions of everything that can influence a number, and where it was computed.

    commit: ask git, which reads the user's own settings.
    """
    return {
        "hpcfit": metadata.version("hpcfit"),
        "commit": source_commit() if commit else "",
        "python": platform.python_version(),
        **{name: _installed(name) for name in _LIBRARIES},
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": cpu_model(),
    }


def slurm_job() -> dict[str, str]:
    """The numbers of the job that this process belongs to, and its nodes; empty outside SLURM."""
    names = ("JOB_ID", "ARRAY_JOB_ID", "ARRAY_TASK_ID", "RESTART_COUNT", "JOB_NODELIST", "CLUSTER_NAME")
    found = {name.lower(): os.environ.get(f"SLURM_{name}", "") for name in names}
    return {name: value for name, value in found.items() if value} if found["job_id"] else {}


def source_commit() -> str:
    """The commit of the source tree that hpcfit runs from, with '+' if it was changed; '' if installed."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return ""
    head, _ = _answer(["git", "-C", str(folder), "rev-parse", "HEAD"])
    changes, _ = _answer(["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"])
    return head + ("+" if head and changes else "")


def cpu_model() -> str:
    """The CPU's name and the vector instructions that kernels can use."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in fields.items()}
    vectors = [flag for flag in ("avx2", "fma", "avx512f") if flag in facts.get("flags", "").split()]
    return f"{facts.get('model name', platform.machine())} ({' '.join(vectors) or 'no avx2'})"


def probe_python_packages() -> list[Probe]:
    """mpi4py, parallel h5py and petsc4py, each in a process of its own, as a broken MPI kills its process."""
    mpi, mpi_error = _python("from mpi4py import MPI; print(MPI.Get_library_version().split(',')[0].strip())")
    hdf5, hdf5_error = _python(_HDF5_PROBE, H5PY_ALWAYS_USE_MPI="1")
    petsc, petsc_error = _python(_PETSC_PROBE)
    parallel = hdf5.startswith("parallel")
    return [
        Probe("MPI", bool(mpi), mpi or mpi_error, "install mpi4py against the cluster's MPI", needed=False),
        _probe_launcher(bool(mpi)),
        Probe("parallel HDF5", parallel, hdf5 or hdf5_error, _HDF5_REMEDY, needed=False),
        Probe("PETSc with MUMPS", bool(petsc), petsc or petsc_error, _PETSC_REMEDY, needed=False),
    ]


def _probe_launcher(mpi: bool) -> Probe:
    """Whether two ranks meet under mpirun."""
    mpirun = shutil.which("mpirun")
    if not mpirun or not mpi:
        return Probe(
            "MPI launcher", False, "no mpirun" if mpi else "no MPI", "load the MPI module", needed=False
        )
    met, error = _two_ranks(mpirun)
    as_root = "as root set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    remedy = as_root if "root" in error else "try it by hand: mpirun -n 2 hostname"
    return Probe("MPI launcher", bool(met), f"{mpirun}, {met or error}", remedy, needed=False)


_HDF5_REMEDY = "install h5py built with HDF5_MPI=ON; without it one rank writes"
_PETSC_REMEDY = "install petsc4py against a PETSc with MUMPS; without it the dense solver is used"
_HDF5_PROBE = (
    "import h5py; print('parallel' if h5py.get_config().mpi else 'serial', h5py.version.hdf5_version)"
)
_PETSC_PROBE = (
    "import petsc4py; petsc4py.init([]); from petsc4py import PETSc;"
    "A = PETSc.Mat().createAIJ((2, 2), nnz=2); A.setUp(); A[0, 0] = 2.0; A[1, 1] = 3.0; A.assemble();"
    "solver = PETSc.KSP().create(); solver.setOperators(A); solver.setType('preonly');"
    "solver.getPC().setType('lu'); solver.getPC().setFactorSolverType('mumps'); solver.setUp();"
    "print('.'.join(map(str, PETSc.Sys.getVersion())))"
)


def probe_slurm() -> Probe:
    """Whether sbatch is here and a controller answers."""
    remedy = "on a cluster: load its SLURM module; elsewhere campaigns run on this machine's cores"
    if not shutil.which("sbatch"):
        return Probe("SLURM", False, "no sbatch", remedy, needed=False)
    nodes, _ = _answer(["sinfo", "--noheader", "--format=%D"])
    if not nodes:
        return Probe("SLURM", False, "sbatch is here, but no controller answers", remedy, needed=False)
    return Probe("SLURM", True, f"{sum(int(count) for count in nodes.split())} nodes", needed=False)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _python(code: str, **variables: str) -> tuple[str, str]:
    """Output and error of a piece of Python in a fresh process, outside any MPI launch."""
    launcher = ("OMPI_", "PMI", "PMIX_", "SLURM_")
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(launcher) or "ALLOW" in key
    }
    return _answer([sys.executable, "-c", code], {**inherited, **variables})


def _two_ranks(mpirun: str) -> tuple[str, str]:
    code = "from mpi4py import MPI; MPI.COMM_WORLD.rank == 0 and print(MPI.COMM_WORLD.size, 'ranks met')"
    options = ["--oversubscribe"] if "Open MPI" in _answer([mpirun, "--version"])[0] else []
    return _answer([mpirun, *options, "-n", "2", sys.executable, "-c", code])


def _answer(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[str, str]:
    """Standard output of a command, or else why there is none."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip(" -")]
        told = lines[-1] if "Traceback" in done.stderr else lines[0] if lines else ""
        return "", told or f"exit status {done.returncode}"
    return done.stdout.strip(), ""
