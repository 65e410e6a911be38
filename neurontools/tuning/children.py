"""Processes of trials and of a batch's commands: each begins a session of its own, and none outlives an interruption.

A key that interrupts reaches the terminal's foreground only, which these are not part of; and the threads that wait for
them cannot be interrupted. So whoever is interrupted ends them here.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

__all__ = ["child", "none_left"]

_LOCK = Lock()
_running: set[subprocess.Popen[bytes]] = set()
_ending = 0  # how many want no further process now


@contextmanager
def child(words: Sequence[str], **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that has a session of its own, and end it with whatever it has started.

    Raises CancelledError while processes are ended for good.
    """
    with _LOCK:
        if _ending:
            raise CancelledError
        process = subprocess.Popen(
            words, **streams, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, start_new_session=True
        )
        _running.add(process)
    try:
        yield process
    finally:
        with _LOCK:
            _running.discard(process)
        if process.poll() is None:
            _end(process)
            process.wait()


@contextmanager
def none_left() -> Iterator[None]:
    """End every process that runs, and let none start meanwhile: for threads that start them to come to their ends."""
    global _ending
    with _LOCK:
        _ending += 1
        for process in _running:
            if process.poll() is None:
                _end(process)
    try:
        yield
    finally:
        with _LOCK:
            _ending -= 1


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it may have ended by itself since the look
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
