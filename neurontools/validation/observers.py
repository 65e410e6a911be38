"""What is read off a run: when engines, transfers and words of one opcode were under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from emulator.dma.transfer import Transfer
    from emulator.events import Event

__all__ = ["Active", "Moving", "Observer", "Span", "Transfers", "Words"]


class Observer(Protocol):
    """Something that a device tells of its completions."""

    def on_event(self, event: Event) -> None: ...


class Active:
    """Add up when engines of core 0 had a word under way, as profiles count active time."""

    def __init__(self) -> None:
        self.ps: dict[str, int] = {}
        self._until: dict[str, int] = {}

    def on_event(self, event: Event) -> None:
        """Take a word into account; words of an engine issue and complete in order."""
        if event.kind == "instruction" and not event.core:
            # A word behind another in the pipeline counts from where that one ended: no time counts twice.
            begun = max(event.issued_ps, self._until.get(event.engine, 0))
            self.ps[event.engine] = self.ps.get(event.engine, 0) + max(event.time_ps - begun, 0)
            self._until[event.engine] = max(event.time_ps, begun)


class Transfers:
    """Keep the transfers."""

    def __init__(self) -> None:
        self.seen: list[Transfer] = []

    def on_event(self, event: Event) -> None:
        """Keep a transfer."""
        if event.kind == "dma":
            self.seen.append(event.instruction)


class Moving(Transfers):
    """Keep when transfers were on the DMA engines."""

    @property
    def ps(self) -> int:
        """Return how long at least one transfer was there, from its first begin to its last end on any engine."""
        spans = [
            (min(begun for begun, _ in each.spans), max(end for _, end in each.spans))
            for each in self.seen
            if each.spans
        ]
        total = until = 0
        for begun, end in sorted(spans):
            total += max(end - max(begun, until), 0)
            until = max(until, end)
        return total


class Words:
    """Keep when words of one opcode were issued and completed."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        self.seen: list[tuple[int, int]] = []

    def on_event(self, event: Event) -> None:
        """Keep a completion of the opcode."""
        if event.kind == "instruction" and event.instruction.name == self.opcode:
            self.seen.append((event.issued_ps, event.time_ps))


class Span:
    """Keep the start of the first DMA trigger of core 0 and the end of its last word."""

    def __init__(self) -> None:
        self.first = self.last = -1

    def on_event(self, event: Event) -> None:
        """Take a completion into account."""
        if event.kind != "instruction" or event.core:
            return
        # What comes before the first trigger is the program's set-up, which the published times leave out.
        if event.instruction.name.startswith("DMA"):
            self.first = event.issued_ps if self.first < 0 else min(self.first, event.issued_ps)
        self.last = event.time_ps
