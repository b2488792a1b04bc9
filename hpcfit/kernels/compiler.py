"""The system's C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess


def find_compiler() -> str | None:
    """Path of the C compiler: $CC, else cc, gcc or clang."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


def version(compiler: str) -> str:
    """First line of what the compiler says about itself."""
    answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return answer.stdout.splitlines()[0].strip() if answer.stdout else "unknown"
