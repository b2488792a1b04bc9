"""Pass 4: from source to machine code, once: kernels are kept in a cache by their content."""

from __future__ import annotations

import ctypes
import hashlib
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcfit.kernels.blocks import Blocking
from hpcfit.kernels.cache import open_cache
from hpcfit.kernels.compiler import (
    FLAGS,
    compile_shared,
    cpu,
    has_wide_registers,
    needed_compiler,
    target_macros,
    version,
)
from hpcfit.kernels.frames import frames_source
from hpcfit.kernels.source import RUNTIME, kernel_source
from hpcfit.models.define import Model
from hpcfit.models.graph import Symbol

_LOADED: dict[str, Kernel] = {}  # one dlopen per kernel and process
_BY_MODEL: dict[tuple[int, bool, tuple[int, ...]], tuple[Model, Kernel]] = {}
_FRAMES: dict[tuple[int, int | None, bool], tuple[Model, Kernel]] = {}


@dataclass(frozen=True)
class Kernel:
    """Machine code of one model: its identity and its entry point."""

    identity: str  # covers source, compiler, flags, CPU and libm
    path: Path
    library: ctypes.CDLL
    quad: bool


def kernel_for(model: Model, *, quad: bool = False, events: Sequence[Symbol] = ()) -> Kernel:
    """The kernel of a traced model, compiled now or taken from the cache."""
    key = (id(model), quad, tuple(event.index for event in events))
    if key not in _BY_MODEL or _BY_MODEL[key][0] is not model:
        compiler = needed_compiler()
        source = model_source(model, compiler, events)
        _BY_MODEL[key] = (model, built(compiler, model.name, source, quad))
    return _BY_MODEL[key][1]


def frames_kernel(model: Model, tangents: int | None, *, quad: bool = False) -> Kernel:
    """The kernel that carries frames of so many tangents; None: those of one trajectory are its lanes."""
    key = (id(model), tangents, quad)
    if key not in _FRAMES or _FRAMES[key][0] is not model:
        compiler = needed_compiler()
        source = frames_source(model, tangents, wide=has_wide_registers(compiler))
        _FRAMES[key] = (model, built(compiler, model.name, source, quad))
    return _FRAMES[key][1]


def model_source(model: Model, compiler: str, events: Sequence[Symbol] = ()) -> str:
    """C source of a model for this machine's registers."""
    return kernel_source(model, Blocking(registers=24 if has_wide_registers(compiler) else 10), events)


def built(compiler: str, name: str, source: str, quad: bool) -> Kernel:
    identity = _identity(compiler, source, quad)
    if identity not in _LOADED:
        folder = open_cache()
        path = _cached(folder, identity) or _compile(compiler, folder, identity, name, source, quad)
        _LOADED[identity] = Kernel(identity, path, ctypes.CDLL(str(path)), quad)
    return _LOADED[identity]


def loaded() -> list[Kernel]:
    """All machine code that this process has loaded."""
    return list(_LOADED.values())


def _identity(compiler: str, source: str, quad: bool) -> str:
    headers = [path.read_text() for path in sorted(RUNTIME.glob("*.h"))]
    machine = [
        version(compiler),
        target_macros(compiler, cpu()),
        "-".join(platform.libc_ver()),
        *FLAGS,
        str(quad),
    ]
    return hashlib.sha256("\0".join([source, *headers, *machine]).encode()).hexdigest()[:32]


def _cached(folder: Path, identity: str) -> Path | None:
    """A kernel of this identity whose content is what its name says; others are thrown away."""
    for path in folder.glob(f"{identity}-*.so"):
        if path.stem.split("-")[1] == _content(path):
            return path
        path.unlink(missing_ok=True)
    return None


def _compile(compiler: str, folder: Path, identity: str, name: str, source: str, quad: bool) -> Path:
    """Compile in a private place, then move: other processes see a whole kernel or none.

    The name carries the content, as the loader would serve an old file under a name that it knows.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as place:
        text, product = Path(place) / f"{name}.c", Path(place) / "kernel.so"
        text.write_text(source)
        compile_shared(compiler, text, product, RUNTIME, quad=quad)
        final = folder / f"{identity}-{_content(product)}.so"
        product.replace(final)
    return final


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
