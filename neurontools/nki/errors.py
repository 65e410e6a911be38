"""Errors of the NKI front end; each is one line that names the kernel file and line."""

from __future__ import annotations

from typing import Any

from formats.errors import NeuronError, UnsupportedError

__all__ = ["KernelFaultError", "NkiValidationError", "UnsupportedError"]


class NkiValidationError(NeuronError, ValueError):
    """Say which argument breaks which documented limit, on which target and at which kernel line."""


class KernelFaultError(NeuronError):
    """Say that the built kernel faulted or hung on the emulator; `result` is what the run gave."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result
