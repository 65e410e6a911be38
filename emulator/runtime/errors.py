"""How a call of the runtime fails: a status, the function that gives it, and one line of why."""

from __future__ import annotations

from emulator.errors import EmulatorError
from formats.nrt.status import NrtStatus

__all__ = ["StatusError", "invalid"]


class StatusError(EmulatorError):
    """Carry the status that a call of libnrt returns, and what there is to say about it.

    `reported` is whether the log has it already.
    """

    def __init__(self, status: NrtStatus, message: str) -> None:
        self.status = status
        self.message = message
        self.reported = False
        super().__init__(f"{status.name}({int(status)}): {message}")


def invalid(message: str) -> StatusError:
    """Return the error of an argument that is not valid."""
    return StatusError(NrtStatus.NRT_INVALID, message)
