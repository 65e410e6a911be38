"""The end of what happened: from a session's journal, or from a light observer that keeps the last events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from emulator.events import Event, SemaphoreChange
from formats.core.records import JournalEntry, JournalNote, Range
from formats.regions import Region

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.journal import Journal

__all__ = ["EventTail", "journal_note", "range_of"]

KEPT = 256
_WRITES = 64  # ranges of one entry

Text = Callable[[int, str, int], str]


class EventTail:
    """An observer that keeps the newest events; append it to `Device.observers` before the run."""

    def __init__(self, keep: int = KEPT) -> None:
        self.events: deque[Event] = deque(maxlen=keep)
        self.total = 0

    def attach(self, device: Device) -> None:
        """Do nothing: events are all that is kept."""

    def on_event(self, event: Event) -> None:
        """Keep an event."""
        self.total += 1
        self.events.append(event)


def journal_note(journal: Journal | EventTail | None, count: int, text: Text) -> JournalNote | None:
    """Return the last `count` events; `text` gives a word by core, engine and pc. None where nothing was kept."""
    if journal is None:
        return None
    if isinstance(journal, EventTail):
        newest: Sequence[Any] = tuple(islice(journal.events, max(0, len(journal.events) - count), None))
        return JournalNote(journal.total, tuple(_entry(each, each.writes, each.reads, _text(each)) for each in newest))
    log = journal.log[-count:]
    return JournalNote(
        len(journal.log),
        tuple(_entry(each, each.regions, each.reads, text(each.core, each.engine, each.pc)) for each in log),
    )


def _text(event: Event) -> str:
    if event.kind == "fault":
        return str(event.instruction.message)
    if event.kind == "hang":
        return str(event.instruction.text().split("\n")[0])
    return event.text


def _entry(each: Any, writes: tuple[Region, ...], reads: tuple[Region, ...], text: str) -> JournalEntry:
    changes: tuple[SemaphoreChange, ...] = each.semaphores
    return JournalEntry(
        each.number,
        each.time_ps,
        each.core,
        each.engine,
        each.pc,
        each.kind,
        text,
        tuple(map(range_of, writes[:_WRITES])),
        tuple(map(range_of, reads[:_WRITES])),
        tuple((change.core, change.kind, change.number, change.old, change.new) for change in changes),
    )


def range_of(region: Region) -> Range:
    """Return a region as a dump keeps it."""
    space, core, first, partitions, byte, nbytes, pattern = region
    dims, run = ((), 0) if pattern is None else pattern
    return Range(space, core, first, partitions, byte, nbytes, tuple((step, count) for step, count in dims), run)
