"""How often each 64-byte block of SBUF and PSUM has been written, read off the journal: a run pays nothing for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neurontools.debugger.last_writes import BLOCK, blocks_of

if TYPE_CHECKING:
    from formats.regions import Region
    from neurontools.debugger.event_log import EventLog

__all__ = ["Traffic"]

Counts = npt.NDArray[np.int32]
_Key = tuple[str, int]


class Traffic:
    """The counts of one journal's device, brought up to date, or back, when they are asked for."""

    def __init__(self, journal: EventLog) -> None:
        self.journal = journal
        self._taken: list[tuple[Region, ...]] = []  # what each event wrote, to be taken back by going back
        self._counts: dict[_Key, Counts] = {}

    def counts(self, space: str, core: int) -> Counts:
        """Return (partitions, blocks) numbers of events that wrote there; a view that stays up to date."""
        log = self.journal.log
        while len(self._taken) > len(log):
            self._count(self._taken.pop(), -1)
        for entry in log[len(self._taken) :]:
            self._taken.append(entry.regions)
            self._count(entry.regions, 1)
        return self._array((space, core))

    def _count(self, regions: tuple[Region, ...], by: int) -> None:
        for region in regions:
            if region.space != "HBM":
                array = self._array((region.space, region.core))
                array[region.first : region.behind, blocks_of(*region[4:])] += by

    def _array(self, key: _Key) -> Counts:
        found = self._counts.get(key)
        if found is None:
            rows, width = self.journal.device.cores[key[1]].memory.array(key[0]).shape
            found = self._counts[key] = np.zeros((rows, -(-width // BLOCK)), np.int32)
        return found
