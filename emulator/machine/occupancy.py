"""Follow what SBUF and PSUM hold while a program runs: which bytes are live when, and what goes through HBM and back.

A byte of a partition is live from the word or transfer that writes it to the last one that reads it before it is
written again.  Partitions are followed in quadrants of 32, the unit in which accesses may start.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.device import Device
from emulator.events import Event
from formats.named_tuple import NamedTuple
from formats.neuron_core import QUADRANT
from formats.regions import Region

__all__ = ["Held", "Occupancy", "Peak", "RoundTrip"]

_NONE = -1


class Held(NamedTuple):
    """Neighbouring bytes of a partition that one event wrote: when, until when they were read, by whom written."""

    byte: int
    end: int
    born_ps: int
    read_ps: int | None
    writer: str


class Peak(NamedTuple):
    """The most bytes of a partition that were live at one time, and what was written then."""

    space: str
    core: int
    capacity: int
    touched: int
    live: int
    time_ps: int
    writer: str


class RoundTrip(NamedTuple):
    """Bytes that a transfer wrote to HBM and a later one read again: a spill, where no output is meant."""

    writer: str
    reader: str
    bytes: int
    written_ps: int
    read_ps: int


class _Memory:
    """One memory of one core: per quadrant and byte the event that wrote it and the time of the last read."""

    def __init__(self, width: int, quadrants: int) -> None:
        self.born = np.full((quadrants, width), _NONE, np.int64)
        self.read = np.full((quadrants, width), _NONE, np.int64)
        # Closed lives: how many bytes were live from one event to a time, by quadrant.
        self.lives: list[dict[tuple[int, int], int]] = [defaultdict(int) for _ in range(quadrants)]

    def close(self, quadrant: int, low: int, high: int) -> None:
        born, read = self.born[quadrant, low:high], self.read[quadrant, low:high]
        done = (born >= 0) & (read >= 0)
        if not done.any():
            return
        pairs, counts = np.unique(np.stack([born[done], read[done]]), axis=1, return_counts=True)
        for (one, other), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
            self.lives[quadrant][one, other] += count


class Occupancy:
    """Watch a run; afterwards `peaks`, `held` and `trips` say what its memories held."""

    def __init__(self) -> None:
        self.findings: list[Any] = []
        self._memories: dict[tuple[str, int], _Memory] = {}
        self._events: list[tuple[int, str]] = []
        self._hbm: list[tuple[Region, int, str]] = []
        self.trips: list[RoundTrip] = []
        self.small: dict[str, tuple[int, int]] = {}

    def attach(self, device: Device) -> None:
        """Make a shadow of every core's memories."""
        arch = device.arch
        self.capacity = {"SBUF": arch.sbuf_bytes.whole, "PSUM": arch.psum_bytes.whole}
        for core in device.cores:
            for space, width in self.capacity.items():
                self._memories[space, core.index] = _Memory(width, arch.partitions.whole // QUADRANT)

    def on_event(self, event: Event) -> None:
        """Take note of what a completion read and wrote."""
        number = len(self._events)
        self._events.append((event.time_ps, f"{event.engine} pc {event.pc}: {event.text}" if event.kind == "instruction"
                             else f"{event.engine}: {event.text}"))  # fmt: skip
        for region in event.reads:
            self._touch(region, event.time_ps, number, write=False)
        for region in event.writes:
            self._touch(region, event.time_ps, number, write=True)
        if event.kind == "dma":
            self._transfer(event)

    def _touch(self, region: Region, time_ps: int, number: int, *, write: bool) -> None:
        if region.space == "HBM":
            self._through(region, time_ps, number, write=write)
            return
        memory = self._memories[region.space, region.core]
        quadrants = range(region.first // QUADRANT, (region.behind - 1) // QUADRANT + 1)
        for low, high in region.runs():
            for quadrant in quadrants:
                if write:
                    memory.close(quadrant, low, high)
                    # What nobody has read yet goes on living: an accumulation in PSUM is one life.
                    fresh = (memory.born[quadrant, low:high] < 0) | (memory.read[quadrant, low:high] >= 0)
                    memory.born[quadrant, low:high][fresh] = number
                    memory.read[quadrant, low:high] = _NONE
                else:
                    memory.read[quadrant, low:high] = time_ps

    def _through(self, region: Region, time_ps: int, number: int, *, write: bool) -> None:
        text = self._events[number][1]
        if write:
            # What is written over went nowhere else: a later read has the new bytes.
            self._hbm = [entry for entry in self._hbm if not region.covers(entry[0])]
            self._hbm.append((region, time_ps, text))
            return
        for one, written, writer in self._hbm:
            if region.overlaps(one):
                self.trips.append(RoundTrip(writer, text, region.common(one).size, written, time_ps))

    def _transfer(self, event: Event) -> None:
        """Note transfers whose pieces in a partition are short."""
        for region in (*event.reads, *event.writes):
            if region.space != "HBM":
                least = min((high - low for low, high in region.runs()), default=0)
                if least:
                    self.small[f"{event.engine}: {event.text}"] = (least, region.size)

    def finish(self) -> None:
        """Close every life at the end of the run."""
        for memory in self._memories.values():
            for quadrant in range(len(memory.lives)):
                memory.close(quadrant, 0, memory.born.shape[1])

    def peaks(self) -> list[Peak]:
        """Return the peak of every memory."""
        found = []
        for (space, core), memory in self._memories.items():
            best, at, writer = 0, 0, ""
            for lives in memory.lives:
                steps: dict[int, int] = defaultdict(int)
                for (born, read), count in lives.items():
                    steps[self._events[born][0]] += count
                    steps[read + 1] -= count
                live = 0
                for time_ps in sorted(steps):
                    live += steps[time_ps]
                    if live > best:
                        best, at = live, time_ps
            writer = next((text for time_ps, text in self._events if time_ps == at), "") if best else ""
            touched = int((memory.born >= 0).any(axis=0).sum())
            found.append(Peak(space, core, self.capacity[space], touched, best, at, writer))
        return found

    def held(self, space: str, core: int, partition: int) -> list[Held]:
        """Return what a partition holds at the end, range by range."""
        memory, quadrant = self._memories[space, core], partition // QUADRANT
        born: NDArray[np.int64] = memory.born[quadrant]
        read: NDArray[np.int64] = memory.read[quadrant]
        edges = np.flatnonzero((np.diff(born) != 0) | (np.diff(read) != 0)) + 1
        found = []
        for low, high in zip([0, *edges.tolist()], [*edges.tolist(), born.size], strict=True):
            number = int(born[low])
            if number >= 0:
                time_ps, text = self._events[number]
                last = int(read[low])
                found.append(Held(low, high, time_ps, None if last < 0 else last, text))
        return found
