"""What a whole log says: its errors, counted and in order, the first of them, and its information blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from formats.nrt.facts import Fact
from formats.nrt.infodump import Infodump, InfodumpReader
from formats.nrt.log import clean, parse_line
from formats.nrt.lookup import mentions
from formats.nrt.status import NrtStatus as S

__all__ = ["Event", "Story", "merge_stories", "read_story"]

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
    log: str = ""  # which log it is in, where there are several


@dataclass
class Story:
    """What a log tells; `events` in the order of their first lines, one per kind and process."""

    lines: int = 0
    recognised: int = 0  # lines in the runtime's form
    processes: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    blocks: list[Infodump] = field(default_factory=list)
    first_error: datetime | None = None
    block_logs: list[str] = field(default_factory=list)  # of each block, where there are several logs

    @property
    def first(self) -> Event | None:
        """Return the error that came first: by time where lines have one, and the status only where no message does.

        Among several processes a time-out or a hang in collectives comes behind whatever another one says: who waits
        for a rank that failed gives up first or last, as clocks and limits have it.
        """
        fatal = [event for event in self.events if event.fact.fatal]
        if not fatal:
            return None
        several = len({(event.log, event.pid) for event in fatal}) > 1
        return min(fatal, key=lambda event: (several and follows(event), *moment(event)))


_FOLLOWING = frozenset(str(int(status)) for status in (S.NRT_TIMEOUT, S.NRT_EXEC_HW_ERR_COLLECTIVES))


def follows(event: Event) -> bool:
    """Return whether an error may be the consequence of another rank's."""
    return event.fact.code in _FOLLOWING


def moment(event: Event) -> tuple[bool, datetime, int]:
    """Return when an error came, as a key to order by; lines without a time come last."""
    return event.time is None, event.time or datetime.min, event.line  # noqa: DTZ901  times of logs have no zone


def merge_stories(stories: Mapping[str, Story]) -> Story:
    """Return several logs as one story, events in the order of their times, each with the log that it is from."""
    whole = Story()
    for name, story in stories.items():
        whole.lines += story.lines
        whole.recognised += story.recognised
        whole.processes |= story.processes
        times = [time for time in (whole.first_error, story.first_error) if time is not None]
        whole.first_error = min(times, default=None)
        for event in story.events:
            event.log = name
        whole.events += story.events
        whole.blocks += story.blocks
        whole.block_logs += [name] * len(story.blocks)
    whole.events.sort(key=moment)
    del whole.events[MOST_KINDS:]
    return whole


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
