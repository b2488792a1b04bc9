"""Long calls of machine code: told about on the way, and interruptible."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hpcfit.flow.progress import Watch
from hpcfit.records import Array

WATCH_SECONDS = 0.2


def attended(
    call: Callable[[], object], stop: NDArray[np.int32], covered: Array, watch: Watch | None
) -> None:
    """Call; where somebody watches, in a thread of its own, which ends early once `stop` is set."""
    if watch is None:
        call()
        return
    done = threading.Event()  # an interrupted Thread.join() takes the thread for ended (python/cpython#90882)

    def run() -> None:
        call()
        done.set()

    threading.Thread(target=run).start()
    try:
        while not done.wait(WATCH_SECONDS):
            watch(float(covered[0]))
        watch(1.0)
    finally:
        stop[0] = 1
        _outlast(done)


def _outlast(done: threading.Event) -> None:
    """Wait for the kernel, which writes into our arrays, whatever interrupts the waiting."""
    try:
        done.wait()
    except BaseException:
        _outlast(done)
        raise
