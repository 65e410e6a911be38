"""Running one line of the debugger's language: what the prompt, scripts, JSON and the screen have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from formats.errors import FormatError, NeuronError
from neurontools.debugger.commands.command import AnyCommand
from neurontools.debugger.commands.table import look_up
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Moved, Stop
from neurontools.debugger.session import NOT_LIVE

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["Answer", "carry_out", "split_commands", "takes_block", "without_comment"]

# "#12" is an event's number, anything else after # a comment.
_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!\d)|^\s*#")


def without_comment(line: str) -> str:
    """Return a line without its comment and surrounding blanks."""
    found = _COMMENT.search(line)
    return (line[: found.start()] if found else line).strip()


def split_commands(text: str) -> list[str]:
    """Return the commands of "a; b"."""
    return [part for line in text.splitlines() for part in map(str.strip, without_comment(line).split(";")) if part]


def takes_block(line: str) -> bool:
    """Return whether a line opens a block of lines that `end` closes."""
    try:
        return look_up(without_comment(line))[0].block
    except (UsageError, IndexError):
        return False


class Answer(NamedTuple):
    """What came of a line: the `value` of its command, or the `error` that it ended with."""

    text: str
    command: AnyCommand | None = None
    value: object = None
    error: NeuronError | None = None

    @property
    def name(self) -> str:
        """Return the first word of the command's name, "" where there is none."""
        return "" if self.command is None else self.command.word

    @property
    def lines(self) -> list[str]:
        """Return the value as lines."""
        return [] if self.command is None or self.error is not None else self.command.lines(self.value)

    @property
    def reason(self) -> str:
        """Return why a command that moves the program ended, "" of others."""
        return self.value.reason if isinstance(self.value, Stop | Moved) else ""

    @property
    def stopped_at(self) -> tuple[int, ...]:
        """Return the breakpoints that a command has stopped at."""
        return self.value.breakpoints if isinstance(self.value, Stop | Moved) else ()


def carry_out(session: Session, line: str) -> Answer:
    """Run one line, or a block with its lines; a mistake in it, or a file that fails, is the answer's error."""
    first, *block = map(without_comment, line.splitlines() or [""])
    command = None
    try:
        if not first:
            return Answer(first)
        command, rest = look_up(first)
        if command.live and session.post_mortem:
            raise UsageError(NOT_LIVE)
        if not command.keeps_listing:
            session.forget_listing()
        if command.block:
            block = block[: block.index("end")] if "end" in block else block
            for each in filter(None, block):
                look_up(each)
            rest = "\n".join([rest, *filter(None, block)])
        return Answer(first, command, command.run(session, rest))
    except NeuronError as error:
        return Answer(first, command, error=error)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Answer(first, command, error=FormatError(f"cannot be written ({reason})", path=str(error.filename)))
