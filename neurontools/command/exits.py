"""Exit statuses of every command: one table, read by the command line, the manual and the tests."""

from __future__ import annotations

from enum import IntEnum, unique

from formats.errors import NeuronError

__all__ = ["EXIT_MEANINGS", "ExitStatus", "ScriptEndedError"]


@unique
class ExitStatus(IntEnum):
    """How a command ended; a finding is not a failure of the tool."""

    # fmt: off
    OK          = 0
    FINDING     = 1
    USAGE       = 2
    BAD_INPUT   = 3
    NOT_FOUND   = 4
    FAULT       = 5
    UNSUPPORTED = 6
    BUG         = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


# fmt: off
EXIT_MEANINGS: dict[ExitStatus, str] = {
    ExitStatus.OK:          "The command did what was asked and found nothing wrong.",
    ExitStatus.FINDING:     "Something was found: a check hit, a difference, a file that fails verification, a script.",
    ExitStatus.USAGE:       "The command line does not make sense.",
    ExitStatus.BAD_INPUT:   "An input cannot be read or is corrupt, or an output cannot be written.",
    ExitStatus.NOT_FOUND:   "A thing that was named (a file, member, engine, tensor) does not exist.",
    ExitStatus.FAULT:       "The execution faulted, or hung.",
    ExitStatus.UNSUPPORTED: "The input is understood, but this version does not model it; the message says what.",
    ExitStatus.BUG:         "A bug of neurontools; NEURONTOOLS_DEBUG=1 shows where.",
    ExitStatus.INTERRUPTED: "Interrupted from the keyboard.",
    ExitStatus.BROKEN_PIPE: "Nobody reads the output any more.",
}


class ScriptEndedError(NeuronError):
    """A user's script failed before what the command is about; the command ends with the script's own status."""

    def __init__(self, path: str, status: int) -> None:
        self.path, self.status = path, status
        super().__init__(f"{path}: the script ended with status {status}, before the launch that was asked for")
