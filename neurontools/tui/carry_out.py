"""Running one line of the debugger's language for a screen: lines to show instead of lines printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["Done", "carry_out", "only_looks", "repeats"]


def only_looks(session: Session, text: str) -> bool:
    """Return whether a line may run while another one moves the device."""
    from neurontools.debugger.commands.table import look_up  # deferred: start-up

    try:
        line = session.scripting.expanded(text)
        # A command that the person made may set off anything.
        return not (session.scripting.is_own(line) or look_up(line)[0].moves)
    except NeuronError:
        return True  # it fails at once


def repeats(session: Session, text: str) -> bool:
    """Return whether an empty line repeats a line."""
    from neurontools.debugger.commands.table import look_up  # deferred: start-up

    try:
        return look_up(session.scripting.expanded(text))[0].repeats == "line"
    except NeuronError:
        return False


class Done(NamedTuple):
    """What came of a line: `value` is the result, `name` the command; `error` is why it failed, "" where it did not.

    `lines` may carry the escapes of bold text; `reason` is why a command that moves the device ended, `stopped_at` the
    breakpoints that it met, `follow` the lines that it sets off.
    """

    text: str
    name: str
    value: object
    lines: tuple[str, ...]
    error: str = ""
    quiet: bool = False
    reason: str = ""
    stopped_at: tuple[int, ...] = ()
    follow: tuple[str, ...] = ()


def carry_out(session: Session, text: str, quiet: bool = False) -> Done:
    """Run one line, or a block; a mistake in it becomes one line of `error`."""
    from neurontools.command.errors_to_exit import classify  # deferred: start-up
    from neurontools.debugger.commands import carry_out as commands  # deferred: start-up

    answer = commands.carry_out(session, text)
    error = "" if answer.error is None else classify(answer.error).message
    return Done(answer.text, answer.name, answer.value, tuple(answer.lines), error, quiet, answer.reason,
                answer.stopped_at, answer.follow)  # fmt: skip
