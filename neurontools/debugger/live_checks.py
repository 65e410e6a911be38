"""Checks in a session: a second device runs behind the first one, and what it finds is known by position.

Executions are deterministic, so that checks need no way back: the second device only goes forward, what it found at a
position stays true, and a session that has gone back sees no more than what was found up to where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emulator.checks import TOOLS, Finding, make_checks, tools_of

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.journal import Edit

__all__ = ["LiveChecks"]


class LiveChecks:
    """The named checks over an execution of its own; positions are counts of event numbers, as `Session.events`."""

    def __init__(self, device: Device, names: tuple[str, ...], edits: tuple[Edit, ...] = ()) -> None:
        self.tools = tools_of(names)
        self.device = device
        self.edits = edits  # what a person has changed, by the numbers of events
        self.events = 0
        self._checks: list[Any] = make_checks(self.tools)
        # One row for each finding and each time its count grew: position, finding, count.
        self._history: list[tuple[int, Finding, int]] = []
        self._counts: dict[int, int] = {}
        device.observers.extend(self._checks)
        for check in self._checks:
            if hasattr(check, "attach"):
                check.attach(device)
        self._note(0)

    def advance(self, events: int, stop: Callable[[], bool] = lambda: False) -> bool:
        """Run until `events` event numbers have been used up; return whether it got there before `stop` said so."""
        device = self.device
        while self.events < events:
            if stop():
                return False
            edit = next((each for each in self.edits if each.number == self.events), None)
            if edit is not None:
                edit.change(device)
                self.events = device.next_number() + 1
                continue
            event = device.step()
            if event is None:
                break
            self.events = event.number + 1
            self._note(self.events)
            # A fault or a hang is an event; that a program has ended is only seen by looking for what comes next.
            if not device.finished:
                device.ahead()
            if device.finished and not device.unreported:
                self._finish()
                break
        return True

    def _finish(self) -> None:
        for check in self._checks:
            if hasattr(check, "finish"):
                check.finish()
        self._note(self.events)

    def _note(self, position: int) -> None:
        counts = self._counts
        for check in self._checks:
            for finding in getattr(check, "findings", ()):
                if counts.get(id(finding)) != finding.count:
                    counts[id(finding)] = finding.count
                    self._history.append((position, finding, finding.count))

    def findings(self, events: int) -> tuple[Finding, ...]:
        """Return what was found until a position, each with the count that it had there, in the order of the tools."""
        found: dict[int, Finding] = {}
        for position, finding, count in self._history:
            if position > events:
                break
            found[id(finding)] = replace(finding, count=count)
        return tuple(sorted(found.values(), key=lambda finding: TOOLS.index(finding.tool)))

    def new_at(self, events: int, tool: str = "") -> tuple[Finding, ...]:
        """Return what was found first at exactly a position, of one tool or of all."""
        first: dict[int, tuple[int, Finding]] = {}
        for position, finding, _ in self._history:
            first.setdefault(id(finding), (position, finding))
        return tuple(f for position, f in first.values() if position == events and tool in ("", f.tool))
