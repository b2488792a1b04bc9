"""Machine code of a campaign: copied once, then used as it is; nothing is compiled any more."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from hpcfit.kernels import build, compiler
from hpcfit.records import InputError, Mistake

FILE = "compiler.json"
_ARITHMETIC = ("sse", "ssse", "avx", "fma", "f16c", "bmi", "popcnt", "sve")  # what loops are made of


def pin(folder: Path) -> str:
    """Copy all machine code that this process has loaded, and what compiled it; the hash of all of it."""
    names = []
    for kernel in build.loaded():
        target = folder / kernel.path.name
        if not target.exists():
            part = folder / f".{kernel.path.name}.{os.getpid()}"
            shutil.copyfile(kernel.path, part)
            part.replace(target)
        names.append(kernel.path.name)
    found = compiler.find_compiler()
    macros = compiler.target_macros(found, compiler.cpu()) if found else ""
    told = {
        "compiler": compiler.version(found) if found else "",
        "cpu": compiler.cpu(),
        "needs": sorted(_features(macros) & _flags()),
        "libc": "-".join(platform.libc_ver()),
        "kernels": sorted(names),
        "macros": macros,
    }
    part = folder / f".{FILE}.{os.getpid()}"
    part.write_text(json.dumps(told, indent=1), encoding="utf-8")
    part.replace(folder / FILE)
    return kernel_hash(folder)


def kernel_hash(folder: Path) -> str:
    """Of the machine code that was copied: the names of its files tell their content."""
    names = _told(folder)["kernels"]
    lost = [name for name in names if not (folder / name).exists()]
    if lost:
        problem = f"{len(lost)} of {len(names)} files with machine code are missing, as {lost[0]}"
        raise InputError(Mistake(str(folder), problem, "submit the job into another folder"))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:32]


def use_pinned(folder: Path) -> str:
    """From now on this process takes all machine code from `folder`; the hash of it."""
    told, place = _told(folder), str(folder)
    libc = "-".join(platform.libc_ver())
    if libc != told["libc"]:
        problem = f"the machine code was made for {told['libc']}, this machine has {libc}"
        raise InputError(Mistake(place, problem, "use machines of one kind"))
    lacking = sorted(set(told["needs"]) - _flags())
    if lacking:
        problem = f"the machine code needs a CPU with {', '.join(lacking[:8])}"
        raise InputError(Mistake(place, problem, "submit with a CPU target that all machines have"))
    compiler.pin(compiler.Pinned(place, told["compiler"], told["macros"]))
    os.environ["HPCFIT_CACHE"] = place
    return kernel_hash(folder)


def _told(folder: Path) -> dict[str, Any]:
    try:
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"the machine code of the campaign cannot be used: {error}"
        raise InputError(Mistake(str(folder / FILE), problem, "submit the job into another folder")) from None
    return dict(told)


def _features(macros: str) -> set[str]:
    """CPU features that a compiler may use, as /proc/cpuinfo calls them."""
    found = {name.lower() for name in re.findall(r"^#define __(\w+)__ 1$", macros, re.MULTILINE)}
    return {name for name in found if name.startswith(_ARITHMETIC)}


def _flags() -> set[str]:
    """What this machine's CPU can do."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return set(found[1].split()) if found else set()
