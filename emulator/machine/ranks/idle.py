"""What the idle DMA engines of a rank carry of collectives while its program only waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from emulator.dma.system import carried_stretch
from formats.named_tuple import NamedTuple

__all__ = ["Carry", "Entry", "IdleEngines", "OnRing"]


class Carry(NamedTuple):
    """Bytes of a collective for the DMA engines of each core, in packets of so many, on the ring of a queue."""

    queue: str
    nbytes: int
    packet: int


class Entry(NamedTuple):
    """What a device was given and when: bytes to carry, or the end of its n-th collective.

    `rings` says of an end on whose ring the engines of each core carried last, where they were idle at that time.
    """

    time_ps: int
    carry: Carry | None = None
    call: int = -1
    rings: tuple[tuple[int, int], ...] = ()


class OnRing(NamedTuple):
    """A queue on one core: the number of its ring on the engines there."""

    core: int
    ring: int


class IdleEngines:
    """What engines that were idle have been given since; a ring that is alone on them is served in order."""

    __slots__ = ("_free", "given")

    def __init__(self) -> None:
        self.given: list[Entry] = []
        self._free: dict[int, tuple[int, int]] = {}  # by core: when its engines are idle, the ring they served last

    def serve_alone(self, queues: Sequence[OnRing], now_ps: int) -> bool:
        """Return whether the engines are idle, or at work for the same rings."""
        for core, ring in queues:
            free, last = self._free.get(core, (0, ring))
            if free > now_ps and last != ring:
                return False
        return True

    def carry(self, entry: Entry, queues: Sequence[OnRing], ps_per_byte: float) -> int:
        """Take bytes over, on rings that are alone; return when they are through, as `DmaSystem.carry` does."""
        what, now = entry.carry, entry.time_ps
        assert what is not None
        self.given.append(entry)
        took, ends = _took(what.nbytes, what.packet, ps_per_byte), now
        for core, ring in queues:
            through = max(self._free.get(core, (0, 0))[0], now) + took
            self._free[core] = through, ring
            ends = max(ends, through)
        return ends

    def idle_at(self, time_ps: int) -> bool:
        """Return whether everything is through."""
        return all(free <= time_ps for free, _ in self._free.values())

    @property
    def rings(self) -> tuple[tuple[int, int], ...]:
        """Return for each core the ring that was served last."""
        return tuple(sorted((core, ring) for core, (_, ring) in self._free.items()))

    def take(self) -> list[Entry]:
        """Return what was given, and forget it."""
        found, self.given, self._free = self.given, [], {}
        return found


@lru_cache(1 << 12)
def _took(nbytes: int, packet: int, ps_per_byte: float) -> int:
    each = carried_stretch(nbytes, packet, ps_per_byte)
    return each.packet_ps * (each.packets - 1) + each.last_ps
