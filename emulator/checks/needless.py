"""Waits for what an engine knows already, by the vector clocks: without them every schedule is as it is."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter

from emulator.checks.clocks import Clocks, Key, Raise, WaitPlace
from emulator.checks.finding import Finding, Site
from emulator.checks.history import Clock
from emulator.checks.kinds import KINDS
from emulator.checks.place import site_of
from emulator.device import Device
from emulator.diagnosis.index import signals_at
from emulator.loaded import LoadedWord
from emulator.sequencer import Sequencer
from formats.isa import Awaited, Instruction, WaitMode
from formats.isa.signals import BARRIER, SECOND_SLOT
from formats.named_tuple import NamedTuple

__all__ = ["NeedlessWaits"]

_PATIENCE = 4096  # words of an engine that taught it something, kept to name the one that told first


_value = attrgetter("new")


class _Taught(NamedTuple):
    """A word whose waits told an engine something, and what it knew then."""

    site: Callable[[], Site]  # made where it is told: nearly all are not
    clock: Clock


class NeedlessWaits:
    """Judge every wait for a semaphore at its issue, before the clocks join what it tells.

    A wait is needless where its engine knows that the word or transfer is over that raised the semaphore to the value.
    Of a queue only exactly that transfer counts: a later one may be over first, on other DMA engines. Waits for a
    semaphore that several raise, or that ever goes down, are left alone, and where one is in a program all are: what
    such a wait tells depends on the schedule that was seen.
    """

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        clocks.raised.append(self._raise)
        self._raises: dict[Key, list[Raise]] = {}
        self._open: set[Key] = set()  # whose value tells nothing certain
        self._awaited: set[Key] = set()
        self._needed: set[WaitPlace] = set()
        self._needless: dict[WaitPlace, tuple[Awaited, Callable[[], Site], Raise, Callable[[], Site] | None]] = {}
        self._taught: dict[int, deque[_Taught]] = {}
        self._last: dict[int, tuple[LoadedWord, int, Clock]] = {}

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program."""
        self._device = device

    def _raise(self, change: Raise) -> None:
        raises = self._raises.setdefault(change.key, [])
        if change.key[1] == "event":
            if change.new and raises and raises[0].unit.actor != change.unit.actor:
                self._open.add(change.key)
        elif change.new <= change.old or self._sets(change) or (raises and raises[0].unit.actor != change.unit.actor):
            self._open.add(change.key)
        raises.append(change)

    def _sets(self, change: Raise) -> bool:
        """Return whether a word sets the semaphore to a number, whatever it was."""
        word, core = change.unit.word, self._clocks.names[change.unit.actor][0]
        if not isinstance(word, Instruction) or word.SYNC is Instruction.SYNC:
            return False
        return (change.key, None) in signals_at(word, core, self._device.addresses)

    def on_issue(self, sequencer: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Judge the waits of a word; what it will have learnt is seen when the next one issues."""
        core, name = sequencer.core.index, sequencer.name
        actor = self._clocks.index[core, name]
        known = self._clocks.known[actor]
        last = self._last.get(actor)
        if last is not None and last[2] is not known and last[2] != known:
            taught = self._taught.setdefault(actor, deque(maxlen=_PATIENCE))
            taught.append(_Taught(self._site(core, name, last[0], last[1]), known))
        self._last[actor] = loaded, now, known
        for awaited in loaded.word.waits:
            if awaited.by == BARRIER:
                continue
            key = (core, awaited.kind, awaited.index)
            self._awaited.add(key)
            place = WaitPlace(core, name, loaded.pc, int(awaited.by == SECOND_SLOT))
            if place in self._needed:
                continue
            change = self._raised(key, awaited)
            if change is None or not self._knows(actor, known, change):
                self._needed.add(place)
                self._needless.pop(place, None)
            elif place not in self._needless:
                unit = change.unit
                told = next((one.site for one in self._taught.get(actor, ()) if one.clock[unit.actor] >= unit.number),
                            None)  # fmt: skip
                self._needless[place] = awaited, self._site(core, name, loaded, now), change, told

    def _raised(self, key: Key, awaited: Awaited) -> Raise | None:
        """Return what raised a semaphore to the value awaited; None for waits that are not judged."""
        if awaited.kind == "event" or awaited.mode not in (WaitMode.SEM_GE, WaitMode.SEM_GT) or key in self._open:
            return None
        need = awaited.value + (awaited.mode == WaitMode.SEM_GT)
        raises = self._raises.get(key, ())  # ever higher, else the key were open
        place = bisect_left(raises, need, key=_value)
        return raises[place] if place < len(raises) else None

    def _knows(self, actor: int, known: Clock, change: Raise) -> bool:
        by, number = change.unit.actor, change.unit.number
        if by == actor:
            return False  # a wait for itself: it may be there to empty the pipeline
        return known[by] == number if by >= self._clocks.engines else known[by] >= number

    def _site(self, core: int, name: str, loaded: LoadedWord, now: int) -> Callable[[], Site]:
        return partial(site_of, self._device, core, name, loaded.pc, loaded.word, access="waits", time_ps=now)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each wait that told nothing in any execution of its word."""
        if self._awaited & self._open:
            return
        for awaited, waiting, change, telling in self._needless.values():
            site, told = waiting(), None if telling is None else telling()
            core, by = self._clocks.names[change.unit.actor]
            since = f" since pc {told.pc}" if told is not None else ""
            raised = f"that nc{core} {by} has raised it is known{since}"
            yield Finding(
                "lint", "redundant-wait", KINDS["lint:redundant-wait"].severity,
                f"{site.engine} pc {site.pc} waits for {awaited.text}; {raised}",
                site, () if told is None else (told,), hint=f"take out the wait for {awaited.text}",
                details={"condition": awaited.text})  # fmt: skip
