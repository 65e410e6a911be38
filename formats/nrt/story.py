"""What a whole log says: its errors, counted and in order, the first of them, and its information blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from formats.nrt.facts import Fact
from formats.nrt.infodump import Infodump, InfodumpReader
from formats.nrt.log import clean, parse_line
from formats.nrt.lookup import mentions

__all__ = ["Event", "Story", "read_story"]

MOST_KINDS = 1000  # kinds of error kept; a log has tens
MOST_BLOCKS = 1000


@dataclass
class Event:
    """One kind of error in a log: where it was first, how often, and what the first line said."""

    fact: Fact
    line: int
    time: datetime | None
    pid: int | None
    text: str
    values: dict[str, str]
    count: int = 1


@dataclass
class Story:
    """What a log tells; `events` in the order of their first lines, one per kind and process."""

    lines: int = 0
    recognised: int = 0  # lines in the runtime's form
    processes: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    blocks: list[Infodump] = field(default_factory=list)
    first_error: datetime | None = None

    @property
    def first(self) -> Event | None:
        """Return the error that came first: by time where lines have one, and the status only where no message does."""
        fatal = [event for event in self.events if event.fact.fatal]
        if not fatal:
            return None
        return min(fatal, key=lambda event: (event.time is None, event.time or datetime.min, event.line))  # noqa: DTZ901  times of logs have no zone


def read_story(lines: Iterable[str]) -> Story:
    """Read a log line by line, in memory that does not grow with it."""
    story, reader = Story(), InfodumpReader()
    kinds: dict[tuple[str, int | None], Event] = {}
    number = 0
    for number, raw in enumerate(lines, 1):
        parsed = parse_line(raw, number)
        text = clean(raw) if parsed is None else parsed.text
        if parsed is not None:
            story.recognised += 1
            if len(story.processes) < MOST_KINDS:
                story.processes.add(parsed.pid)
            if parsed.level in ("ERROR", "FATAL"):  # threads write out of order
                story.first_error = min(story.first_error or parsed.time, parsed.time)
        block = reader.feed(raw, number)
        if block is not None and len(story.blocks) < MOST_BLOCKS:
            story.blocks.append(block)
        for fact, values in mentions(text):
            key = (fact.name, None if parsed is None else parsed.pid)
            if key in kinds:
                kinds[key].count += 1
            elif len(kinds) < MOST_KINDS:
                kinds[key] = Event(fact, number, None if parsed is None else parsed.time, key[1], text, values)
    story.lines = number
    story.events = list(kinds.values())
    story.blocks = sorted([*story.blocks, *reader.rest()], key=lambda block: block.line)[:MOST_BLOCKS]
    return story
