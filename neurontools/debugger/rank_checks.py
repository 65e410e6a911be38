"""Checks in a session over ranks: a second machine runs behind the first one, each rank of it with checks of its own.

It goes forward only, all ranks together, further than a session may stand: what it found is known by the position of
the rank it was found on, and a session sees no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from emulator.device import Device
from neurontools.debugger.errors import UsageError
from neurontools.debugger.live_checks import LiveChecks

if TYPE_CHECKING:
    from emulator.events import Event
    from emulator.journal import Edit
    from emulator.machine.ranks.machine import RankedMachine

__all__ = ["CheckedMachine", "RankChecks", "need_no_edits"]


class CheckedMachine:
    """A machine of its own for the checks of all ranks; `ranks` are their checks, for sessions to ask."""

    def __init__(self, machine: RankedMachine, tools: Mapping[int, tuple[str, ...]]) -> None:
        self._machine = machine
        self._ended = False
        self.ranks = {rank: RankChecks(self, machine.devices[rank], names) for rank, names in tools.items()}

    def advance(self, rank: RankChecks, events: int, stop: Callable[[], bool]) -> bool:
        """Run until a rank has used up so many event numbers; return whether it got there before `stop` said so.

        One more is looked for: what checks find when a rank has ended belongs to its last.
        """
        while rank.events <= events and not self._ended:
            if stop():
                return False
            if not self._machine.go_on():
                self._machine.settle()
                self._ended = True
                for each in self.ranks.values():
                    each.end()
        return True


class RankChecks(LiveChecks):
    """The checks of one rank, noted as its events come."""

    def __init__(self, machine: CheckedMachine, device: Device, names: tuple[str, ...]) -> None:
        super().__init__(device, names)
        self._together = machine
        device.observers.append(self)  # behind the checks, so that it sees what they have found

    def on_event(self, event: Event) -> None:
        """Note what the checks have found by this event."""
        self.events = event.number + 1
        self._note(self.events)

    def advance(self, events: int, stop: Callable[[], bool] = lambda: False) -> bool:
        """Run as `LiveChecks.advance`, with all ranks."""
        return self._together.advance(self, events, stop)

    def end(self) -> None:
        """Let the checks say what they find at the end."""
        self._finish()


def need_no_edits(edits: Sequence[Edit]) -> None:
    """Raise UsageError where a person has changed something: the machine of the checks knows nothing of it."""
    if edits:
        raise UsageError("checks over ranks do not follow changes by hand: there were some; begin again (run) first")
