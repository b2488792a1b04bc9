"""hpcfit doctor: what of MPI, HDF5, PETSc, the compiler and SLURM works here, and what to do where not."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from hpcfit.cluster.machine import Probe, cpu_model, describe, probe_python_packages, probe_slurm
from hpcfit.commands.verb import new_verb
from hpcfit.kernels.cache import open_cache
from hpcfit.kernels.compiler import find_compiler, version
from hpcfit.records import InputError


def add(verbs: Any) -> None:
    parser = new_verb(verbs, "doctor", "check this machine's installation", "hpcfit doctor")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    facts = describe()
    commit = f" ({facts['commit'][:10]})" if facts["commit"] else ""
    libraries = f"Python {facts['python']}, numpy {facts['numpy']}, scipy {facts['scipy']}"
    print(f"hpcfit {facts['hpcfit']}{commit}, {libraries}")
    probes = [*probe_python_packages(), _compiler(), _cpu(), _cache(), probe_slurm()]
    for probe in probes:
        mark = "ok     " if probe.works else "MISSING" if probe.needed else "without"
        print(f"{mark} {probe.name:17} {probe.found}")
        if not probe.works and probe.remedy:
            print(f"        remedy: {probe.remedy}")
    return 1 if any(probe.needed and not probe.works for probe in probes) else 0


def _compiler() -> Probe:
    compiler = find_compiler()
    remedy = "install gcc or clang, or set CC; without it only the extrapolation integrator runs"
    return Probe(
        "C compiler", bool(compiler), version(compiler) if compiler else "no cc", remedy, needed=False
    )


def _cpu() -> Probe:
    model = cpu_model()
    return Probe(
        "CPU", "no avx2" not in model, model, "kernels are built for this CPU without AVX2", needed=False
    )


def _cache() -> Probe:
    try:
        folder = open_cache()
    except InputError as error:
        problem, _, remedy = str(error).partition("; ")
        return Probe("cache", False, problem, remedy)
    free = shutil.disk_usage(folder).free / 1e9
    return Probe(
        "cache", free > 0.1, f"{folder} ({free:.0f} GB free)", "free some space, or set HPCFIT_CACHE"
    )
