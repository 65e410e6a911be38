"""What a command is: its words, what it takes, what it gives, and how that is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["AnyCommand", "Command", "Words", "no_words"]

Result = TypeVar("Result")
# What the next word of a line may be, given the words of its argument so far.
Words = Callable[["Session", "list[str]"], Iterable[str]]


def no_words(session: Session, words: list[str]) -> Iterable[str]:
    """Return no word: the argument is free text, or there is none."""
    return ()


@dataclass(frozen=True)
class Command(Generic[Result]):
    """One command of the debugger.

    `run` takes the session and the rest of the line, and returns a `result`; `view` gives its lines, `nothing` stands
    where there are none. `arguments` and `summary` are a line of help, `details` what `help NAME` adds; `words`
    completes. A `live` command needs a program that runs, not a core dump; one that `moves` waits while another one
    is moving the device. An empty line `repeats` the "line" or only the "name". `block` takes lines up to `end`;
    `keeps_listing` lets `list` go on where it was. A command of `topics` only chooses one of them.
    """

    name: str
    arguments: str
    summary: str
    run: Callable[[Session, str], Result]
    result: type[Result]
    view: Callable[[Result], Iterable[str]]
    aliases: tuple[str, ...] = ()
    words: Words = no_words
    details: str = ""
    live: bool = False
    moves: bool = False
    repeats: str = ""
    block: bool = False
    keeps_listing: bool = False
    nothing: str = ""
    topics: tuple[AnyCommand, ...] = ()

    @property
    def word(self) -> str:
        """Return the first word of the name: "info" of "info engines"."""
        return self.name.partition(" ")[0]

    def lines(self, value: Result) -> list[str]:
        """Return the lines of a result."""
        found = [] if value == () else list(self.view(value))
        return found or ([self.nothing] if self.nothing else [])


AnyCommand = Command[Any]
