"""One line of the debugger's language, carried out for a screen: lines to show instead of lines printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import NeuronError

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["Done", "carry_out", "is_block", "only_looks"]

# Commands that may be carried out between two completions of a run; every other one waits until it has stopped.
_LOOKING = frozenset((
    "info", "x", "print", "list", "disassemble", "focus", "break", "tbreak", "watch", "rwatch", "awatch", "catch",
    "condition", "ignore", "commands", "delete", "enable", "disable", "why", "when", "mark", "last-write", "state",
    "help", "export",
))  # fmt: skip


def is_block(text: str) -> bool:
    """Tell whether a line opens a block of lines that `end` closes."""
    from neurontools.debug_commands import look_up

    try:
        return look_up(text)[0].name == "commands"
    except NeuronError:
        return False


def only_looks(text: str) -> bool:
    """Tell whether a line may be carried out while another one moves the device."""
    from neurontools.debug_commands import look_up

    try:
        return look_up(text)[0].name in _LOOKING
    except NeuronError:
        return True  # it fails at once


class Done(NamedTuple):
    """What became of a line: `value` is the result, `name` the command; `error` is why it failed, "" where it did not.

    `lines` may carry the escapes of bold text.
    """

    text: str
    name: str
    value: Any
    lines: tuple[str, ...]
    error: str = ""
    quiet: bool = False

    @property
    def reason(self) -> str:
        """Return why a command that moves the device ended, "" of others."""
        return str(getattr(self.value, "reason", ""))


def carry_out(session: Session, text: str, quiet: bool = False) -> Done:
    """Carry out one line, or a block; what a person did wrong becomes one line of `error`."""
    from neurontools import debug_breaking
    from neurontools.debug_commands import look_up
    from neurontools.errors_to_exit import classify
    from neurontools.render.session import text_of
    from neurontools.repl import without_comment

    first, *more = text.splitlines() or [""]
    line = without_comment(first)
    if not line:
        return Done(line, "", None, (), "", quiet)
    name = ""
    try:
        command, rest = look_up(line)
        name = command.name
        if name not in ("list", "info", "print", "help"):
            session.forget_listing()
        if name == "commands":
            block = [each for each in map(without_comment, more) if each and each != "end"]
            for each in block:
                look_up(each)
            value = debug_breaking.commands(session, rest, block)
        else:
            value = command.run(session, rest)
        lines = tuple(text_of(value))
    except NeuronError as error:
        return Done(line, name, None, (), classify(error).message, quiet)
    except OSError as error:
        return Done(line, name, None, (), f"{error.filename}: {(error.strerror or str(error)).lower()}", quiet)
    if not lines and name in ("info", "delete", "enable", "disable"):
        lines = ("none",)
    return Done(line, name, value, lines, "", quiet)
