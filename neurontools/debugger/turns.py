"""Turns of the loops that run on the device: how often a branch led back to a loop's first word since it was entered.

A trace has the body of such a loop once, so that no variable of the kernel tells its turns apart; the events do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from formats.isa import CompareBranch
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD

if TYPE_CHECKING:
    from emulator.loaded import LoadedWord
    from formats.neff import SourceLocation
    from neurontools.debugger.event_log import EventLog

__all__ = ["DeviceLoop", "DeviceTurns", "device_loops", "places_of"]

Location = tuple[int, str, int]  # core, engine, pc

_OUT = -1  # the engine is not in the loop
_UNKNOWN = -2  # it is, and the events begin after it came there


class DeviceLoop(NamedTuple):
    """The words from a branch's target to the branch, the last one of those that lead there.

    `file` and `line` are where the kernel has the loop.
    """

    first: int
    last: int
    file: str | None = None
    line: int | None = None


def device_loops(
    words: Sequence[LoadedWord], source_of: Callable[[int], SourceLocation | None]
) -> tuple[DeviceLoop, ...]:
    """Return the loops of an engine's words, outer ones first: a branch backwards ends one."""
    slots = {loaded.slot: loaded.pc for loaded in words}
    ends: dict[int, int] = {}
    for loaded in words:
        first = _target(loaded, slots)
        if first is not None and first <= loaded.pc:
            ends[first] = loaded.pc
    found = []
    for first, last in ends.items():
        source = source_of(last)
        file, line = (None, None) if source is None else (source.file, source.line)
        found.append(DeviceLoop(first, last, file, line))
    return tuple(sorted(found, key=lambda loop: (loop.first, -loop.last)))


def _target(loaded: LoadedWord, slots: Mapping[int, int]) -> int | None:
    word = loaded.word
    if not isinstance(word, CompareBranch):
        return None
    ahead, odd = divmod(int(word.target), WORD)
    return None if odd else slots.get(loaded.slot + ahead)


class _Counted:
    """The turns of one loop: numbers of events, and what the turn is from behind each of them on."""

    def __init__(self, loop: DeviceLoop) -> None:
        self.loop = loop
        self.numbers: list[int] = []
        self.turns: list[int] = []

    def take(self, number: int, pc: int, known: bool) -> None:
        now = self.turns[-1] if self.turns else _OUT if known else _UNKNOWN
        loop = self.loop
        if not loop.first <= pc <= loop.last:
            after = _OUT
        elif now == _OUT:
            after = 0
        else:
            after = now + (pc == loop.first and now != _UNKNOWN)
        if after != now or not self.turns:
            self.numbers.append(number)
            self.turns.append(after)

    def turn(self, number: int, pc: int, known: bool) -> int | None:
        place = bisect_left(self.numbers, number)
        now = self.turns[place - 1] if place else _OUT if known else _UNKNOWN
        if now == _UNKNOWN:
            return None
        return 0 if now == _OUT else now + (pc == self.loop.first)


class DeviceTurns:
    """The turns of a program's device loops, brought up to date, or back, when they are asked for."""

    def __init__(
        self,
        streams: Callable[[], Iterable[tuple[int, str, list[LoadedWord]]]],
        source: Callable[[int, str, int], SourceLocation | None],
    ) -> None:
        self._streams, self._source = streams, source
        self.log: EventLog | None = None
        self._loops: dict[tuple[int, str], tuple[_Counted, ...]] | None = None
        self._taken = 0

    def at(self, location: Location, before: int | None = None) -> tuple[tuple[DeviceLoop, int | None], ...]:
        """Return the device loops around a word, outer ones first, and the turn that it belongs to.

        The word is the next one of its engine after the events with a number below `before`, all without one. A turn
        is None where no event tells it: no events are kept, they begin inside the loop, or `before` is -1.
        """
        self._follow()
        core, engine, pc = location
        assert self._loops is not None
        own = self._loops.get((core, engine), ())
        if not own:
            return ()
        first = self._first()
        number = before if before is not None else first[1]
        return tuple(
            (each.loop, None if self.log is None or number < 0 else each.turn(number, pc, first[0]))
            for each in own
            if each.loop.first <= pc <= each.loop.last
        )

    def _first(self) -> tuple[bool, int]:
        """Return whether the events are kept from the first on, and a number behind that of the last."""
        log = () if self.log is None else self.log.log
        return (not log or log[0].number == 0), (log[-1].number + 1 if log else 0)

    def _follow(self) -> None:
        if self._loops is None:
            loops = {
                (core, engine): tuple(map(_Counted, device_loops(words, partial(self._source, core, engine))))
                for core, engine, words in self._streams()
            }
            self._loops = {key: own for key, own in loops.items() if own}
        if not self._loops or self.log is None:
            return
        log = self.log.log
        known, behind = self._first()
        if len(log) < self._taken:
            self._cut(behind, (each for own in self._loops.values() for each in own))
            self._taken = len(log)
        for entry in log[self._taken :]:
            if entry.kind in ("instruction", "barrier"):
                for each in self._loops.get((entry.core, entry.engine), ()):
                    each.take(entry.number, entry.pc, known)
        self._taken = len(log)

    @staticmethod
    def _cut(behind: int, counted: Iterable[_Counted]) -> None:
        """Forget what went back in time has not happened yet."""
        for each in counted:
            keep = bisect_left(each.numbers, behind)
            del each.numbers[keep:], each.turns[keep:]


def places_of(turns: Iterable[tuple[DeviceLoop, int | None]]) -> dict[tuple[str, int], int | None]:
    """Return the turns by where the kernel has their loops."""
    return {(loop.file, loop.line): turn for loop, turn in turns if loop.file is not None and loop.line is not None}
