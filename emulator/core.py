"""One physical core: memories, semaphores, events and five engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from emulator.access import Resolver
from emulator.cost import Contention
from emulator.cost.contention import ContentionState
from emulator.engines import PeState
from emulator.engines.pe_state import PeSnapshot
from emulator.generators import GeneratorBank, GeneratorsState
from emulator.memory import ChipMemory
from emulator.memory_state import ChipState
from emulator.scratch import lend
from emulator.semaphores import CountersState, Events, Semaphores
from emulator.sequencer import Sequencer
from emulator.standing import SequencerState
from emulator.workspace import give_back, take_workspace
from formats.engines import ENGINES
from formats.isa import ActivationFunction
from formats.named_tuple import NamedTuple

if TYPE_CHECKING:
    from emulator.context import DeviceContext
    from emulator.loaded import LoadedCore, LoadedWord
    from emulator.placement import DeviceTensor
    from formats.isa import Instruction
    from formats.neff import SourceLocation
    from formats.neff.tiles import Tile

__all__ = ["Core", "CoreState"]

# of a core whose program brings no table
_NAMES: Mapping[int, str] = {int(function): function.name.lower() for function in ActivationFunction}


class CoreState(NamedTuple):
    """The state of one core; engines in order."""

    memory: ChipState
    semaphores: CountersState
    events: CountersState
    pe: PeSnapshot
    contention: ContentionState
    generators: GeneratorsState
    engines: tuple[SequencerState, ...]


class Core:
    """One physical core; `sbuf` and `psum` are (128, bytes) uint8 arrays, `engines` maps names to sequencers."""

    NOT_STATE: ClassVar = {
        **dict.fromkeys(("device", "index", "resolver", "workspace"), "wiring"),
        **dict.fromkeys(("activation", "extended", "loaded", "tables"), "the program"),
        "_bound_words": "a cache",
        "_released": "nothing may happen after that",
    }

    def __init__(self, device: DeviceContext, index: int) -> None:
        arch = device.arch
        self.device, self.index = device, index
        self.workspace = workspace = take_workspace(arch, index)
        self.memory: ChipMemory = workspace.memory
        self.resolver: Resolver = workspace.resolver
        lend(self, workspace.arena)
        self.semaphores = Semaphores(self)
        self.events = Events(self)
        self.pe: PeState = workspace.pe
        self.generators = GeneratorBank()
        self.contention = Contention(arch, device.costs.without)
        self.extended = True
        self.activation: Mapping[int, str] = _NAMES
        self.tables: Mapping[int, Any] = {}
        self._bound_words: dict[str, Any] | None = None
        self.loaded: LoadedCore | None = None
        self._released = False
        self.engines: dict[str, Sequencer] = {name: Sequencer(self, name) for name in ENGINES}

    def load(self, loaded: LoadedCore) -> None:
        """Take over a program."""
        self.loaded, self.activation, self.extended = loaded, loaded.activation, loaded.extended
        self.tables, self._bound_words = loaded.tables, None
        self.load_words(loaded.words)

    def load_words(self, words: Mapping[str, Sequence[LoadedWord]]) -> None:
        """Give every engine its stream."""
        for name, sequencer in self.engines.items():
            sequencer.load(words.get(name, ()))

    @property
    def bound_words(self) -> dict[str, Any]:
        """Return what earlier devices left of bound words, by engine; the first that asks decides for which program."""
        found = self._bound_words
        if found is None:
            device = self.device
            condition = (
                device.timing,
                device.costs.without,
                self.extended,
                len(device.cores),
                tuple(self.activation.items()),
            )
            found = self._bound_words = self.workspace.words_under(condition)
        return found

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

    def source_of(self, engine: str, pc: int) -> SourceLocation | None:
        """Return the source location of a word, None where the program has none."""
        return None if self.loaded is None else self.loaded.source_of(engine, pc)

    def file_word(self, engine: str, pc: int) -> Instruction | None:
        """Return a word as the file has it, before the loader put another in its place; None without such a pc."""
        return None if self.loaded is None else self.loaded.word_of(engine, pc)

    def text_of(self, engine: str, pc: int) -> str:
        """Return the text of a word as the file has it, "" without such a pc."""
        word = self.file_word(engine, pc)
        return "" if word is None else word.text

    @property
    def variables(self) -> Mapping[str, DeviceTensor]:
        """Return the variables in device memory that the core's program names."""
        return {} if self.loaded is None else self.loaded.placement.by_name

    @property
    def tiles(self) -> Sequence[Tile]:
        """Return what the file maps to SBUF and PSUM; FormatError where its map is malformed."""
        return () if self.loaded is None else self.loaded.tiles

    def snapshot(self) -> CoreState:
        """Return the state as a value, for `restore`."""
        engines = tuple(engine.snapshot() for engine in self.engines.values())
        return CoreState(
            self.memory.snapshot(),
            self.semaphores.snapshot(),
            self.events.snapshot(),
            self.pe.snapshot(),
            self.contention.snapshot(),
            self.generators.snapshot(),
            engines,
        )

    def restore(self, state: CoreState) -> None:
        """Return to a state that `snapshot` gave."""
        self.memory.restore(state.memory)
        self.semaphores.restore(state.semaphores)
        self.events.restore(state.events)
        self.pe.restore(state.pe)
        self.contention.restore(state.contention)
        self.generators.restore(state.generators)
        for engine, held in zip(self.engines.values(), state.engines, strict=True):
            engine.restore(held)

    def release(self) -> None:
        """Give memories and program back to the process; the core is of no use after that."""
        if self._released:
            return
        self._released = True
        self.loaded = None
        for engine in self.engines.values():
            engine.release()
        self.semaphores.release()
        self.events.release()
        del self.device
        give_back(self.workspace)

    def digest(self, into: Any) -> None:
        """Feed memories, counters, registers and engine positions to a hash."""
        self.memory.digest(into)
        into.update(repr((self.semaphores.values, self.events.values)).encode())
        for name, engine in self.engines.items():
            into.update(repr((name, engine.completed, engine.pc, engine.registers)).encode())
            into.update(engine.accumulators)
        into.update(self.pe.fingerprint())
        self.generators.digest(into)
