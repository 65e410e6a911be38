"""Which instruction reads some bytes next, or read them last: words near where each engine stands are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.action import regions_of_word
from emulator.dma.regions import regions_of
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from formats.neff import SourceLocation

if TYPE_CHECKING:
    from emulator.machine_view import EngineView, MachineView
    from formats.regions import Region
    from neurontools.debugger.execution import Execution

__all__ = ["Reader", "Readers"]

_NEAR = 256  # words ahead of an engine, and behind it, that are looked at


class Reader(NamedTuple):
    """A word that reads some bytes; `ahead` where it has not completed yet."""

    core: int
    engine: str
    pc: int
    ahead: bool
    source: SourceLocation | None


class Readers:
    """Find readers in one device; what a word reads is worked out once: no register says where it lies."""

    def __init__(self, execution: Execution) -> None:
        self.device: MachineView = execution.device
        self._execution = execution
        self._reads: dict[tuple[int, str, int], tuple[Region, ...]] = {}

    def of(self, region: Region) -> Reader | None:
        """Return the nearest word of the region's core that will read any of its bytes, else the nearest that has."""
        engines = self.device.cores[region.core].engines
        for ahead in (True, False):
            nearest: tuple[int, str, int] | None = None
            for name, own in engines.items():
                index = self._first(region, name, own, ahead, nearest[0] if nearest is not None else _NEAR)
                if index is not None:
                    nearest = abs(index - own.position), name, own.words[index].pc
            if nearest is not None:
                _, name, pc = nearest
                source = self._execution.program.source(region.core, name, pc)
                return Reader(region.core, name, pc, ahead, source)
        return None

    def _first(self, region: Region, name: str, own: EngineView, ahead: bool, near: int) -> int | None:
        start = own.position
        behind = min(start + near, own.count) if ahead else max(start - 1 - near, -1)
        for index in range(start, behind) if ahead else range(start - 1, behind, -1):
            if any(each.overlaps(region) for each in self._read(region.core, name, own, index)):
                return index
        return None

    def _read(self, core: int, name: str, own: EngineView, index: int) -> tuple[Region, ...]:
        key = core, name, index
        found = self._reads.get(key)
        if found is None:
            try:
                found = self._worked_out(own, index)
            except NeuronError:
                found = ()  # a word that cannot be executed reads nothing
            self._reads[key] = found
        return found

    def _worked_out(self, own: EngineView, index: int) -> tuple[Region, ...]:
        loaded = own.words[index]
        if loaded.transfer is None:
            return regions_of_word(own, loaded.word)[0]
        return regions_of(loaded.transfer().reads, self.device.arch.sbuf_bytes.whole)
