"""Errors of the emulator that bad input can raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from formats.errors import NeuronError

__all__ = ["EmulatorError", "InputError", "LoadError", "of_rank"]


class EmulatorError(NeuronError):
    """Root of what only the emulator raises."""


class LoadError(EmulatorError, ValueError):
    """A program that cannot be placed on the device: it names what it does not have, or does not fit."""


class InputError(EmulatorError, ValueError):
    """An argument of a run that is not what the program expects."""


@contextmanager
def of_rank(rank: int) -> Iterator[None]:
    """Let an InputError say whose inputs do not fit."""
    try:
        yield
    except InputError as error:
        raise InputError(f"rank {rank}: {error}") from None
