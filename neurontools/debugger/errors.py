"""What a debugger command can refuse; names that do not exist are NotFoundError of `formats.errors`."""

from __future__ import annotations

from emulator.errors import EmulatorError

__all__ = ["UsageError"]


class UsageError(EmulatorError, ValueError):
    """Say why the argument of a command makes no sense, and what would."""
