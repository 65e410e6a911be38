"""The arguments of commands as values; UsageError says what would make sense."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import parse_core, parse_number

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["alone", "core_and_words", "count_of", "engine_of", "needed", "numbers_of", "place_and_condition"]

Result = TypeVar("Result")

_IF = re.compile(r"(?:^|\s+)if\b\s*(.*)$", re.DOTALL)


def alone(name: str, do: Callable[[Session], Result]) -> Callable[[Session, str], Result]:
    """Return a command that takes no argument."""

    def run(session: Session, rest: str) -> Result:
        if rest:
            raise UsageError(f"{name} takes no argument")
        return do(session)

    return run


def needed(rest: str, what: str) -> str:
    """Return an argument; UsageError names what it should have been where there is none."""
    if not rest:
        raise UsageError(f"missing argument: {what}")
    return rest


def count_of(rest: str) -> int:
    """Return a repeat count, 1 without any."""
    return parse_number(rest, "a count") if rest else 1


def numbers_of(rest: str) -> list[int]:
    """Return the numbers of breakpoints in a list."""
    return [parse_number(word, "the number of a breakpoint") for word in rest.replace(",", " ").split()]


def core_and_words(rest: str) -> tuple[int | None, list[str]]:
    """Return the core of "nc1 …", None without any, and the words after it."""
    core, words = parse_core(rest)
    return core, words.split()


def engine_of(rest: str) -> tuple[str | None, int | None]:
    """Return engine and core of "[ncN] [ENGINE]", None for what is missing."""
    core, engine = parse_core(rest)
    return engine or None, core


def place_and_condition(rest: str, what: str) -> tuple[str, str | None]:
    """Return place and condition of "PLACE if CONDITION"; `what` names the places there are."""
    found = _IF.search(rest)
    place, test = (rest, None) if found is None else (rest[: found.start()], found[1].strip())
    if not place.strip():
        raise UsageError(f"missing argument: {what}")
    if test == "":
        raise UsageError('missing condition after "if", such as S[5] >= 3')
    return place.strip(), test
