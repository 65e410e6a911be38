"""What a person has made in a session: expressions shown at every stop, commands of their own, other names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from formats.errors import FormatError, NotFoundError
from neurontools.command.files import read_text
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Defined, Display, Lines

__all__ = ["LARGEST", "MOST_LINES", "Scripting", "read_lines"]

MOST_LINES = 10_000  # of scripts and commands of one's own that one line may set off
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_DEEPEST = 20  # names that stand for names
LARGEST = 1 << 20  # bytes of a file of commands


class Scripting:
    """Displays, definitions and aliases of one session."""

    def __init__(self) -> None:
        self._displays: dict[int, Display] = {}
        self._last = 0
        self._defined: dict[str, tuple[str, ...]] = {}
        self._aliases: dict[str, str] = {}

    # --- displays ----------------------------------------------------------------------------------------------------

    @property
    def displays(self) -> tuple[Display, ...]:
        """Return what is shown at every stop."""
        return tuple(self._displays.values())

    def display(self, expression: str, base: str = "") -> Display:
        """Show an expression at every stop from now on."""
        self._last += 1
        made = self._displays[self._last] = Display(self._last, expression, base)
        return made

    def undisplay(self, *numbers: int) -> tuple[Display, ...]:
        """Show some no longer, all without a number, and return them."""
        missing = [str(number) for number in numbers if number not in self._displays]
        if missing:
            raise NotFoundError(f"no display {', '.join(missing)}")
        return tuple(self._displays.pop(number) for number in numbers or tuple(self._displays))

    # --- names -------------------------------------------------------------------------------------------------------

    def define(self, name: str, lines: Sequence[str]) -> Defined:
        """Make a command of lines; no lines take it away."""
        self._need_name(name)
        self._defined.pop(name, None)
        self._aliases.pop(name, None)
        if lines:
            self._defined[name] = tuple(lines)
        return Defined(name, tuple(lines))

    def alias(self, name: str, line: str) -> Defined:
        """Make a name stand for the beginning of a line."""
        self._need_name(name)
        self._defined.pop(name, None)
        self._aliases[name] = line
        return Defined(name, (line,))

    @staticmethod
    def _need_name(name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a command: use letters, digits, _ and -")

    @property
    def names(self) -> tuple[Defined, ...]:
        """Return commands and names that were made here."""
        own = {**self._defined, **{name: (line,) for name, line in self._aliases.items()}}
        return tuple(Defined(name, own[name]) for name in sorted(own))

    def expanded(self, line: str) -> str:
        """Return a line with what its first word stands for in the place of it."""
        for _ in range(_DEEPEST):
            word, rest = _split(line)
            if word not in self._aliases:
                return line
            line = self._aliases[word] + rest
        raise UsageError(f"{line.split()[0]!r} is a name for itself")

    def is_own(self, line: str) -> bool:
        """Return whether a line begins with a command that was made here."""
        return _split(line)[0] in self._defined

    def lines_of(self, line: str) -> Lines | None:
        """Return the lines of a command that was made here, None for any other; $arg0, $arg1 are its words."""
        word, rest = _split(line)
        body = self._defined.get(word)
        if body is None:
            return None
        words = rest.split()

        def argument(found: re.Match[str]) -> str:
            number = int(found[1])
            if number >= len(words):
                raise UsageError(f"{word} takes {number + 1} words or more, not {len(words)}")
            return words[number]

        return Lines(word, tuple(re.sub(r"\$arg(\d)", argument, one) for one in body))


def _split(line: str) -> tuple[str, str]:
    found = _NAME.match(line.lstrip())
    return ("", line) if found is None else (found[0], line.lstrip()[found.end() :])


def read_lines(path: Path) -> tuple[str, ...]:
    """Return the lines of a file of commands; FormatError where it cannot be read."""
    try:
        return tuple(read_text(path, LARGEST).splitlines())
    except OSError as error:
        raise FormatError(f"cannot be read ({(error.strerror or str(error)).lower()})", path=str(path)) from None
