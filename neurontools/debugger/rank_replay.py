"""Ranks taken to any place in time: they begin again and run, all in one order of events, up to there.

The order is that of time, and of ranks where times are equal.  A place in it is how many events each rank has had
(`Counts`); where nothing but the debugger moved them, that order is the same whichever rank was stepped, so a place is
met again exactly.  A hang is the last thing of a rank, whatever its time: it is found when nothing else moves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from formats.named_tuple import NamedTuple
from neurontools.debugger.execution import key_of
from neurontools.debugger.interrupt import Flag

if TYPE_CHECKING:
    from emulator.journal import Entry, Journal
    from emulator.journal.journal import Edit
    from emulator.machine.ranks.machine import RankedMachine
    from neurontools.debugger.breakpoint import Breakpoint
    from neurontools.debugger.rank_results import RanksWaiting
    from neurontools.debugger.session import Session

__all__ = ["Counts", "Hit", "RankReplay", "Together"]

Counts = Mapping[int, int]
_EVERY = 64  # things done between two looks at whether to stop


class Hit(NamedTuple):
    """A place where breakpoints stop: those before what a rank completes next, those after what it has completed."""

    counts: Counts
    rank: int
    before: tuple[Breakpoint, ...]
    after: tuple[Breakpoint, ...]


class Together(Protocol):
    """The ranks of a machine, as what goes back knows them."""

    machine: RankedMachine
    sessions: dict[int, Session]
    selected: int
    replay: RankReplay

    def restart(self) -> None:
        """Begin again on a fresh machine."""

    def moving(self, moves: bool) -> AbstractContextManager[None]:
        """Let other ranks move, or stand, when one is moved or looked at."""

    def still_running(self) -> Session | None:
        """Return the session of a rank that has not ended."""

    def agree(self, numbers: tuple[int, ...]) -> None:
        """Let what happened to breakpoints of one rank happen on all."""

    def waiting(self) -> RanksWaiting:
        """Return which ranks wait for each other, and why."""


class RankReplay:
    """Takes all ranks back and forth; `marks` are named places."""

    def __init__(self, ranks: Together) -> None:
        self._ranks = ranks
        self.marks: dict[str, Counts] = {}

    def journal(self, rank: int) -> Journal:
        """Return the journal of a rank; UsageError where none is kept."""
        return self._ranks.sessions[rank].need_live().journal

    def counts(self) -> dict[int, int]:
        """Return the place where the ranks stand: what has been reported of each."""
        return {rank: self.journal(rank).count_before(each.events) for rank, each in self._ranks.sessions.items()}

    def cut(self, rank: int, position: int) -> dict[int, int]:
        """Return the place before an event that a rank has had, by its position, or that of the rank's end."""
        log, here = self.journal(rank).log, self.counts()
        if position >= here[rank]:
            return here
        entry = log[position]
        found = {other: min(here[other], _before(self.journal(other), entry, other < rank)) for other in here}
        found[rank] = position
        return found

    def until(self, time_ps: int) -> dict[int, int]:
        """Return the place where everything up to a time, and no hang, has happened."""
        here = self.counts()
        return {rank: min(here[rank], _until(self.journal(rank), time_ps)) for rank in here}

    def start(self) -> dict[int, int]:
        """Return the beginning."""
        return dict.fromkeys(self._ranks.sessions, 0)

    # --- going there -------------------------------------------------------------------------------------------------

    def go_to(self, goal: Counts, flag: Flag, hits: list[Hit] | None = None) -> bool:
        """Take all ranks to a place; return whether they got there, or were stopped at another one on the way.

        Where that is behind some, all begin again. Breakpoints that are met go to `hits`, and are not counted.
        """
        ranks, here = self._ranks, self.counts()
        edits: dict[int, dict[int, Edit]] = {rank: {} for rank in here}
        if any(here[rank] > goal[rank] for rank in here):
            for rank in here:
                journal = self.journal(rank)
                places = ((journal.count_before(edit.number), edit) for edit in journal.edits)
                edits[rank] = {at: edit for at, edit in places if at < goal[rank]}
            ranks.restart()
        with ranks.moving(False):
            return self._run(goal, flag, edits, hits)

    def forward(self, flag: Flag, rank: int, number: int | None, time_ps: int | None) -> bool:
        """Run past breakpoints: until a rank has had an event, up to a time, or to the end; return as `go_to`."""
        goal = dict.fromkeys(self._ranks.sessions, 1 << 62)
        session = self._ranks.sessions[rank]

        def enough(due: int | None) -> bool:
            if number is not None:
                return session.events > number
            return time_ps is not None and (due is None or due > time_ps)

        with self._ranks.moving(False):
            return self._run(goal, flag, {}, None, enough)

    def _run(self, goal: Counts, flag: Flag, edits: Mapping[int, dict[int, Edit]], hits: list[Hit] | None,
             enough: Callable[[int | None], bool] = lambda due: False) -> bool:  # fmt: skip
        ranks, done = self._ranks, self.counts()
        turns = 0
        while True:
            turns += 1
            if turns % _EVERY == 0 and flag.raised:
                return False
            if all(done[each] >= goal[each] for each in done):
                return True
            if self._edit(goal, done, edits):
                continue
            rank, due = self._next(goal, done)
            if enough(due):
                return True
            if rank is None:
                engine = ranks.machine.engine
                if engine.next_ps is not None:
                    engine.step()
                    continue
                if not self._settle(goal, done):
                    return True
                continue
            self._go_on(rank, goal, done, hits)

    def _next(self, goal: Counts, done: Counts) -> tuple[int | None, int | None]:
        """Return the rank of what is due next, None where CC-cores come first or nothing of a rank is due; and when."""
        machine = self._ranks.machine
        found: tuple[int, int] | None = None
        for device in machine.devices:
            rank = device.rank
            if rank not in done:
                continue
            # A rank that is to complete nothing more still does what lies between its completions, in its turn.
            held = done[rank] >= goal[rank]
            if device.unreported and not held:
                return rank, device.now_ps
            if held and (device.unreported or device.completes_next() is not None):
                continue
            due = device.next_ps
            if due is not None and (found is None or (due, rank) < found):
                found = due, rank
        carried = machine.engine.next_ps
        if found is None:
            return None, carried
        return (None, carried) if carried is not None and carried <= found[0] else (found[1], found[0])

    def _go_on(self, rank: int, goal: Counts, done: dict[int, int], hits: list[Hit] | None) -> None:
        """Carry out what is due next on a rank."""
        device, session = self._ranks.machine.devices[rank], self._ranks.sessions[rank]
        execution, stops = session.need_live(), session.navigator.stops
        due = device.completes_next()
        if hits is not None and due is not None:
            before = stops.met_before(key_of(due[1]), due[0], execution.events)
            if before:
                hits.append(Hit(dict(done), rank, before, ()))
        for event in device.go_on(goal[rank] - done[rank]):
            execution.events, execution.time_ps = event.number + 1, event.time_ps
            done[rank] += 1
            after = () if hits is None else stops.met_after(stops.happened(event))
            if hits is not None and after:
                hits.append(Hit(dict(done), rank, (), after))

    def _edit(self, goal: Counts, done: dict[int, int], edits: Mapping[int, dict[int, Edit]]) -> bool:
        """Change again what a person changed at this place; return whether there was something."""
        for rank, mine in edits.items():
            edit = mine.pop(done[rank], None) if done[rank] < goal[rank] else None
            if edit is not None:
                execution = self._ranks.sessions[rank].need_live()
                entry = execution.journal.edit(edit.change, edit.regions, edit.core, edit.engine, edit.text)
                execution.events, execution.time_ps = entry.number + 1, entry.time_ps
                done[rank] += 1
                return True
        return False

    def _settle(self, goal: Counts, done: dict[int, int]) -> bool:
        """Let the first rank that is to have more events see that nothing moves; return whether that gave one."""
        for device in self._ranks.machine.devices:
            if device.rank in done and done[device.rank] < goal[device.rank]:
                device.settle()
                if device.unreported:
                    self._go_on(device.rank, goal, done, None)
                    return True
        return False


def _key(entry: Entry) -> int:
    return 1 << 62 if entry.kind == "hang" else entry.time_ps


def _before(journal: Journal, entry: Entry, with_it: bool) -> int:
    """Return how many events of another rank come before one: at its time too where that rank goes first."""
    return (bisect_right if with_it else bisect_left)(journal.log, _key(entry), key=_key)


def _until(journal: Journal, time_ps: int) -> int:
    return bisect_right(journal.log, time_ps, key=_key)
