"""Undefined bytes followed by the notes of a run: behind its end, or as soon as data have to be asked.

Where undefined bytes go is mostly for the program to say, not for its data: its words are gone through in the order of
the notes, with what was written up to each of them. That takes no events, and no look at the memories. Where data
decide, words that fill up, choose or go by indices, all up to such a word is gone through when it is over. Device
memory tells itself what is written of it, so a transfer from a tensor that is not written whole is looked at before it
moves its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from emulator.checks.flow import goes_by_data
from emulator.checks.initcheck import Initcheck
from emulator.checks.kept import kept_of, traits_of
from emulator.checks.poison import Marks
from emulator.checks.written import Written
from emulator.device import Device
from emulator.dma.transfer import Side, Transfer
from emulator.events import Event
from emulator.faults import Place
from emulator.notes import EXECUTED, MOVED, Notes

__all__ = ["Pursuit"]


class Pursuit:
    """Has initcheck follow what notes tell, from the beginning of a run, which nothing was written before."""

    def __init__(self, check: Initcheck, device: Device, notes: Notes) -> None:
        self._check, self._device, self._notes = check, device, notes
        self._next = 0  # the first note that was not gone through
        self._written = Written(device)
        self._lacking: set[tuple[int, str, int]] = set()  # words that read what nothing wrote
        self._told = 0  # how many notes there were when the last of them was told of
        self._foreseen: dict[int, list[Marks | None]] = {}  # what transfers move, where that was looked at before
        self._before = notes.before
        notes.before = self._look_ahead
        self._courses = check.go_by(self._written)
        self._flows = [check.flow_of(core.index) for core in device.cores]
        classes = traits_of(device).classes
        self._by_data = kept_of(device, "by data", lambda: frozenset(filter(goes_by_data, classes)))
        if self._by_data:
            device.look([self, *device.observers])
        moving = device.dma.moving
        if moving is not None:
            self._foresee(moving)

    def lacks(self, place: Place) -> None:
        """Take it that a word or transfer is about to use bytes that nothing wrote."""
        self._lacking.add(place[:3])
        self._told = len(self._notes)

    def on_word(self, engine: Any, number: int, now: int, changes: Any) -> None:
        """Go through all up to a word that is over, if data decide what becomes of its inputs."""
        note = self._notes[-1]
        if note[0] == EXECUTED and type(note[2].word) in self._by_data:
            self.catch_up()

    def on_transfer(self, transfer: Transfer, number: int, now: int, changes: Any) -> None:
        """Wait for who asks: what a transfer moves does not depend on data."""

    def _look_ahead(self, transfer: Transfer) -> None:
        if self._before is not None:
            self._before(transfer)
        self._foresee(transfer)

    def _foresee(self, transfer: Transfer) -> None:
        """Look at what a transfer is about to move, if it comes from a tensor that is not written whole."""
        find = self._device.hbm.find
        for part in transfer.parts:
            for source, _ in part.copies:
                if source.space == "HBM":
                    allocation = find(source.span[0])
                    if allocation is not None and not allocation.whole:
                        self.catch_up()
                        event = self._moving(len(self._notes), transfer, self._device.now_ps, (), None)
                        self._foreseen[id(transfer)] = self._check.sources_of(event)
                        return

    def end(self) -> None:
        """Go through what is left, and leave the run to whoever watches it from here on."""
        self.catch_up()
        self.leave()

    def leave(self) -> None:
        """Be told of no transfer any more."""
        self._notes.before = self._before
        self._check.go_by(None)

    def catch_up(self) -> None:
        """Go through what was noted since the last time."""
        notes, check = self._notes, self._check
        cores, enter, leave, take = self._device.cores, check.enter, check.leave, self._courses.take
        full, mark = self._written.full, self._written.mark
        # Of words up to here the device has said which of them read what nothing wrote: it stops after many of them.
        lacking, told = self._lacking, len(notes) if self._device.checking else self._told
        for number in range(self._next, len(notes)):
            note = notes[number]
            if note[0] == EXECUTED:
                _, engine, loaded, bound, issued, now, changes = note
                action = bound.action
                if action.barrier:
                    continue
                word, pc, core, name = loaded.word, loaded.pc, engine.core.index, engine.name
                is_whole = (number < told and (core, name, pc) not in lacking) or full.issuperset(action.reads)
                if is_whole and (
                    (
                        changes is not None
                        and action.template is not None
                        and take(cores[core], name, word, action, self._flows[core])
                    )
                    or check.passes(cores[core], word, action)
                ):
                    for extent in action.writes if changes is not None else ():
                        if extent not in full:
                            mark(extent)
                    continue
                happening: Callable[[], Event] = partial(
                    Event, number, now, issued, core, name, pc, word, "instruction", changes or (), action
                )
                if enter(cores[core], name, pc, word, action, happening, is_whole) and changes is not None:
                    leave(cores[core], name, word)
                if changes is not None:
                    for extent in action.writes:
                        if extent not in full:
                            mark(extent)
            elif note[0] == MOVED:
                _, transfer, now, changes, touches = note
                self._transfer(transfer, self._moving(number, transfer, now, changes or (), touches), changes is None)
        self._next = len(notes)

    @staticmethod
    def _moving(number: int, transfer: Transfer, now: int, changes: Any, touches: Any) -> Event:
        return Event(number, now, transfer.triggered_ps, transfer.core, transfer.queue, transfer.pc, transfer, "dma",
                     changes, touches)  # fmt: skip

    def _transfer(self, transfer: Transfer, event: Event, failed: bool) -> None:
        sources = self._foreseen.pop(id(transfer), None)
        if sources is None:
            sources = self._check.sources_of(event)
        if failed:
            return
        self._check.transfer(event, sources)
        for part in transfer.parts:
            target: Side = part.copies[0][1]
            if target.space == "SBUF":
                self._written.mark_side(target)
