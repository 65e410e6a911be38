"""Errors of the NKI front end; each is one line that names the kernel file and line."""

from __future__ import annotations

from typing import Any

from formats.errors import NeuronError, UnsupportedError

__all__ = ["KernelFaultError", "NkiValidationError", "UnsupportedError"]


class NkiValidationError(NeuronError, ValueError):
    """An argument that breaks a documented limit; the message names both, the target and the kernel line."""


class KernelFaultError(NeuronError):
    """A built kernel that faulted or hung on the emulator; `result` is what the run gave."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result
