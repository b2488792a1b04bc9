"""How far long work has come: a line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from hpcfit.records import Iteration

QUIET_SECONDS, SHORT_SECONDS = 2.0, 0.2  # short work says nothing
TERMINAL_SECONDS, PLAIN_SECONDS = 0.5, 30.0


class Line:
    """Decides whether it is time to say something, and how."""

    def __init__(self, stream: TextIO | None, quiet: float, terminal: float, plain: float) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._pause = terminal if self._terminal else plain
        self._next = time.monotonic() + quiet
        self._written = False

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._pause
        return True

    def say(self, line: str) -> None:
        self._stream.write(f"\r{line:<100}" if self._terminal else f"{line}\n")
        self._stream.flush()
        self._written = True

    def close(self) -> None:
        """End the rewritten line."""
        if self._written and self._terminal:
            self._stream.write("\n")


class ProgressLine(Line):
    """Call it with the part that is done."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        super().__init__(stream, QUIET_SECONDS, TERMINAL_SECONDS, PLAIN_SECONDS)
        self._what = what
        self._started = time.monotonic()

    def __call__(self, done: float) -> None:
        if not self.due():
            return
        elapsed = time.monotonic() - self._started
        eta = f", about {_duration(elapsed * (1.0 - done) / done)} to go" if done > 0.0 else ""
        self.say(f"{self._what}: {done:6.1%} in {_duration(elapsed)}{eta}")


class IterationLine(Line):
    """Call it with every iteration of a fit."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        super().__init__(stream, SHORT_SECONDS, 0.05, 2.0)
        self._what = what
        self._count = 0

    def __call__(self, iteration: Iteration) -> None:
        self._count += 1
        if self.due():
            self.say(
                f"{self._what}: {self._count} {iteration.phase}, squares {iteration.objective:.5g}, "
                f"step {iteration.increment:.1e} x {iteration.damping:.2g}, gaps {iteration.defect:.1e}"
            )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
