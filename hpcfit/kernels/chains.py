"""Machine code for linearised chains: fixed sources, compiled for the sizes of a problem."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hpcfit.kernels.build import Kernel, built
from hpcfit.kernels.compiler import needed_compiler


def chain_kernel(states: int, parameters: int, rows: int) -> Kernel:
    """Many members side by side, with n states, q parameters and k rows at a node."""
    return _kernel("chain", states, parameters, rows)


def segments_kernel(states: int, parameters: int, rows: int) -> Kernel:
    """The segments of one long chain side by side."""
    return _kernel("segments", states, parameters, rows)


@lru_cache(maxsize=64)
def _kernel(name: str, states: int, parameters: int, rows: int) -> Kernel:
    sizes = {"N_STATES": states, "N_PARAMETERS": parameters, "N_ROWS": rows}
    head = "".join(f"#define {what} {size}\n" for what, size in sizes.items())
    source = (Path(__file__).parent / f"{name}.c").read_text()
    return built(needed_compiler(), name, head + source, quad=False)
