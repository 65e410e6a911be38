"""Ctrl-C that ends an execution between two completions, so that it can be told where every engine stands."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from emulator.diagnosis.causes import Reason

if TYPE_CHECKING:
    from emulator.runtime import Result


class Interruptible(Protocol):
    """What runs: a device, or a machine of several."""

    def interrupt(self) -> None:
        """End the run soon."""

    @property
    def hang(self) -> object: ...


__all__ = ["Interrupted", "interruptible", "was_interrupted"]


class Interrupted(KeyboardInterrupt):
    """Leave a script whose launch was interrupted: what came of that launch is known."""


@contextmanager
def interruptible(device: Interruptible) -> Iterator[None]:
    """Let the first SIGINT end the execution and the second raise KeyboardInterrupt; so does one that came too late.

    Outside the main thread, and where SIGINT is ignored, nothing changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    pressed = False

    def asked(number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        device.interrupt()

    signal.signal(signal.SIGINT, asked)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and getattr(device.hang, "reason", None) != Reason.INTERRUPTED:
        raise KeyboardInterrupt


def was_interrupted(result: Result) -> bool:
    """Return whether Ctrl-C ended an execution."""
    return result.hang is not None and result.hang.reason == Reason.INTERRUPTED
