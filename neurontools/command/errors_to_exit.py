"""The one place that turns an error into an exit status, a kind and one line of text."""

from __future__ import annotations

import errno
import os

from formats.errors import FormatError, NeuronError, NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus, ScriptEndedError

__all__ = ["Failure", "classify", "is_usage_error"]


class Failure(NamedTuple):
    """What to tell about an error: the status, a word for programs, one line for people."""

    status: ExitStatus
    kind: str
    message: str


def classify(error: BaseException) -> Failure:
    """Return how an error ends the command; whatever no input should raise is our bug (70)."""
    if is_usage_error(error):
        return Failure(ExitStatus.USAGE, "usage", error.format_message())  # type: ignore[attr-defined]
    if isinstance(error, ScriptEndedError):
        return Failure(error.status, "script", _line(error))  # type: ignore[arg-type]  # any number: the script's own
    if isinstance(error, UnsupportedError):
        return Failure(ExitStatus.UNSUPPORTED, "unsupported", _line(error))
    if isinstance(error, NotFoundError):
        return Failure(ExitStatus.NOT_FOUND, "not-found", _line(error))
    if isinstance(error, FormatError):
        return Failure(ExitStatus.BAD_INPUT, "format", _line(error))
    if isinstance(error, NeuronError) and isinstance(error, ValueError):
        # A kernel that breaks a documented limit, an input array of another shape: the message says which.
        return Failure(ExitStatus.BAD_INPUT, "input", _line(error))
    if isinstance(error, NeuronError):
        # Errors of the emulator: an execution that cannot go on.
        return Failure(ExitStatus.FAULT, getattr(error, "kind", None) or "fault", _line(error))
    if isinstance(error, FileNotFoundError):
        # Python's own words are about files and folders; those of `need_folder` say which of them is not there.
        own = error.strerror if error.strerror != os.strerror(errno.ENOENT) else None
        return Failure(ExitStatus.NOT_FOUND, "not-found", f"{error.filename}: {own or 'no such file'}")
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return Failure(ExitStatus.BAD_INPUT, "file", where + (error.strerror or _line(error)).lower())
    if isinstance(error, MemoryError):
        return Failure(ExitStatus.BAD_INPUT, "memory", "not enough memory for this input")
    hint = "" if os.environ.get("NEURONTOOLS_DEBUG") else " (NEURONTOOLS_DEBUG=1 shows the traceback)"
    return Failure(ExitStatus.BUG, "internal", f"bug in neurontools: {type(error).__name__}: {_line(error)}{hint}")


def is_usage_error(error: BaseException) -> bool:
    """Return whether Typer refused the command line; its error classes are private, so the shape decides."""
    return getattr(error, "exit_code", None) == ExitStatus.USAGE and hasattr(error, "format_message")


def _line(error: BaseException) -> str:
    return " ".join(str(error.args[0] if isinstance(error, KeyError) and error.args else error).split())
