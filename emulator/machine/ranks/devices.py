"""A device among others: it goes on only as far as nothing that another rank does can still reach it."""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from emulator.completing import completing
from emulator.device import Device
from emulator.dma.collectives import Arrived, Call
from emulator.faults import FaultError
from formats.targets import Target

if TYPE_CHECKING:
    from emulator.dma.queues import DmaQueue
    from emulator.events import Event
    from emulator.sequencer import Sequencer

__all__ = ["Around", "OthersFirst", "RankDevice"]


class OthersFirst(Exception):  # noqa: N818  no error: it ends a look ahead
    """Raised where a rank can go no further before others move, and those stand still."""


class Around(Protocol):
    """The machine around a device, as the device knows it."""

    def begin(self, rank: int, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Take a collective of a rank over."""

    def catch_up(self, device: RankDevice) -> None:
        """Bring everything else to the time of a device's next event; where it has none, on until it has one.

        Raises OthersFirst where the others are not to move.
        """


class RankDevice(Device):
    """The device of one rank; fields as in `Device`."""

    NOT_STATE: ClassVar = {**Device.NOT_STATE, "rank": "wiring", "around": "wiring"}

    def __init__(self, rank: int, around: Around, target: Target | str, cores: int = 1, **options: Any) -> None:
        super().__init__(target, cores, **options)
        self.rank, self.around = rank, around
        self.dma.ranks = self

    def begin(self, call: Call, now_ps: int, arrived: Arrived) -> None:
        """Hand a collective to the machine."""
        self.around.begin(self.rank, call, now_ps, arrived)

    @property
    def next_ps(self) -> int | None:
        """Return the time of the next event, None where there is none."""
        return self.heap[0][0] if self.heap and not self._ended else None

    def run_before(self, time_ps: int) -> None:
        """Carry out what is due before a time, whatever the other ranks do."""
        heap, limit = self.heap, self.limit_ps
        self._arm(stepping=False)
        try:
            while heap and not self._ended and heap[0][0] < time_ps:
                due = heap[0][0]
                if due > limit or due > self._alarm_ps or self.steps >= self._look_at:
                    super()._advance()
                    continue
                self.now_ps = due
                heappop(heap)[2](due)
        except FaultError as error:
            self.raise_fault(error.fault)
        finally:
            self._rest()

    def ahead(self) -> tuple[int, Sequencer | DmaQueue] | None:
        """Return as `Device.ahead`, with the other ranks at that time; where they may not move, what is next so far."""
        try:
            while True:
                self.around.catch_up(self)
                found = super().ahead()
                if self._ended or self.unreported:
                    return found
                if found is not None:
                    self.around.catch_up(self)  # words have issued since: what comes next may be later than it was
                    if self.completes_next() == found:
                        return found
        except OthersFirst:
            return self.completes_next()

    def completes_next(self) -> tuple[int, Sequencer | DmaQueue] | None:
        """Return time and owner of the completion that is due before anything else; None where something else is."""
        if not self.heap or self._pending or self._ended:
            return None
        time_ps, _, callback = self.heap[0]
        owner = completing(callback)
        return None if owner is None else (time_ps, owner)

    def go_on(self, most: int | None = None) -> list[Event]:
        """Carry out the one thing that is due next, whatever the other ranks do; return the events that came of it.

        Where there is an event that was not returned before, that alone; `most` are returned, others are kept.
        """
        if not self._ended and not self._pending:
            self._arm(stepping=True)
            try:
                with np.errstate(all="ignore"):
                    super()._advance()
            finally:
                self._rest()
        found: list[Event] = []
        while (most is None or len(found) < most) and (event := self.take_pending()) is not None:
            found.append(event)
        return found

    def _advance(self) -> None:
        self.around.catch_up(self)
        if not self._ended:
            super()._advance()

    def _settle(self) -> None:
        self.around.catch_up(self)
        if not self.heap:  # nothing else in the machine brings an event
            super()._settle()

    def stay_away(self) -> None:
        """Run nothing: whoever waits for this rank waits in vain."""
        self._ended = True

    @property
    def away(self) -> bool:
        """Return whether it runs no program."""
        return self.model is None

    def settle(self) -> None:
        """End: nothing will happen any more in the whole machine."""
        if not self._ended and not self.heap:
            self._settle()
