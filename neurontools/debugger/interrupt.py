"""Ctrl-C that stops between two completions, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Flag", "interruptible", "looked_after"]

_thread = threading.local()


class Flag:
    """A request to stop: by a signal, or by the function given to `looked_after`."""

    __slots__ = ("_look", "_raised")

    def __init__(self) -> None:
        self._raised = False
        self._look: Callable[[], bool] | None = getattr(_thread, "look", None)

    @property
    def raised(self) -> bool:
        """Return whether to stop; asked between two completions."""
        if not self._raised and self._look is not None:
            self._raised = self._look()
        return self._raised

    @raised.setter
    def raised(self, value: bool) -> None:
        self._raised = value


@contextmanager
def looked_after(look: Callable[[], bool]) -> Iterator[None]:
    """Have commands that move, on this thread, call a function between completions and stop where it returns true.

    The function may read the session meanwhile, where `Session.events` has changed since it was called last.
    """
    _thread.look = look
    try:
        yield
    finally:
        _thread.look = None


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
