"""How far long work has come: a line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from hpcfit.records import Array, Iteration

QUIET_SECONDS, SHORT_SECONDS = 2.0, 0.2  # short work says nothing
TERMINAL_SECONDS, PLAIN_SECONDS = 0.5, 30.0
MOST_EXPONENTS = 4  # on a line


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


class SpectrumLine(Line):
    """Call it with how far a spectrum has come, and how to find its exponents and their errors so far."""

    def __init__(self, what: str, unit: str, stream: TextIO | None = None) -> None:
        super().__init__(stream, QUIET_SECONDS, TERMINAL_SECONDS, PLAIN_SECONDS)
        self._what, self._unit = what, unit
        self._started = time.monotonic()
        self._first: tuple[float, float] | None = None  # done and covered when it was called first

    def __call__(self, done: float, covered: float, estimate: Callable[[], tuple[Array, Array]]) -> None:
        elapsed = time.monotonic() - self._started
        self._first = self._first or (done, covered)
        if not self.due() or done <= self._first[0]:
            return
        left = elapsed * (1.0 - done) / (done - self._first[0])
        rate = (covered - self._first[1]) / elapsed
        values, errors = estimate()
        pairs = [
            f"{value:.4g}({error:.1g})" for value, error in zip(values, errors, strict=True) if value == value
        ]
        shown = " ".join(pairs[:MOST_EXPONENTS]) + (" ..." if len(pairs) > MOST_EXPONENTS else "")
        so_far = f"{self._what}: {done:6.1%} in {_duration(elapsed)}, about {_duration(left)} to go"
        self.say(f"{so_far}, {rate:.3g} {self._unit}/s{'; ' * bool(shown)}{shown}")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
