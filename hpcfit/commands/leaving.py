"""When a task has to leave: somebody asked it to by a signal, or its time is nearly over."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType
from typing import Any

from hpcfit.mpi.together import everywhere
from hpcfit.records import InputError, Mistake

MARGIN = 1.2  # of the longest chunk so far: the next one must end in time


class Leaving:
    """Signals are noted when they come; the ranks agree on them, and on the clock, at the end of a chunk."""

    def __init__(self, deadline: float | None) -> None:
        self.asked, self._deadline, self._longest = "", deadline, 0.0
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)  # the second one is meant at once

    def chunk_took(self, seconds: float) -> None:
        self._longest = max(self._longest, seconds)

    def agreed(self, comm: Any) -> str:
        """Why all ranks leave now; '' if they go on."""
        late = self._deadline is not None and time.time() + MARGIN * self._longest > self._deadline
        reasons = comm.allgather(self.asked or ("the deadline" if late else ""))
        return next((reason for reason in reasons if reason), "")


def deadline(comm: Any) -> float | None:
    """Seconds since 1970 by which the work must end, from HPCFIT_DEADLINE; None: no limit."""
    return everywhere(comm, _deadline)


def _deadline() -> float | None:
    given = os.environ.get("HPCFIT_DEADLINE", "").strip()
    if not given:
        return None
    try:
        return float(given)
    except ValueError:
        problem = f"'{given}' is not a time"
        raise InputError(
            Mistake("HPCFIT_DEADLINE", problem, "give seconds since 1970, as $(($(date +%s) + 3600))")
        ) from None
