"""What the next word of a command may be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from formats.engines import ENGINES, short_engine
from neurontools.debugger.breakpoint import CATCHES

if TYPE_CHECKING:
    from neurontools.debugger.commands.command import Words
    from neurontools.debugger.session import Session

__all__ = ["breakpoint_numbers", "engines", "events", "marks", "one_of", "places", "tensors"]

_ENGINES = tuple(map(short_engine, ENGINES))


def one_of(*choices: str) -> Words:
    """Return what completes a choice of words."""
    return lambda session, words: choices


def tensors(session: Session, words: list[str]) -> Iterable[str]:
    """Return the tensors and tiles of the focus core."""
    return (*session.tensors.names(session.focus()[0]), *operations(session, words))


def operations(session: Session, words: list[str]) -> Iterable[str]:
    """Return the operations of the graph of the focus core."""
    found = session.program.graphs.of(session.focus()[0])
    return () if found is None else (f"%{name}" for name in found.by_name)


def engines(session: Session, words: list[str]) -> Iterable[str]:
    """Return engines and cores."""
    return (*_ENGINES, *(f"nc{core.index}" for core in session.device.cores))


def _queues(session: Session) -> Iterable[str]:
    return (queue.name for queue in session.device.queues)


def places(session: Session, words: list[str]) -> Iterable[str]:
    """Return engines, queues, source lines and functions."""
    lines = (f"{Path(file).name}:{line}" for file, found in session.program.lines.items() for line in found)
    return (*_ENGINES, *_queues(session), *lines, *session.program.functions, *operations(session, words))


def events(session: Session, words: list[str]) -> Iterable[str]:
    """Return what `catch` takes."""
    return (*CATCHES, *_queues(session))


def marks(session: Session, words: list[str]) -> Iterable[str]:
    """Return the marks, and the ends of the program."""
    return (*(mark.name for mark in session.when().marks), "start", "end")


def breakpoint_numbers(session: Session, words: list[str]) -> Iterable[str]:
    """Return the numbers of the breakpoints."""
    return (str(each.number) for each in session.breakpoints)
