"""A program on a device: the words each engine executes, and what the file says about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from emulator.dma.queues import DmaQueue
from emulator.dma.transfer import Transfer
from emulator.placement import DeviceTensor, Placement
from formats.isa import Instruction
from formats.named_tuple import NamedTuple
from formats.neff import Neff, SourceLocation, Subgraph, TensorInfo
from formats.neff.activation import ActivationFunction, ActivationSet
from formats.neff.tiles import Tile, read_tiles
from formats.neuron_core import WORD

__all__ = ["LoadedCore", "LoadedModel", "LoadedWord", "TransferFactory", "source_at"]

TransferFactory = Callable[[], Transfer]


class LoadedWord:
    """One word as the engine executes it.

    `pc` is the instruction's index in the NEFF's stream, `slot` its first 64-byte slot there; `transfer` makes the DMA
    transfer that the word starts when it completes, None for words that start none. `queue` is where it goes, `raises`
    what it raises at its end: (core, semaphore, amount). `key` is what an engine knows it by: all of its bytes, and
    whether it starts a transfer.
    """

    __slots__ = (
        "key",
        "pc",
        "queue",
        "raises",
        "slot",
        "transfer",
        "word",
    )  # read at each issue

    def __init__(
        self,
        word: Instruction,
        pc: int,
        slot: int,
        transfer: TransferFactory | None = None,
        queue: str = "",
        raises: tuple[tuple[int, int, int], ...] = (),
    ) -> None:
        self.word, self.pc, self.slot = word, pc, slot
        self.transfer, self.queue, self.raises = transfer, queue, raises
        self.key: bytes = word.raw if transfer is None else b"starts" + word.raw

    def with_word(self, word: Instruction) -> LoadedWord:
        """Return the same with another word in its place."""
        return LoadedWord(word, self.pc, self.slot, self.transfer, self.queue, self.raises)


@dataclass(frozen=True)
class LoadedCore:
    """What one physical core runs: words per engine, names of activation functions by id, variables.

    `tables` has the functions that are to be computed by the file's tables, by id; none unless the device asks for it.
    `found` is room for what checks know of the program that it is the first core of.
    """

    index: int
    subgraph: Subgraph
    words: dict[str, list[LoadedWord]]
    activation: dict[int, str]
    extended: bool
    placement: Placement
    queues: dict[str, DmaQueue]
    tables: Mapping[int, tuple[ActivationFunction, ActivationSet]] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False, compare=False)

    def source_of(self, engine: str, pc: int) -> SourceLocation | None:
        """Return the source line of the instruction at a compiler pc, or None where nothing is known."""
        return source_at(self.subgraph, engine, pc)

    def word_of(self, engine: str, pc: int) -> Instruction | None:
        """Return a word as the file has it, before the loader put another in its place; None without such a pc."""
        stream = self.subgraph.streams.get(engine, ())
        return stream[pc] if 0 <= pc < len(stream) else None

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """Return the tiles that the file maps; FormatError where its map is malformed."""
        return read_tiles(self.subgraph)


class LoadedModel(NamedTuple):
    """A NEFF on a device; `tensors` holds inputs, outputs and other variables that all cores share, by name."""

    name: str
    neff: Neff
    cores: list[LoadedCore]
    tensors: dict[str, DeviceTensor]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


def source_at(subgraph: Subgraph, engine: str, pc: int) -> SourceLocation | None:
    """Return the source line of the instruction at a compiler pc of a program, or None where nothing is known."""
    offsets = subgraph.streams[engine].offsets
    return subgraph.source_of(engine, offsets[pc] // WORD) if 0 <= pc < len(offsets) else None
