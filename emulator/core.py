"""One physical core: memories, semaphores, events and five engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator import generators
from emulator.access import Resolver
from emulator.cost import Contention
from emulator.engines import PeState
from emulator.memory import ChipMemory
from emulator.semaphores import Events, Semaphores
from emulator.sequencer import Sequencer
from formats.isa import ENGINES, ActivationFunction

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.loader import LoadedCore, LoadedWord

__all__ = ["Core"]


class Core:
    """One physical core; `sbuf` and `psum` are (128, bytes) uint8 arrays, `engines` maps names to sequencers."""

    def __init__(self, device: Device, index: int) -> None:
        arch = device.arch
        self.device, self.index = device, index
        self.memory = ChipMemory(index, arch.partitions.whole, arch.sbuf_bytes.whole, arch.psum_bytes.whole,
                                 arch.psum_bank.whole)
        self.resolver = Resolver(self.memory, arch)
        self.semaphores = Semaphores(self)
        self.events = Events(self)
        self.pe = PeState()
        self.contention = Contention(arch, device.costs.without)
        self.extended = True
        self.activation: Mapping[int, str] = {int(f): f.name.lower() for f in ActivationFunction}
        self.tables: Mapping[int, Any] = {}
        self.loaded: LoadedCore | None = None
        self.engines: dict[str, Sequencer] = {name: Sequencer(self, name) for name in ENGINES}

    def load(self, loaded: LoadedCore) -> None:
        """Take over a program."""
        self.loaded, self.activation, self.extended = loaded, loaded.activation, loaded.extended
        self.tables = loaded.tables
        self.load_words(loaded.words)

    def load_words(self, words: Mapping[str, Sequence[LoadedWord]]) -> None:
        """Give every engine its stream."""
        for name, sequencer in self.engines.items():
            sequencer.load(words.get(name, ()))

    @property
    def sbuf(self) -> npt.NDArray[np.uint8]:
        """Return SBUF."""
        return self.memory.sbuf

    @property
    def psum(self) -> npt.NDArray[np.uint8]:
        """Return PSUM."""
        return self.memory.psum

    @property
    def sbuf_written(self) -> npt.NDArray[np.bool_]:
        """Return which bytes of SBUF were written."""
        return self.memory.sbuf_written

    @property
    def psum_written(self) -> npt.NDArray[np.bool_]:
        """Return which bytes of PSUM were written."""
        return self.memory.psum_written

    def source_of(self, engine: str, pc: int) -> object | None:
        """Return the source location of a word, None where the program has none."""
        return None if self.loaded is None else self.loaded.source_of(engine, pc)

    def digest(self, into: Any) -> None:
        """Feed memories, counters, registers and engine positions to a hash."""
        self.memory.digest(into)
        into.update(repr((self.semaphores.values, self.events.values)).encode())
        for name, engine in self.engines.items():
            into.update(repr((name, engine.completed, engine.pc, engine.registers)).encode())
            into.update(engine.accumulators)
        into.update(self.pe.fingerprint())
        generators.digest(self, into)
