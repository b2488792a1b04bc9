"""A lock on a folder: one process at a time decides what is done there."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hpcfit.records import InputError, Mistake

NAME = "lock"


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold the folder's lock; another holder that lives, or that cannot be seen from here, is an InputError.

    The lock is a file that is made only if it is not there, which holds on network file systems too.
    """
    path, text = folder / NAME, _own(what)
    _take(path, text)
    try:
        yield
    finally:
        if _text(path) == text:
            path.unlink(missing_ok=True)


def holder(folder: Path) -> dict[str, Any] | None:
    """Who holds the lock: host, pid, time, what; None if nobody does."""
    text = _text(folder / NAME)
    return None if text is None or _is_stale(text) else _parsed(text)


def is_alive(pid: object) -> bool:
    """Whether there is such a process on this machine."""
    return isinstance(pid, int) and pid > 0 and _birth(pid) != ""


def _take(path: Path, text: str) -> None:
    try:
        _make(path, text)
    except FileExistsError:
        found = _text(path)
        if found is None:
            _take(path, text)  # it was given back just now
        elif _is_stale(found):
            _take_over(path, found, text)
        else:
            raise _held(path, found) from None
    except OSError as error:
        problem = f"cannot write here: {error.strerror}"
        raise InputError(Mistake(str(path.parent), problem, "check its permissions and the space")) from None


def _take_over(path: Path, stale: str, text: str) -> None:
    """Replace the lock of a dead process; of several that try only one may, and only while it is that one."""
    token = path.with_name(f"{path.name}.{hashlib.sha256(stale.encode()).hexdigest()[:12]}")
    try:
        _make(token, text)
    except FileExistsError:
        raise _held(token, _text(token) or stale) from None
    try:
        if _text(path) != stale:
            raise _held(path, _text(path) or text)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        _make(fresh, text)
        os.replace(fresh, path)
    finally:
        token.unlink(missing_ok=True)


def _make(path: Path, text: str) -> None:
    """A new file, or FileExistsError. Who sees it empty cannot tell whose it is, and waits."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)


def _own(what: str) -> str:
    facts = {
        "host": platform.node(),
        "pid": os.getpid(),
        "born": _birth(os.getpid()),
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "what": what,
    }
    return json.dumps(facts) + "\n"


def _is_stale(text: str) -> bool:
    """True if its process was on this machine and is not there any more; pids are used again."""
    found = _parsed(text)
    if found.get("host") != platform.node() or not isinstance(found.get("pid"), int):
        return False
    return _birth(found["pid"]) != found.get("born")


def _birth(pid: int) -> str:
    """When a process began, in the kernel's ticks, or that it is there at all; '' if it is not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            return "there"
        return "there"
    return "" if fields[0] in "ZX" else fields[19]


def _held(path: Path, text: str) -> InputError:
    found = _parsed(text)
    where = f"process {found.get('pid', '?')} on {found.get('host', '?')} since {found.get('time', '?')}"
    problem = f"another hpcfit is at work here ({found.get('what', 'unknown')}, {where})"
    return InputError(Mistake(str(path.parent), problem, f"wait for it; if it is dead, remove {path}"))


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InputError(Mistake(str(path), problem, "check its permissions")) from None
