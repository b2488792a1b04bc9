"""The system's C compiler, and how kernels are compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hpcfit.records import InputError, Mistake

# Not -ffast-math: NaN tests would vanish, and denormals be switched off for the whole process.
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
)
LONGEST_COMPILATION = 600  # seconds


@dataclass(frozen=True)
class Pinned:
    """What compiled the machine code that is used as it is; there need not be a compiler here."""

    folder: str
    version: str
    macros: str


_pinned: list[Pinned] = []  # at most one


def pin(pinned: Pinned) -> None:
    """Nothing is compiled from now on."""
    _pinned[:] = [pinned]


def find_compiler() -> str | None:
    """Path of the C compiler: $CC, else cc, gcc or clang."""
    if _pinned:
        return _pinned[0].folder if _pinned[0].version else None
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


def needed_compiler() -> str:
    """The compiler, or what to do without one."""
    compiler = find_compiler()
    if compiler is None:
        raise InputError(
            "no C compiler found; install gcc or clang, set CC, "
            'or use method = "extrapolation", which needs none'
        )
    return compiler


def version(compiler: str) -> str:
    """First line of what the compiler says about itself."""
    return _pinned[0].version if _pinned else _said_version(compiler)


@lru_cache(maxsize=4)
def _said_version(compiler: str) -> str:
    answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return answer.stdout.splitlines()[0].strip() if answer.stdout else "unknown"


def cpu() -> str:
    """The CPU that kernels are compiled for: $HPCFIT_CPU (as in x86-64-v3), else the one of this machine."""
    return os.environ.get("HPCFIT_CPU") or "native"


def target_macros(compiler: str, target: str) -> str:
    """What the compiler knows about a CPU: part of a kernel's identity."""
    return _pinned[0].macros if _pinned else _said_macros(compiler, target)


@lru_cache(maxsize=4)
def _said_macros(compiler: str, target: str) -> str:
    command = [compiler, f"-march={target}", "-dM", "-E", "-x", "c", os.devnull]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if answer.returncode:
        raise InputError(
            f"{compiler} does not know the CPU '{target}'; set HPCFIT_CPU to one that it knows, or unset it"
        )
    return answer.stdout


def has_wide_registers(compiler: str) -> bool:
    """Whether vectors have 32 registers (AVX-512, AArch64) rather than 16."""
    macros = target_macros(compiler, cpu())
    return "__AVX512F__" in macros or "__aarch64__" in macros


def compile_shared(compiler: str, source: Path, target: Path, include: Path, *, quad: bool) -> None:
    """Compile one C file to a shared object for this CPU."""
    if _pinned:
        problem = "machine code that this work needs is not there"
        remedy = "use the version of hpcfit that submitted it, or submit the job into another folder"
        raise InputError(Mistake(_pinned[0].folder, problem, remedy))
    precision = ["-DQUAD"] if quad else []
    libraries = ["-lquadmath", "-lm"] if quad else ["-lm"]
    command = [
        compiler,
        *FLAGS,
        f"-march={cpu()}",
        *precision,
        f"-I{include}",
        "-o",
        str(target),
        str(source),
        *libraries,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_COMPILATION, check=False)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        raise RuntimeError(f"{compiler} could not compile the kernel: {first}")
