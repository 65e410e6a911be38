"""Ctrl-C that stops between two completions, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Flag", "interruptible"]


class Flag:
    """Whether somebody asked to stop."""

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised = False


@contextmanager
def interruptible(flag: Flag) -> Iterator[None]:
    """Turn the first SIGINT into `flag`, the second into KeyboardInterrupt; outside the main thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(number: int, frame: object) -> None:
        if flag.raised:
            raise KeyboardInterrupt
        flag.raised = True

    before = signal.signal(signal.SIGINT, asked)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
