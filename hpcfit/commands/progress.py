"""How far long work has come: a line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

QUIET_SECONDS = 2.0  # short work says nothing
TERMINAL_SECONDS, PLAIN_SECONDS = 0.5, 30.0


class ProgressLine:
    """Call it with the part that is done; it decides whether it is time to say something."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._started = time.monotonic()
        self._terminal = self._stream.isatty()
        self._next = self._started + QUIET_SECONDS
        self._written = False

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (TERMINAL_SECONDS if self._terminal else PLAIN_SECONDS)
        elapsed = now - self._started
        eta = f", about {_duration(elapsed * (1.0 - done) / done)} to go" if done > 0.0 else ""
        line = f"{self._what}: {done:6.1%} in {_duration(elapsed)}{eta}"
        self._stream.write(f"\r{line:<78}" if self._terminal else f"{line}\n")
        self._stream.flush()
        self._written = True

    def close(self) -> None:
        """End the rewritten line."""
        if self._written and self._terminal:
            self._stream.write("\n")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
