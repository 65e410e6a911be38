"""Errors of the emulator that bad input can raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.errors import NeuronError

if TYPE_CHECKING:
    from emulator.faults import Fault

__all__ = ["EmulatorError", "FaultError", "InputError", "LoadError"]


class EmulatorError(NeuronError):
    """Root of what only the emulator raises."""


class LoadError(EmulatorError, ValueError):
    """Say why a program cannot be placed on the device: what it names and does not have, what does not fit."""


class InputError(EmulatorError, ValueError):
    """Say why an argument of a run is not what the program expects."""


class FaultError(EmulatorError):
    """Carry a fault from where it is found to the device, which records it and stops; never reaches the user."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)
