"""A time limit that holds whatever blocks: stages are interrupted, and at the very end the process leaves."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Deadline", "OutOfTime"]

_GRACE = 2.0  # seconds between the limit and the end of the process


class OutOfTime(BaseException):
    """Interrupt a stage that takes longer than it may; no Exception, since libraries catch those and try again."""


class Deadline:
    """Time that is left of a limit in seconds, counted from now.

    `enforce` starts a watchdog that ends the process where an interrupt does not help (a disk that hangs).
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._watchdog: threading.Timer | None = None

    @property
    def left(self) -> float:
        """Return the seconds left, at least a hundredth of one."""
        return max(0.01, self._end - time.monotonic())

    def enforce(self, status: int) -> None:
        """End the process with `status` when the limit is over and nothing else worked."""

        def leave() -> None:
            os.write(2, f"neuron-dump: no end after {self.seconds:g} s, leaving\n".encode())
            os._exit(status)

        self._watchdog = threading.Timer(self.seconds + _GRACE, leave)
        self._watchdog.daemon = True
        self._watchdog.start()

    def release(self) -> None:
        """Stop the watchdog."""
        if self._watchdog is not None:
            self._watchdog.cancel()

    @contextmanager
    def stage(self, share: float) -> Iterator[None]:
        """Raise OutOfTime in a block that takes more than its share of what is left.

        Only the main thread can be interrupted; elsewhere the watchdog alone holds.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, self.left * share))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _interrupt(number: int, frame: object) -> None:
    raise OutOfTime
