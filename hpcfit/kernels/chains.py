"""Machine code for linearised chains: one fixed source, compiled for the sizes of a problem."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hpcfit.kernels.build import Kernel, built
from hpcfit.kernels.compiler import needed_compiler

SOURCE = Path(__file__).parent / "chain.c"


@lru_cache(maxsize=64)
def chain_kernel(states: int, parameters: int, rows: int) -> Kernel:
    """The kernel for n states, q parameters and k rows at a node."""
    sizes = {
        "N_STATES": states,
        "N_PARAMETERS": parameters,
        "N_ROWS": rows,
    }
    head = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
    return built(needed_compiler(), "chain", head + SOURCE.read_text(), quad=False)
