"""Work that both cores of a pair do: accesses that nothing orders, whose order changes nothing.

Kernels that do not split their work let each core store the same bytes to the same place, fill it with zeros before, or
read it again behind. Two such accesses race, and whatever their order is, the bytes are the same: a read finds those
that its own core stored as well, and what one core overwrites with something else it stores again itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from emulator.checks.finding import Finding
from emulator.checks.history import Unit
from emulator.checks.inside import bytes_of
from emulator.checks.shadow import Record
from emulator.device import Device
from emulator.dma.transfer import Side, Transfer
from emulator.events import Event
from formats.named_tuple import NamedTuple
from formats.regions import Region

__all__ = ["Alike"]

_MOST = 4096  # stores that their core may still make up for
_KEPT = 1 << 16  # bytes kept of each
_COVERED = 1 << 24  # bytes of a region that is looked at byte by byte

Bytes = npt.NDArray[np.uint8]


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
        self._echoes: dict[tuple[int, int], list[tuple[Unit, Region]]] = {}
        self._idle: dict[tuple[int, int], list[Region]] = {}  # by writing unit: what it left as it was
        self._lost: list[_Lost] = []
        self._restored: set[int] = set()
        self._before: list[tuple[Side, Bytes]] = []

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program."""
        self._device = device

    def on_effect(self, event: Event) -> None:
        """Keep what a store to device memory is about to overwrite."""
        self._before = []
        if isinstance(event.instruction, Transfer):
            self._before = [
                (side, bytes_of(self._device, side).copy()) for side in event.instruction.writes if side.space == "HBM"
            ]

    def changes(self, region: Region) -> bool:
        """Return whether the store at hand changed bytes of a region."""
        return not self._before or any(
            not np.array_equal(before, bytes_of(self._device, side))
            for side, before in self._before
            if side.span[0] < region.end and side.span[1] > region.byte
        )

    def same(self, old: Record, new: Record) -> None:
        """Note two stores of the same bytes."""
        both = new.region.common(old.region)
        for one, other in ((old, new), (new, old)):
            if not _copies(other.unit, both):  # what such a transfer finds there is what the other core left
                self._echoes.setdefault((one.actor, one.number), []).append((other.unit, both))

    def differ(self, finding: Finding, old: Record, new: Record) -> None:
        """Note a meeting that is a race as far as can be told: a read and a store, or two stores of other bytes."""
        read = None if old.write and new.write else new.unit if old.write else old.unit
        met = _Met(old.unit, new.unit, read, new.region.common(old.region))
        self._met.setdefault(id(finding), []).append(met)
        lost = self._overwritten(met.region) if read is None and len(self._lost) < _MOST else None
        if lost is not None:
            self._lost.append(_Lost(met, lost))

    def _overwritten(self, region: Region) -> Bytes | None:
        """Return what the store at hand overwrote of a region, None where that is too much, or not in one piece."""
        if region.nbytes > _KEPT or region.pattern is not None:
            return None
        for side, before in self._before:
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
            self._idle.setdefault((unit.actor, unit.number), []).append(region)
        core = self._core_of(unit)
        for lost in self._lost:
            met = lost.met
            if (
                id(met) not in self._restored
                and core == self._core_of(met.second)
                and _is_behind(unit, met.second)
                and region.overlaps(met.region)
            ):
                data, _ = self._device.hbm.views(met.region.byte, met.region.nbytes)
                if np.array_equal(data, lost.bytes):
                    self._restored.add(id(met))

    def harmless(self, finding: Finding) -> bool:
        """Return whether every meeting of a finding gives the same bytes in either order."""
        met = self._met.get(id(finding))
        return bool(met) and all(map(self._is_harmless, met or ()))

    def _is_harmless(self, met: _Met) -> bool:
        if met.read is not None:
            # The store changed nothing, or the reader's own core stored the same bytes before it read.
            write = met.second if met.read is met.first else met.first
            idle = self._idle.get((write.actor, write.number), ())
            return _cover(idle, met.region) or self._echoed(write, met.read, met.region)
        # The one store is overwritten by its own core, with what the other one brings.
        return (
            id(met) in self._restored
            or self._made_up(met.first, met.second, met.region)
            or self._made_up(met.second, met.first, met.region)
        )

    def _echoed(self, write: Unit, behind: Unit, region: Region) -> bool:
        stored = self._echoes.get((write.actor, write.number), ())
        return _cover([both for unit, both in stored if _is_behind(behind, unit)], region)

    def _made_up(self, stays: Unit, goes: Unit, region: Region) -> bool:
        stored = self._echoes.get((stays.actor, stays.number), ())
        return _cover([both for unit, both in stored if _is_behind(unit, goes)], region)


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


def _copies(unit: Unit, region: Region) -> bool:
    """Return whether a transfer reads the bytes of a region, too."""
    sides = unit.word.reads if isinstance(unit.word, Transfer) else ()
    return any(side.space == "HBM" and side.span[0] < region.end and side.span[1] > region.byte for side in sides)


def _is_behind(unit: Unit, other: Unit) -> bool:
    """Return whether a unit comes behind another one; one that breaks the order of their queue is a race of its own."""
    return unit.number > other.number if unit.actor == other.actor else unit.knows(other.actor, other.number)
