"""The folder of compiled kernels: the user's own, closed to others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hpcfit.records import InputError


def cache_folder() -> Path:
    """$HPCFIT_CACHE, else the user's cache folder."""
    given = os.environ.get("HPCFIT_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hpcfit"


def open_cache() -> Path:
    """The cache folder, made if it is not there; code from it is loaded, so nobody else may write to it."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; set HPCFIT_CACHE to another folder"
        ) from None
    if found.st_uid != os.getuid():
        raise InputError(f"{folder}: belongs to another user; set HPCFIT_CACHE to a folder of your own")
    if stat.S_IMODE(found.st_mode) & 0o022:
        raise InputError(f"{folder}: others may write to it; run chmod 700 {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: not writable; set HPCFIT_CACHE to another folder")
    return folder
