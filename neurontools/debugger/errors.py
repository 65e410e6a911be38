"""What a debugger command can refuse; names that do not exist are NotFoundError of `formats.errors`."""

from __future__ import annotations

from emulator.errors import EmulatorError

__all__ = ["UsageError"]


class UsageError(EmulatorError, ValueError):
    """An argument of a command that makes no sense; the message says what would."""
