"""Writing a file such that readers see the old one or the new one, never a part."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcfit.records import InputError, Mistake


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
        settle(part)
        os.chmod(part, usual_mode())
        os.replace(part, target)
        settle(target.parent)
    finally:
        part.unlink(missing_ok=True)


def settle(path: Path) -> None:
    """Have the disk hold what was written."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def room_for(number: int, target: Path, size: int) -> None:
    """Whether the disk has room for an open file of so many bytes; the file is left empty.

    HDF5 finds out when it closes a file, and leaves the process in a state that nobody wants.
    """
    try:
        os.posix_fallocate(number, 0, max(size, 1))
        os.ftruncate(number, 0)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            return  # this file system does not tell
        problem = f"cannot be written: {error.strerror}"
        raise InputError(Mistake(str(target), problem, "make room, then continue")) from None


def usual_mode() -> int:
    """The permissions that new files of this user have."""
    current = os.umask(0o022)
    os.umask(current)
    return 0o666 & ~current
