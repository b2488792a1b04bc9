"""The generated C: the same text twice, and nothing in the compiler's rooms that knows a model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpcfit import kernels
from hpcfit.kernels.blocks import Blocking
from hpcfit.kernels.source import kernel_source
from hpcfit.models.catalogue import NAMES, find

FLOWS = [name for name in NAMES if find(name).kind == "flow" and name != "lorenz96"]


def test_no_models_name_occurs_in_the_compiler() -> None:
    """Neither in the passes nor in the runtime; 'quadratic' the adjective would be found, too."""
    folder = Path(kernels.__file__).parent
    for path in [*folder.rglob("*.py"), *folder.rglob("*.h")]:
        words = set(re.findall(r"[a-z_0-9]+", path.read_text().lower()))
        assert not words & set(NAMES), path


@pytest.mark.parametrize("name", FLOWS)
def test_the_same_text_twice(name: str) -> None:
    """Although the first pass adds nodes to the model's graph."""
    first, second = (kernel_source(find(name), Blocking(registers=10)) for _ in range(2))
    assert first == second


def test_the_same_text_in_another_process() -> None:
    """No order of sets, no addresses: otherwise the cache would never be hit."""
    code = (
        "from hpcfit.kernels.blocks import Blocking; from hpcfit.kernels.source import kernel_source;"
        "from hpcfit.models.catalogue import find;"
        "import hashlib; texts = [kernel_source(find(n), Blocking(registers=10)) for n in {names!r}];"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest())"
    ).replace("{names!r}", repr(["chua", "double_pendulum", "quadratic"]))
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_the_source_names_the_models_states_and_parameters() -> None:
    text = kernel_source(find("lorenz"), Blocking(registers=10))
    for word in ("x0_ = x", "p[0] = sigma", "p[2] = b"):
        assert word in text
