"""Work that both cores of a pair do: accesses that nothing orders, whose order changes nothing.

Kernels that do not split their work let each core store the same bytes to the same place, fill it with zeros before, or
read it again behind. Two such accesses race, and whatever their order is, the bytes are the same: a read finds those
that its own core stored as well, and what one core overwrites with something else it stores again itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from emulator.checks.finding import Finding
from emulator.checks.history import Unit
from emulator.checks.inside import bytes_of
from emulator.checks.shadow import Record
from emulator.checks.spans import Spans
from emulator.checks.stores import Before, Bytes, before_of
from emulator.device import Device
from emulator.dma.transfer import Transfer
from emulator.events import Event
from formats.named_tuple import NamedTuple
from formats.regions import Region

__all__ = ["Alike"]

_MOST = 4096  # stores that their core may still make up for
_KEPT = 1 << 16  # bytes kept of each
_COVERED = 1 << 24  # bytes of a region that is looked at byte by byte


class _Met(NamedTuple):
    """One meeting of two accesses, in the order that was seen, and where."""

    first: Unit
    second: Unit
    read: Unit | None
    region: Region


class _Lost(NamedTuple):
    """What a store overwrote of another core's: to be stored again."""

    met: _Met
    bytes: Bytes


class Alike:
    """Meetings of two cores in device memory; nothing is kept where there is one core."""

    def __init__(self, core_of: Callable[[Unit], int]) -> None:
        self._core_of = core_of
        self._met: dict[int, list[_Met]] = {}
        # By writing unit: units of the other core that stored the same bytes, and where.
        self._echoes: dict[tuple[int, int], dict[Region, list[Unit]]] = {}
        # By unit, what it reads of device memory.
        self._sources: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._echoed_at: dict[tuple[int, int], Spans[Region]] = {}  # the regions of those
        self._idle: dict[tuple[int, int], Spans[Region]] = {}  # by writing unit: what it left as it was
        self._lost: dict[Region, list[_Lost]] = {}  # by the bytes that were overwritten
        self._lost_at: Spans[Region] = Spans()
        self._losses = 0
        self._restored: set[int] = set()
        self._before: Before = []
        self._before_at: Spans[int] | None = None  # places in that

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program."""
        self._device = device

    def on_effect(self, event: Event) -> None:
        """Keep what a store to device memory is about to overwrite."""
        transfer = event.instruction
        self.begin(before_of(self._device, transfer) if isinstance(transfer, Transfer) else [])

    def begin(self, before: Before) -> None:
        """Take what the transfer at hand overwrites."""
        self._before, self._before_at = before, None

    def changes(self, region: Region) -> bool:
        """Return whether the store at hand changed bytes of a region."""
        for place in self._stored_at(region):
            side, before = self._before[place]
            if not np.array_equal(before, bytes_of(self._device, side)):
                return True
        return not self._before

    def _stored_at(self, region: Region) -> list[int]:
        """Return which sides of the store at hand may share bytes with a region, as places in `_before`."""
        found = self._before_at
        if found is None:
            found = self._before_at = Spans()
            for place, (side, _) in enumerate(self._before):
                found.add(*side.span, place)
        return found.near(region.byte, region.end)

    def same(self, old: Record, new: Record) -> None:
        """Note two stores of the same bytes."""
        both = new.region.common(old.region)
        for one, other in ((old, new), (new, old)):
            if not self._copies(other.unit, both):  # what such a transfer finds there is what the other core left
                key = one.actor, one.number
                units = self._echoes.setdefault(key, {}).setdefault(both, [])
                if not units:
                    self._echoed_at.setdefault(key, Spans()).add(both.byte, both.end, both)
                units.append(other.unit)

    def _copies(self, unit: Unit, region: Region) -> bool:
        """Return whether a transfer reads the bytes of a region, too."""
        key = unit.actor, unit.number
        spans = self._sources.get(key)
        if spans is None:
            sides = unit.word.reads if isinstance(unit.word, Transfer) else ()
            spans = self._sources[key] = tuple(side.span for side in sides if side.space == "HBM")
        return any(low < region.end and high > region.byte for low, high in spans)

    def differ(self, finding: Finding, old: Record, new: Record) -> None:
        """Note a meeting that is a race as far as can be told: a read and a store, or two stores of other bytes."""
        read = None if old.write and new.write else new.unit if old.write else old.unit
        met = _Met(old.unit, new.unit, read, new.region.common(old.region))
        self._met.setdefault(id(finding), []).append(met)
        lost = self._overwritten(met.region) if read is None and self._losses < _MOST else None
        if lost is not None:
            self._losses += 1
            known = self._lost.get(met.region)
            if known is None:
                known = self._lost[met.region] = []
                self._lost_at.add(met.region.byte, met.region.end, met.region)
            known.append(_Lost(met, lost))

    def _overwritten(self, region: Region) -> Bytes | None:
        """Return what the store at hand overwrote of a region, None where that is too much, or not in one piece."""
        if region.nbytes > _KEPT or region.pattern is not None:
            return None
        for place in sorted(self._stored_at(region)):
            side, before = self._before[place]
            low, high = side.span
            steps = [step for step, _ in side.dims]
            if low <= region.byte and region.end <= high and side.nbytes == high - low:
                if steps != sorted(steps, reverse=True):
                    return None
                return before.reshape(-1)[region.byte - low : region.end - low].copy()
        return None

    def stored(self, unit: Unit, region: Region) -> None:
        """Take a store to device memory: it may change nothing, or bring back what its core's earlier one overwrote."""
        if self._before and not self.changes(region):
            self._idle.setdefault((unit.actor, unit.number), Spans()).add(region.byte, region.end, region)
        if not self._losses:
            return
        core = self._core_of(unit)
        for where in self._lost_at.near(region.byte, region.end):
            waiting = self._lost[where]
            if not waiting or not region.overlaps(where):
                continue
            data, _ = self._device.hbm.views(where.byte, where.nbytes)
            kept = []
            for lost in waiting:
                second = lost.met.second
                if core == self._core_of(second) and _is_behind(unit, second) and np.array_equal(data, lost.bytes):
                    self._restored.add(id(lost.met))
                else:
                    kept.append(lost)
            self._lost[where] = kept

    def harmless(self, finding: Finding) -> bool:
        """Return whether every meeting of a finding gives the same bytes in either order."""
        met = self._met.get(id(finding))
        return bool(met) and all(map(self._is_harmless, met or ()))

    def _is_harmless(self, met: _Met) -> bool:
        if met.read is not None:
            # The store changed nothing, or the reader's own core stored the same bytes before it read.
            write = met.second if met.read is met.first else met.first
            idle = self._idle.get((write.actor, write.number))
            near = () if idle is None else idle.near(met.region.byte, met.region.end)
            return _cover(near, met.region) or self._echoed(write, met.read, met.region)
        # The one store is overwritten by its own core, with what the other one brings.
        return (
            id(met) in self._restored
            or self._made_up(met.first, met.second, met.region)
            or self._made_up(met.second, met.first, met.region)
        )

    def _echoed(self, write: Unit, behind: Unit, region: Region) -> bool:
        return self._is_echoed(write, region, lambda unit: _is_behind(behind, unit))

    def _made_up(self, stays: Unit, goes: Unit, region: Region) -> bool:
        return self._is_echoed(stays, region, lambda unit: _is_behind(unit, goes))

    def _is_echoed(self, write: Unit, region: Region, counts: Callable[[Unit], bool]) -> bool:
        """Return whether units that count stored the same bytes as a store, all over a region."""
        key = write.actor, write.number
        stored = self._echoes.get(key)
        if stored is None:
            return False
        near = self._echoed_at[key].near(region.byte, region.end)
        return _cover([both for both in near if any(map(counts, stored[both]))], region)


def _cover(parts: Sequence[Region], whole: Region) -> bool:
    """Return whether every byte of a region of device memory lies in one of several others."""
    if any(part.covers(whole) for part in parts):
        return True
    if len(parts) < 2 or whole.nbytes > _COVERED:
        return False
    missing = np.zeros(whole.nbytes, np.bool_)
    for region, value in ((whole, True), *((part, False) for part in parts)):
        for low, high in region.runs():
            missing[max(low - whole.byte, 0) : max(high - whole.byte, 0)] = value
    return not missing.any()


def _is_behind(unit: Unit, other: Unit) -> bool:
    """Return whether a unit comes behind another one; one that breaks the order of their queue is a race of its own."""
    return unit.number > other.number if unit.actor == other.actor else unit.knows(other.actor, other.number)
