"""Writing a file such that readers see the old one or the new one, never a part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcfit.records import InputError


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside `target`; it takes the target's place when the block ends without error."""
    target = Path(target)
    try:
        number, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent or Path()
        )
        os.close(number)
    except OSError as error:
        raise InputError(
            f"{target}: cannot write here: {error.strerror}; choose another place with -o"
        ) from None
    part = Path(name)
    try:
        yield part
        _settle(part)
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, target)
        _settle(target.parent)
    finally:
        part.unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Have the disk hold what was written."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current
