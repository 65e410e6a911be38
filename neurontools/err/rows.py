"""What `neurontools err explain` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from formats.named_tuple import NamedTuple
from formats.nrt.facts import Family, Provenance
from neurontools.command.results import LEFT_OUT

__all__ = [
    "Answer", "CodeAnswer", "ErrorRow", "InfodumpRow", "LineAnswer", "LineRow", "LogAnswer", "LogRow", "LoggedError",
]  # fmt: skip


@dataclass(frozen=True)
class ErrorRow:
    """What is known of an error, and what the text says with it."""

    code: Annotated[int | str | None, "Its number; a text where the compiler names it."]
    name: str
    family: Family
    meaning: str
    causes: Annotated[tuple[str, ...], "The likeliest first."]
    next_steps: tuple[str, ...]
    counter: Annotated[str | None, "Counter of sysfs that moves with it."]
    command: Annotated[str | None, "Command that shows most of a dump with it."]
    provenance: Provenance
    cite: str
    fatal: Annotated[bool, "Whether an execution fails with it."]
    values: Annotated[dict[str, str], "What the line says, by name."]


@dataclass(frozen=True)
class LoggedError(ErrorRow):
    """An error in a log."""

    line: Annotated[int, "Number of the first line that has it."]
    time: Annotated[str | None, "Of that line, ISO 8601."]
    pid: int | None
    count: Annotated[int, "How often the process had it."]
    text: Annotated[str, "What the first line says."]
    log: Annotated[str | None, LEFT_OUT, "The file that it is in, where there are several."] = None


class LineRow(NamedTuple):
    """A line in the form of the runtime's log."""

    number: int
    time: Annotated[str, "ISO 8601."]
    pid: int
    tid: int
    level: str
    module: str
    function: str
    text: str


class LogRow(NamedTuple):
    """A log as a whole."""

    lines: int
    recognised: Annotated[int, "Lines in the form of the runtime's log."]
    processes: tuple[int, ...]
    first_error: Annotated[str | None, "Time of the first error, ISO 8601."]
    files: Annotated[tuple[str, ...] | None, LEFT_OUT, "The logs, where there are several."] = None


class InfodumpRow(NamedTuple):
    """A block of `nrt_infodump`."""

    line: Annotated[int, "Number of its first line."]
    time: Annotated[str | None, "ISO 8601."]
    pid: int | None
    status: Annotated[str | None, "As the failure line writes it."]
    call: Annotated[str | None, "Function of libnrt that failed."]
    fields: Annotated[dict[str, str], "The fields that are documented."]
    other: Annotated[dict[str, str], "Fields that are not."]
    environment: dict[str, str]
    whole: Annotated[bool, "Whether its last line is there."]
    log: Annotated[str | None, LEFT_OUT, "The file that it is in, where there are several."] = None


class CodeAnswer(NamedTuple):
    """The answer to a code or a name."""

    kind: Literal["code"]
    errors: tuple[ErrorRow, ...]
    log: None
    infodumps: tuple[InfodumpRow, ...]


class LineAnswer(NamedTuple):
    """The answer to one line of a log."""

    kind: Literal["line"]
    errors: tuple[ErrorRow, ...]
    log: None
    line: Annotated[LineRow | None, "Its fields; null of a line in another form."]
    infodumps: tuple[InfodumpRow, ...]


class LogAnswer(NamedTuple):
    """The answer to a log; the error that came first is the first one."""

    kind: Literal["log"]
    errors: tuple[LoggedError, ...]
    log: LogRow
    infodumps: tuple[InfodumpRow, ...]


Answer = CodeAnswer | LineAnswer | LogAnswer
