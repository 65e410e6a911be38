"""Errors of the emulator that bad input can raise."""

from __future__ import annotations

from formats.errors import NeuronError

__all__ = ["EmulatorError", "InputError", "LoadError"]


class EmulatorError(NeuronError):
    """Root of what only the emulator raises."""


class LoadError(EmulatorError, ValueError):
    """A program that cannot be placed on the device: it names what it does not have, or does not fit."""


class InputError(EmulatorError, ValueError):
    """An argument of a run that is not what the program expects."""
