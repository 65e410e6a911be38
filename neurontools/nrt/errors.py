"""Errors of nrtpy: those of the Python layer, and those that the library returns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emulator.runtime.errors import StatusError
from formats.nrt.status import NrtStatus

__all__ = ["NrtError", "NrtpyError", "failing"]


class NrtpyError(RuntimeError):
    """Say what the Python layer found wrong: a tensor that is freed, a runtime that is active."""


class NrtError(RuntimeError):
    """Carry a status of the library; the text names it: `NRT Error NRT_FAILURE(1): Failed to load model`.

    `detail` is what the runtime's log says about it.
    """

    def __init__(self, status: NrtStatus | int, message: str, detail: str = "") -> None:
        self.status = NrtStatus(status)
        self.message, self.detail = message, detail
        super().__init__(f"NRT Error {self.status.name}({int(self.status)}): {message}")


@contextmanager
def failing(message: str) -> Iterator[None]:
    """Turn a status of the session into an NrtError with nrtpy's text."""
    try:
        yield
    except StatusError as error:
        raise NrtError(error.status, message, error.message) from None
