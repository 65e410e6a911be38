"""Running one line of the debugger's language: what the prompt, scripts, JSON and the screen have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from formats.errors import FormatError, NeuronError
from formats.named_tuple import NamedTuple
from neurontools.debugger.commands.command import AnyCommand
from neurontools.debugger.commands.table import COMMANDS, look_up
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Computed, Display, Lines, Moved, Stop, TensorValue
from neurontools.debugger.session import NOT_LIVE
from neurontools.debugger.view_memory import value_lines
from neurontools.text.visible import printable

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


def _grouped(found: Lines) -> Lines:
    """Return lines with those of a block, up to its `end`, as one; without comments and empty ones."""
    made: list[str] = []
    numbers: list[int] = []
    rest = ((number, text) for number, line in enumerate(found.lines, 1) if (text := without_comment(line)))
    for number, first in rest:
        numbers.append(number)
        block = ["", *_block(text for _, text in rest), "end"] if takes_block(first) else []
        made.append(first + "\n".join(block))
    return found._replace(lines=tuple(made), numbers=tuple(numbers) if found.numbers else ())


def _block(lines: Iterable[str]) -> list[str]:
    """Return the lines up to the `end` that closes a block, those of blocks in it too."""
    found: list[str] = []
    depth = 0
    for line in lines:
        if line == "end":
            if not depth:
                break
            depth -= 1
        elif line:
            depth += takes_block(line)
        found.append(line)
    return found


class Answer(NamedTuple):
    """What came of a line: the `value` of its command, or the `error` that it ended with.

    `displays` are the expressions that are shown at every stop; text says why one has no value.
    """

    text: str
    command: AnyCommand | None = None
    value: object = None
    error: NeuronError | None = None
    displays: tuple[TensorValue | Computed | str, ...] = ()

    @property
    def follow(self) -> tuple[str, ...]:
        """Return the lines to run next: those of a script or of a command that the person made."""
        return self.value.lines if isinstance(self.value, Lines) else ()

    @property
    def name(self) -> str:
        """Return the first word of the command's name, "" where there is none."""
        return "" if self.command is None else self.command.word

    @property
    def lines(self) -> list[str]:
        """Return the value as lines that a terminal shows as they are: names of files and tensors may hold anything."""
        own = [] if self.command is None or self.error is not None else self.command.lines(self.value)
        shown = (line for each in self.displays for line in ([each] if isinstance(each, str) else value_lines(each)))
        return list(map(printable, (*own, *shown)))

    @property
    def reason(self) -> str:
        """Return why a command that moves the program ended, "" of others."""
        return self.value.reason if isinstance(self.value, Stop | Moved) else ""

    @property
    def stopped_at(self) -> tuple[int, ...]:
        """Return the breakpoints that a command has stopped at."""
        return self.value.breakpoints if isinstance(self.value, Stop | Moved) else ()


def _displays(session: Session, value: object) -> tuple[TensorValue | Computed | str, ...]:
    new = {each.number for each in value if isinstance(each, Display)} if isinstance(value, tuple) else set()
    found: list[TensorValue | Computed | str] = []
    for each in session.scripting.displays:
        # `display EXPRESSION` shows the new one, a stop shows all.
        if new and not isinstance(value, Stop | Moved) and each.number not in new:
            continue
        try:
            found.append(session.evaluate(each.expression, each.base))
        except NeuronError as error:
            found.append(f"{each.number}: {each.expression}: {error}")
    return tuple(found)


def carry_out(session: Session, line: str) -> Answer:
    """Run one line, or a block with its lines; a mistake in it, or a file that fails, is the answer's error."""
    first, *block = map(without_comment, line.splitlines() or [""])
    command = None
    try:
        if not first:
            return Answer(first)
        if "\0" in line:  # no name has one, and the host's calls refuse it with an error that is not ours
            raise UsageError("a command holds no character NUL")
        first = session.scripting.expanded(first)
        own = session.scripting.lines_of(first)
        if own is not None:
            return Answer(first, COMMANDS["source"], _grouped(own))
        command, rest = look_up(first)
        if command.live and session.post_mortem:
            raise UsageError(NOT_LIVE)
        if not command.keeps_listing:
            session.forget_listing()
        if command.block:
            block = _block(block)
            if command.name != "define":  # what a command of one's own says may be made later
                for each in filter(None, block):
                    look_up(session.scripting.expanded(each))
            rest = "\n".join([rest, *filter(None, block)])
        value = command.run(session, rest)
        if isinstance(value, Lines):
            value = _grouped(value)
        stops = isinstance(value, Stop | Moved) or command.name in ("display", "set")
        return Answer(first, command, value, None, _displays(session, value) if stops else ())
    except NeuronError as error:
        return Answer(first, command, error=error)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Answer(first, command, error=FormatError(f"cannot be written ({reason})", path=str(error.filename)))
