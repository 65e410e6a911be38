"""The commands that change something: set, display, source; and find, which looks for values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from neurontools.debugger.commands.arguments import needed, numbers_of
from neurontools.debugger.commands.command import AnyCommand, Command
from neurontools.debugger.commands.completion import tensors
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Computed, Display, Edited, Found, Lines, TensorValue
from neurontools.debugger.view_memory import (
    display_lines,
    edited_lines,
    found_lines,
    script_lines,
)

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["WRITING", "base_and_rest", "shown"]

_BASES = "xduotf"
_FORMAT = re.compile(r"/(\S+)\s*(.*)", re.DOTALL)


def base_and_rest(rest: str) -> tuple[str, str]:
    """Return the letter of "/x EXPRESSION", "" without one, and the expression."""
    found = _FORMAT.fullmatch(rest)
    if found is None:
        return "", rest.strip()
    if found[1] not in _BASES or len(found[1]) != 1:
        raise UsageError(f"/{found[1]} is no format of print: /{' /'.join(_BASES)}")
    return found[1], found[2].strip()


def shown(session: Session, rest: str) -> TensorValue | Computed:
    """Return what print shows of "[/FORMAT] EXPRESSION"."""
    base, text = base_and_rest(rest)
    return session.evaluate(
        needed(text, "print TENSOR, TENSOR[slice], S[6] or an expression such as max(abs(a - b))"), base
    )


def _find(session: Session, rest: str) -> Found:
    found = _FORMAT.fullmatch(rest)
    text, format = (found[2], found[1]) if found is not None else (rest, "")
    return session.find(needed(text, "find PLACE, VALUE…"), format)


def _display(session: Session, rest: str) -> tuple[Display, ...]:
    if not rest:
        return session.scripting.displays
    base, text = base_and_rest(rest)
    session.evaluate(needed(text, "display EXPRESSION"), base)
    return (session.scripting.display(text, base),)


def _source(session: Session, rest: str) -> Lines:
    return session.script(Path(needed(rest, "a file of commands")))


WRITING: tuple[AnyCommand, ...] = (
    Command("set", "PLACE = EXPRESSION", "change a semaphore, an event, a register, bytes or a tensor",
            lambda session, rest: session.set(rest), Edited, edited_lines, words=tensors, live=True, moves=True,
            details="set S[8] = 16, set E[3] = 0, set PE.R[5] = 0x10, set t[0, 0:4] = 1.5, set 0:0x4000/w = 7.\n"
            "The journal notes it as an event of its own: reverse-step takes it back; going back past it forgets it."),
    Command("find", "[/FORMAT] PLACE, [+BYTES,] VALUE…", "look for values that follow each other in a tensor, a memory "
            "or a range", _find, Found, found_lines, words=tensors, keeps_listing=True,
            details="find x, 1.5; find sbuf, 0x7f; find /h 0:0x4000, +64, 3, 4; find hbm, nan is no number: "
            "use isnan in print.\nThe format is a count of places at most and an element type, as x takes it."),
    Command("display", "[[/FORMAT] EXPRESSION]", "show an expression now and at every stop", _display,
            tuple[Display, ...], display_lines, words=tensors, keeps_listing=True, nothing="no displays"),
    Command("undisplay", "[NUMBER…]", "show expressions at stops no longer, all without a number",
            lambda session, rest: session.scripting.undisplay(*numbers_of(rest)), tuple[Display, ...], display_lines,
            nothing="no displays"),
    Command("source", "FILE", "run the commands in a file", _source, Lines, script_lines, moves=True),
)  # fmt: skip
