"""From a NEFF to what a device executes: variables get addresses, pseudo words become real ones. Source: isa.md 9."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from emulator.addresses import AddressMap, address_map
from emulator.context import DeviceContext
from emulator.diagnosis.causes import COLLECTIVE_QUEUES
from emulator.dma.blocks import block_parts
from emulator.dma.collectives import COLLECTIVE, translate_collective
from emulator.dma.direct import DirectContext, send_copies, translate_direct
from emulator.dma.indirect import translate_indirect
from emulator.dma.rings import share_out
from emulator.dma.rows import RowsRequest
from emulator.dma.system import DmaQueue, DmaSystem
from emulator.dma.transfer import Part, Request, Transfer, facts_of
from emulator.errors import LoadError
from emulator.fresh import fill_fresh
from emulator.kept_places import keep_places, take_places
from emulator.kept_streams import KeptStreams, keep_streams, kept_streams
from emulator.loaded import LoadedCore, LoadedModel, LoadedWord
from emulator.placement import DeviceTensor, Placement, place
from formats.engines import ENGINES
from formats.errors import FormatError, UnsupportedError
from formats.isa import (
    Collective,
    DmaDirect2d,
    DmaIndirect,
    Instruction,
    OpcodeCC,
    PseudoDmaDirect2d,
    PseudoDmaTrigger,
    SendReceive,
    Write,
)
from formats.isa.understood import is_understood, unknown_bytes
from formats.neff import DmaBlock, Neff, Subgraph
from formats.neff import Queue as QueueSet
from formats.neff.activation import ActivationFunction, ActivationSet
from formats.neuron_core import SYNC_COUNT, WORD

__all__ = ["load"]


class LoadingDevice(DeviceContext, Protocol):
    """A device, as a program is placed on it: its queues are made here."""

    @property
    def dma(self) -> DmaSystem: ...


def load(neff: Neff, device: LoadingDevice) -> LoadedModel:
    """Place a NEFF on a device: allocate and fill memory, resolve addresses, build queues and prebuilt descriptors.

    Raises LoadError naming whatever the file refers to and does not have, UnsupportedError for DMA operations that are
    not modelled and for whatever in the file is not understood, FormatError where a member is malformed.
    """
    target, subgraphs = neff.target, neff.subgraphs
    if target.generation != device.target.generation:
        raise LoadError(f"file is for {target.generation} ({target.arch_code}), the device is {device.target.name}")
    if not subgraphs:
        raise LoadError("file has no subgraph")
    if len(subgraphs) > len(device.cores):
        raise LoadError(f"file needs {len(subgraphs)} cores, the device has {len(device.cores)}")
    _refuse_unknown(neff)
    placements, shared = _place(neff, device)
    addresses = address_map(target.generation)
    cores = [
        _CoreLoader(subgraph, placement, device, addresses, len(subgraphs)).load()
        for subgraph, placement in zip(subgraphs, placements, strict=True)
    ]
    for tensor in (*neff.inputs, *neff.outputs):
        if tensor.name not in shared:
            raise LoadError(f"{tensor.kind} {tensor.name!r} is no variable of any subgraph")
    return LoadedModel(neff.name or neff.path or "", neff, cores, shared, neff.inputs, neff.outputs)


def _place(neff: Neff, device: LoadingDevice) -> tuple[list[Placement], dict[str, DeviceTensor]]:
    """Return what `place` does, with fresh bytes in memory as they are to be."""
    hbm = device.hbm
    known = take_places(neff, hbm)
    if known is not None:
        return known
    is_empty, begun = not hbm.allocations, hbm.room
    placements, shared = place(neff, hbm)
    for subgraph, placement in zip(neff.subgraphs, placements, strict=True):
        fill_fresh(subgraph, placement.by_name, device.cores[subgraph.index].memory, hbm)
    if is_empty:
        keep_places(neff, hbm, begun, placements, shared)
    return placements, shared


def _refuse_unknown(neff: Neff) -> None:
    """Raise UnsupportedError for the first key or value that is not understood; words are looked at as they load."""
    part = neff.not_understood
    if part is not None:
        raise UnsupportedError(f"{part}; what is not understood is not executed")


class _CoreLoader:
    """Translates the streams of one subgraph."""

    def __init__(
        self, subgraph: Subgraph, placement: Placement, device: LoadingDevice, addresses: AddressMap, cores: int
    ) -> None:
        self.subgraph, self.placement, self.device, self.addresses = subgraph, placement, device, addresses
        self.core, self.cores = subgraph.index, cores
        self.direct = DirectContext(placement, addresses, subgraph.index)
        self.extended = subgraph.dialect == "extended"
        self._bells: dict[tuple[int, int], Write] = {}  # by ring and descriptors
        self._asks_device = False  # whether a word refers to this device
        self.queues: dict[str, DmaQueue] = {
            queue.name: self._queue(queue) for queue in sorted(subgraph.queues.values(), key=lambda q: q.name)
        }

    def _queue(self, queue: QueueSet) -> DmaQueue:
        return self.device.dma.add_queue(
            self.core, queue.name, queue.engine or "", queue.num_queues, queue.all_semaphores, queue.kind
        )

    def load(self) -> LoadedCore:
        words = self._streams()
        functions: dict[int, str] = {}
        for function in self.subgraph.activation_functions:
            functions.setdefault(function.func_id, function.name)
        tables: dict[int, tuple[ActivationFunction, ActivationSet]] = {}
        if self.device.act == "table":
            for each in self.subgraph.activation_sets:
                for function in each.functions:
                    tables.setdefault(function.func_id, (function, each))
        return LoadedCore(
            self.core, self.subgraph, words, functions, self.extended, self.placement, self.queues, tables
        )

    def _streams(self) -> dict[str, list[LoadedWord]]:
        """Return the words of every engine, those of an earlier load where nothing that they depend on is new."""
        queues = list(self.queues.values())
        rings = [(each.name, each.ring, each.engine, each.num_queues, each.semaphores, each.kind) for each in queues]
        condition = (self.placement, rings, self.device.dma.costs.rows_per_engine, self.cores)
        kept = kept_streams(self.subgraph, condition)
        if kept is not None:
            for queue in queues:
                queue.made += kept.made[queue.name]
            return {engine: list(kept.words[engine]) for engine in ENGINES}
        words = {engine: self._stream(engine) for engine in ENGINES}
        if not self._asks_device:
            made = {queue.name: tuple(queue.made) for queue in queues}
            streams = {engine: tuple(words[engine]) for engine in ENGINES}
            keep_streams(self.subgraph, KeptStreams(condition, streams, made))
        return words

    def _stream(self, engine: str) -> list[LoadedWord]:
        if self.subgraph.definition.engines[engine].instructions is None:
            return []
        stream = self.subgraph.streams[engine]
        words = []
        for pc, (word, offset) in enumerate(zip(stream, stream.offsets, strict=True)):
            kind = type(word)
            if not is_understood(word):
                raise UnsupportedError(
                    f"{self.subgraph.name}/{engine} pc {pc}: {word.name} {unknown_bytes(word)[0]}; what is not "
                    "understood is not executed"
                )
            if kind is OpcodeCC:
                continue
            if kind in _TRANSLATED:
                words.append(self._translate(word, pc, offset // WORD, engine))
            else:
                words.append(LoadedWord(word, pc, offset // WORD))
        return words

    def _translate(self, word: Instruction, pc: int, slot: int, engine: str) -> LoadedWord:
        """Return the word as it is executed; an error about one whose line is known says which that is."""
        try:
            return self._translated(word, pc, slot, engine)
        except (FormatError, LoadError) as error:
            source = self.subgraph.source_of(engine, slot)
            if source is None or source.file is None or source.line is None:
                raise
            raise error.found("memcheck:operand", (source.file, source.line)) from None

    def _translated(self, word: Instruction, pc: int, slot: int, engine: str) -> LoadedWord:
        where = f"{self.subgraph.name}/{engine} pc {pc}"
        if isinstance(word, PseudoDmaTrigger):
            return self._trigger(word, pc, slot, engine, where)
        if isinstance(word, SendReceive):
            return self._send(word, pc, slot, engine, where)
        if isinstance(word, DmaIndirect):
            return self._indirect(word, pc, slot, engine, where)
        if isinstance(word, Collective):
            return self._collective(word, pc, slot, engine, where)
        loaded, part = translate_direct(word, self.direct, where)  # type: ignore[arg-type]
        semaphore, increment = loaded.semaphore, loaded.semaphore_increment
        queue = self._dynamic_queue(engine, semaphore, where)
        request = Request(
            queue=queue.name,
            core=self.core,
            engine=engine,
            pc=pc,
            parts=(part,),
            semaphore=semaphore,
            increment=increment,
            instruction=loaded,
        )
        raises = ((self.core, semaphore, increment),)
        return LoadedWord(loaded, pc, slot, partial(Transfer, request), queue.name, raises)

    def _indirect(self, word: DmaIndirect, pc: int, slot: int, engine: str, where: str) -> LoadedWord:
        self._asks_device = True
        rows = translate_indirect(word, self.direct, self.device, where)
        queue = self._dynamic_queue(engine, word.semaphore, where)

        def transfer() -> Transfer:
            request = RowsRequest(
                rows(),
                queue=queue.name,
                core=self.core,
                engine=engine,
                pc=pc,
                semaphore=word.semaphore,
                increment=word.semaphore_increment,
                instruction=word,
            )
            return Transfer(request)

        raises = ((self.core, word.semaphore, word.semaphore_increment),)
        return LoadedWord(word, pc, slot, transfer, queue.name, raises)

    def _collective(self, word: Collective, pc: int, slot: int, engine: str, where: str) -> LoadedWord:
        self._asks_device = True
        name = f"{COLLECTIVE_QUEUES}{word.stream}"
        make = translate_collective(word, self.direct, name, engine, pc, where)
        if name not in self.queues:
            self.queues[name] = self.device.dma.add_queue(self.core, name, engine, 1, (), COLLECTIVE)

        raises = ((self.core, word.semaphore, word.semaphore_increment),)
        return LoadedWord(word, pc, slot, make, name, raises)

    def _dynamic_queue(self, engine: str, semaphore: int, where: str) -> DmaQueue:
        owned = [queue for queue in self.queues.values() if queue.engine == engine and not queue.prebuilt]
        for queue in owned:
            if not queue.semaphores or semaphore in queue.semaphores:
                return queue
        if owned:
            raise LoadError(
                f"{where}: semaphore {semaphore} belongs to no dynamic queue of {engine} "
                f"({', '.join(queue.name for queue in owned)})"
            )
        raise LoadError(f"{where}: {engine} owns no dynamic DMA queue")

    def _send(self, word: SendReceive, pc: int, slot: int, engine: str, where: str) -> LoadedWord:
        if self.cores < 2:
            raise LoadError(f"{where}: SEND_RECEIVE needs a second core, the file has one")
        self._asks_device = True  # for a queue
        peer = 1 - self.core
        name = f"q{engine}SendReceive"
        queue = self.queues.get(name) or self.device.dma.add_queue(self.core, name, engine, 16, (), "dynamic")
        self.queues[name] = queue
        parts = (Part("copy", send_copies(word, self.core, peer, where)),)
        remote = (peer, word.peer_semaphore, word.semaphore_increment)

        request = Request(
            queue=name,
            core=self.core,
            engine=engine,
            pc=pc,
            parts=parts,
            semaphore=word.semaphore,
            increment=word.semaphore_increment,
            remote=remote,
            instruction=word,
        )
        raises = ((self.core, word.semaphore, word.semaphore_increment), remote)
        return LoadedWord(word, pc, slot, partial(Transfer, request), name, raises)

    def _trigger(self, word: PseudoDmaTrigger, pc: int, slot: int, engine: str, where: str) -> LoadedWord:
        block = self.subgraph.dma_blocks.get((word.queue, word.block_id))
        if block is None:
            raise LoadError(f"{where}: no DMA block {word.block_id} of queue {word.queue!r} in any engine's JSON")
        queue = self.queues.get(word.queue)
        if queue is None:
            raise LoadError(f"{where}: queue {word.queue!r} is not in the definition")
        if block.event is not None:
            raise LoadError(
                f"{where}: DMA block {word.block_id} of {word.queue!r} sets event {block.event}; only semaphores "
                "are modelled"
            )
        if not block.descriptors:
            raise FormatError(f"{where}: DMA block {word.block_id} of {word.queue!r} has no descriptors")
        self._check_semaphores(block, where)
        parts = block_parts(block, self.subgraph, self.placement, self.core)
        facts = facts_of(parts)
        remote = (1 - self.core, block.remote_semaphores[0], queue.num_queues) if block.remote_semaphores else None
        increment = 0 if block.semaphore is None else queue.num_queues

        def request(instruction: Instruction) -> Request:
            return Request(
                queue=queue.name,
                core=self.core,
                engine=engine,
                pc=pc,
                parts=parts,
                semaphore=block.semaphore,
                increment=increment,
                remote=remote,
                prebuilt=True,
                instruction=instruction,
                facts=facts,
            )

        loaded = self._doorbell(word, queue, Transfer(request(word)))
        own = () if block.semaphore is None else ((self.core, block.semaphore, increment),)
        raises = own if remote is None else (*own, remote)
        return LoadedWord(loaded, pc, slot, partial(Transfer, request(loaded)), queue.name, raises)

    def _check_semaphores(self, block: DmaBlock, where: str) -> None:
        named = (*block.remote_semaphores, *(() if block.semaphore is None else (block.semaphore,)))
        for index in named:
            if not 0 <= index < SYNC_COUNT:
                raise LoadError(
                    f"{where}: DMA block {block.block_id} of {block.queue!r} raises semaphore {index}, there are "
                    f"{SYNC_COUNT}"
                )
        if block.remote_semaphores and self.cores < 2:
            raise LoadError(
                f"{where}: DMA block {block.block_id} of {block.queue!r} raises semaphores of another core, the file "
                "has one"
            )
        if len(block.remote_semaphores) > 1:
            raise LoadError(
                f"{where}: DMA block {block.block_id} of {block.queue!r} raises {len(block.remote_semaphores)} "
                "semaphores of the other core; one is modelled"
            )

    def _doorbell(self, word: PseudoDmaTrigger, queue: DmaQueue, transfer: Transfer) -> Write:
        """Write a block's descriptors into the queue's rings and return the WRITE that rings the first of them.

        The data are that ring's descriptors, the semaphore write included, destination side first. Where both ends
        are the program's own (kind "data"), the runtime rings that side at load and the word rings the other one only.
        How it rings the other fifteen engines is not public, so the word starts them all.
        """
        shares = share_out(transfer.pieces, self.device.dma.costs.rows_per_engine, queue.num_queues)
        queue.made.append((transfer, shares))
        first, last = shares[0]
        write = self._bells.get((queue.ring, last - first))
        if write is None:
            count = last - first + 1
            tails = [self.addresses.doorbell(self.core, 0, queue.ring, side) for side in ("s2m", "m2s")]
            if queue.kind == "data":
                write = Write(size0=4, address0=tails[1], data0=count)
            else:
                write = Write(size0=4, size1=4, address0=tails[0], address1=tails[1], data0=count, data1=count)
            self._bells[queue.ring, last - first] = write
        # The header keeps flags, waits and updates of the compiler's word.
        return write.headed_like(word)


_TRANSLATED = frozenset((PseudoDmaTrigger, PseudoDmaDirect2d, DmaDirect2d, DmaIndirect, SendReceive, Collective))
