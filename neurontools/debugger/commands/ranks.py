"""The commands over ranks: `rank`, `info ranks`; and which ranks a breakpoint is of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from formats.errors import NeuronError, NotFoundError
from neurontools.debugger.breakpoint import Breakpoint
from neurontools.debugger.commands.command import Command
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import parse_number
from neurontools.debugger.rank_results import RankRow
from neurontools.debugger.results import State
from neurontools.debugger.view import state_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neurontools.debugger.session import Session

__all__ = ["RANK", "everywhere", "on_every_rank", "rank_rows"]

Changed = TypeVar("Changed")
_RANK = re.compile(r"\s+rank\s+(\S+)(?=\s+if\b|\s*$)")


def _rank(session: Session, rest: str) -> State:
    among = session.among
    if among is None:
        if rest:
            raise UsageError("one program runs here alone; `neurontools debug FILE --ranks 2` opens a session of two")
        return session.state()
    if rest:
        among.select(parse_number(rest, "the number of a rank"))
    found: State = among.sessions[among.selected].state()
    return found


def rank_rows(session: Session) -> tuple[RankRow, ...]:
    """Return every rank; none where one program runs alone."""
    return () if session.among is None else session.among.rows()


def everywhere(
    set_one: Callable[[Session, str], Breakpoint],
) -> Callable[[Session, str], Breakpoint]:
    """Return a command that sets a breakpoint on all ranks, or on that of `rank N` behind its place.

    Ranks whose program does not have the place are left out; where none has, the error is that of the first.
    """

    def run(session: Session, rest: str) -> Breakpoint:
        among = session.among
        if among is None:
            return set_one(session, rest)
        found = _RANK.search(rest)
        only = None if found is None else parse_number(found[1], "the number of a rank")
        if only is not None and only not in among.sessions:
            raise NotFoundError(f"no rank {only} that runs a program; there are "
                                f"{', '.join(map(str, among.sessions))}")  # fmt: skip
        line = rest if found is None else rest[: found.start()] + rest[found.end() :]
        made: dict[int, Breakpoint] = {}
        errors: list[NeuronError] = []
        for rank, each in among.sessions.items():
            if only in (None, rank):
                try:
                    made[rank] = set_one(each, line)
                except NeuronError as error:
                    errors.append(error)
        if not made:
            raise errors[0]
        first = next(iter(made.values()))
        for rank, each in among.sessions.items():
            if rank not in made:
                # Numbers stay the same on all ranks, so that `delete 3` means one thing.
                each.breakpoints.adopt(first)
            each.breakpoints.get(first.number).ranks = tuple(made)
        return first

    return run


def on_every_rank(change: Callable[[Session, str], Changed]) -> Callable[[Session, str], Changed]:
    """Return a command that changes breakpoints by number: they have the same numbers on all ranks."""

    def run(session: Session, rest: str) -> Changed:
        if session.among is None:
            return change(session, rest)
        results = [change(each, rest) for each in session.among.sessions.values()]
        return results[0]

    return run


def _ranks(session: Session, words: list[str]) -> Iterable[str]:
    return () if session.among is None or words else map(str, session.among.sessions)


RANK = Command("rank", "[N]", "let commands go to another rank, with --ranks; alone: show which", _rank, State,
               state_lines, words=_ranks, live=True,
               details="info ranks shows all of them. A breakpoint is on every rank, break WHERE rank N on one;\n"
               "moving a rank moves the others along, and a stop of another one selects that.")  # fmt: skip
