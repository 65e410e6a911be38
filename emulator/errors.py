"""Errors of the emulator that bad input can raise."""

from __future__ import annotations

from formats.errors import NeuronError

__all__ = ["EmulatorError", "InputError", "LoadError"]


class EmulatorError(NeuronError):
    """Root of what only the emulator raises."""


class LoadError(EmulatorError, ValueError):
    """Say why a program cannot be placed on the device: what it names and does not have, what does not fit."""


class InputError(EmulatorError, ValueError):
    """Say why an argument of a run is not what the program expects."""
