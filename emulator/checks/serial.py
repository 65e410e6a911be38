"""Queues that stand idle: an engine that waits for one transfer of its queue before it triggers the next one.

A wait in front of a trigger puts the two transfers one behind the other. What it is for cannot be read off the order of
accesses alone, so that a finding says what to try; `neurontools check` runs the program without the wait first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from emulator.checks.clocks import Clocks, Key, Raise, WaitPlace
from emulator.checks.finding import Finding, Site
from emulator.checks.kinds import KINDS
from emulator.checks.place import site_of
from emulator.device import Device
from emulator.loaded import LoadedWord
from emulator.sequencer import Sequencer
from formats.isa import Awaited, WaitMode
from formats.isa.signals import BARRIER, SECOND_SLOT
from formats.named_tuple import NamedTuple

__all__ = ["SerialQueues"]


class _Waited(NamedTuple):
    """A wait that nothing but a trigger can need so far, and the transfer whose end it awaits."""

    place: WaitPlace
    awaited: Awaited
    site: Callable[[], Site]  # made where it is told
    raised: Raise


class SerialQueues:
    """Waits of an engine for transfers of a queue right in front of a word that triggers the next one there."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        clocks.raised.append(self._raise)
        self._raises: dict[Key, Raise] = {}  # the last one of each semaphore
        self._waited: dict[int, list[_Waited]] = {}
        self._found: dict[WaitPlace, tuple[_Waited, Callable[[], Site], int]] = {}

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program."""
        self._device = device

    def _raise(self, change: Raise) -> None:
        if change.new > change.old:  # what counts down is no end of a transfer
            self._raises[change.key] = change

    def on_issue(self, sequencer: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Take a word: its waits, and whether it triggers a transfer or does work of its own."""
        core, name = sequencer.core.index, sequencer.name
        actor = self._clocks.index[core, name]
        waited = self._waited.setdefault(actor, [])
        for awaited in loaded.word.waits:
            # Transfers raise semaphores, and only >= is a wait for an end that may have been long ago.
            if awaited.by == BARRIER or awaited.kind != "semaphore" or awaited.mode != WaitMode.SEM_GE:
                continue
            change = self._raises.get((core, "semaphore", awaited.index))
            if change is not None and change.unit.actor >= self._clocks.engines and change.new == awaited.value:
                place = WaitPlace(core, name, loaded.pc, int(awaited.by == SECOND_SLOT))
                site = partial(site_of, self._device, core, name, loaded.pc, loaded.word, access="waits", time_ps=now)
                waited.append(_Waited(place, awaited, site, change))
        if loaded.transfer is not None:
            queue = loaded.queue
            trigger = partial(site_of, self._device, core, name, loaded.pc, loaded.word, access="triggers", time_ps=now)
            for one in waited:
                if self._clocks.names[one.raised.unit.actor] == (core, queue):
                    times = self._found[one.place][2] + 1 if one.place in self._found else 1
                    self._found[one.place] = one, trigger, times
            waited.clear()
        elif loaded.word.OPERANDS or loaded.word.BRANCHES:
            waited.clear()  # the wait may be for that

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each wait."""
        kind = "serial-queue"
        for (place, awaited, waiting, raised), triggering, times in self._found.values():
            site, trigger = waiting(), triggering()
            _, queue = self._clocks.names[raised.unit.actor]
            others: tuple[Site, ...] = () if trigger.pc == site.pc else (trigger,)
            details: dict[str, Any] = {"condition": awaited.text, "queue": queue, "slot": place.slot}
            yield Finding(
                "lint", kind, KINDS[f"lint:{kind}"].severity,
                f"{site.engine} pc {site.pc} waits for {awaited.text}, a transfer of {queue}, before pc {trigger.pc} "
                f"triggers the next one there: the queue stands idle between them",
                site, others, hint=f"if nothing else needs that order, take out the wait for {awaited.text}",
                count=times, details=details)  # fmt: skip
