"""The debugger's commands that set stops: break, watch, catch, condition, ignore, commands, enable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["break_at", "catch", "commands", "condition", "count_of", "enable", "ignore", "numbers_of", "usage", "watch"]

_IF = re.compile(r"(?:^|\s+)if\b\s*(.*)$", re.DOTALL)


def usage(message: str) -> Exception:
    """Return the error of a command whose argument makes no sense."""
    from emulator.session import UsageError

    return UsageError(message)


def number_of(text: str, what: str) -> int:
    """Return a number; UsageError names what it should have been."""
    try:
        return int(text, 0)
    except ValueError:
        raise usage(f"{text!r} is not {what}") from None


def count_of(rest: str) -> int:
    """Return a repeat count, 1 without any."""
    return number_of(rest, "a count") if rest else 1


def numbers_of(rest: str) -> list[int]:
    """Return the numbers of breakpoints in a list."""
    return [number_of(word, "the number of a breakpoint") for word in rest.replace(",", " ").split()]


def _split(rest: str, what: str) -> tuple[str, str | None]:
    """Return place and condition of "PLACE if CONDITION"."""
    found = _IF.search(rest)
    place, test = (rest, None) if found is None else (rest[: found.start()], found[1].strip())
    if not place.strip() or test == "":
        raise usage(f"what? {what}" if not place.strip() else "if what? a condition such as S[5] >= 3")
    return place.strip(), test


def break_at(session: Session, rest: str, what: str, temporary: bool = False) -> Any:
    """Set a breakpoint."""
    place, test = _split(rest, what)
    return session.break_at(place, temporary, test)


def watch(session: Session, rest: str, what: str, kind: str = "write") -> Any:
    """Set a watchpoint."""
    place, test = _split(rest, what)
    return session.watch(place, kind, test)


def catch(session: Session, rest: str, what: str) -> Any:
    """Set a catchpoint."""
    event, test = _split(rest, what)
    return session.catch(event, test)


def condition(session: Session, rest: str) -> Any:
    """Give a breakpoint a condition, or take it off."""
    number, _, text = rest.partition(" ")
    if not number:
        raise usage("condition NUMBER [CONDITION]")
    return session.condition(number_of(number, "the number of a breakpoint"), text.strip() or None)


def ignore(session: Session, rest: str) -> Any:
    """Let a breakpoint be met some times before it stops."""
    words = rest.split()
    if len(words) != 2:
        raise usage("ignore NUMBER COUNT")
    return session.ignore(number_of(words[0], "the number of a breakpoint"), number_of(words[1], "a count"))


def commands(session: Session, rest: str, lines: list[str]) -> Any:
    """Note the lines to carry out where a breakpoint stops: of a number, else of the breakpoint set last."""
    known = session.breakpoints
    if not rest and not known:
        raise usage("commands of what? there is no breakpoint")
    number = number_of(rest, "the number of a breakpoint") if rest else known[-1].number
    return session.set_commands(number, lines)


def enable(session: Session, rest: str) -> Any:
    """Enable breakpoints; "once" and "delete" in front say what a hit does to them."""
    word, _, more = rest.partition(" ")
    if word in ("once", "delete"):
        return session.enable(*numbers_of(more), once=word == "once", delete=word == "delete")
    return session.enable(*numbers_of(rest))
