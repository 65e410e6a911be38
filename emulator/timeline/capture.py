"""A run as the profile captures of the runtime hold it: what each core executed, moved and signalled, as records.

Words of a core begin and end as profiles show them. Packets of a transfer share the time that their DMA engine had for
it evenly: the emulator plans transfers, not packets (ours). Nothing is put before or after the compiler's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from emulator.cost.instructions import shown_ps
from emulator.dma.rings import share_out
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import EngineTrack, QueueTrack
from formats.engines import ENGINES
from formats.neuron_core import DESCRIPTOR_LIMIT, DMA_ENGINES, WORD
from formats.ntff.metadata import DmaRing
from formats.ntff.pcmap import DELETED, Edit
from formats.ntff.records import PER_INSTANCE
from formats.ntff.writer import CoreContents, begin_record, end_record, packet_records, signal_record

if TYPE_CHECKING:
    from emulator.core import Core
    from emulator.device import Device
    from emulator.dma.transfer import Transfer
    from emulator.events import SemaphoreChange
    from emulator.loaded import LoadedWord
    from emulator.observers import Occupation
    from emulator.sequencer import Sequencer

__all__ = ["Capture", "Records"]

_SIGNAL = 4  # bytes that a transfer writes on each ring when it is through
AddressOf = Callable[[int, str], int]
Records = dict[tuple[str, int], bytes]
Spans = dict[tuple[int, int], tuple[int, int]]  # DMA engine, transfer: from when until when it had the engine


class Capture:
    """An observer that keeps everything a capture needs of one run; `attach` it to the device before it moves."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._signals: dict[int, list[tuple[SemaphoreChange, str | None, int]]] = {}

    def attach(self, device: Device) -> None:
        """Begin with a device that is loaded."""
        self._recorder = Recorder(device)

    @property
    def recorder(self) -> Recorder:
        """Return the recorder behind it."""
        assert self._recorder is not None, "attached"
        return self._recorder

    # --- what the device reports -------------------------------------------------------------------------------------

    def on_word(self, engine: Sequencer, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Note a word that completed and what it signals."""
        self.recorder.on_word(engine, number, now, changes)
        for change in changes:
            whose = engine.name if change.core == engine.core.index else None
            self._signals.setdefault(change.core, []).append((change, whose, now))

    def on_transfer(self, transfer: Transfer, number: int, now: int, changes: tuple[SemaphoreChange, ...]) -> None:
        """Note a transfer that completed and what it signals."""
        self.recorder.on_transfer(transfer, number, now, changes)
        for change in changes:
            self._signals.setdefault(change.core, []).append((change, None, now))

    def on_issue(self, engine: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Note a word that issues."""
        self.recorder.on_issue(engine, loaded, now)

    def on_plan(self, transfer: Transfer, memory: Occupation | None) -> None:
        """Note what a transfer occupies."""
        self.recorder.on_plan(transfer, memory)

    # --- what a capture says -----------------------------------------------------------------------------------------

    def cores(
        self, first: int, address_of: AddressOf, memory: Mapping[int, Mapping[str, int]], begin_ps: int = 0
    ) -> list[CoreContents]:
        """Return the contents of each core of the device, the first of which has this number among the chip's.

        `address_of` says where the stream of a core and an engine was loaded, `memory` what it uses; times count from
        `begin_ps` on.
        """
        return [
            _contents(core, first + core.index, address_of, memory.get(core.index, {}), self.records(core.index, first,
                      address_of, begin_ps), self.recorder.device)
            for core in self.recorder.device.cores
            if core.loaded is not None
        ]  # fmt: skip

    def records(self, core: int, first: int, address_of: AddressOf, begin_ps: int) -> Records:
        """Return the records of one core by kind and instance, in the order of their times."""
        found: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
        spans: Spans = {}
        for (kind, whose, engine), holds in self.recorder.holds.items():
            if kind == "dma" and whose == core:
                for row in range(len(holds)):
                    hold = holds[row]
                    spans[engine, hold.transfer] = hold.start_ps, hold.end_ps
        for owner, track in self.recorder.tracks.items():
            if owner.core != core:
                continue
            if isinstance(track, EngineTrack):
                words = self._words(core, owner.name, track, address_of(core, owner.name), begin_ps)
                found.setdefault(("trace", 0), []).extend(words)
            elif isinstance(track, QueueTrack):
                for engine, time, record in self._packets(core, first + core, owner.name, track, spans, begin_ps):
                    found.setdefault(("trace_dma", engine // PER_INSTANCE), []).append((time, record))
        for change, cause, time in self._signals.get(core, ()):
            record = signal_record(change.kind, change.number, _operation(change), change.new, cause, begin_ps + time)
            found.setdefault(("notify", 0), []).append((time, record))
        return {key: b"".join(record for _, record in sorted(rows, key=lambda row: row[0]))
                for key, rows in found.items()}  # fmt: skip

    def _words(
        self, core: int, engine: str, track: EngineTrack, address: int, begin_ps: int
    ) -> Iterator[tuple[int, bytes]]:
        device = self.recorder.device
        offsets = _offsets(device.cores[core], engine)
        words = device.cores[core].engines[engine].words
        for row, start in enumerate(track.start):
            position = track.position[row]
            place = address + offsets[position]
            yield start, begin_record(engine, place, begin_ps + start, track.waited[row])
            if row < len(track.completed):
                shown = shown_ps(words[position].word, engine, device.arch)
                end = track.shown_end(row, shown)
                yield end, end_record(engine, place, begin_ps + end)

    def _packets(
        self, core: int, number: int, queue: str, track: QueueTrack, spans: Spans, begin_ps: int
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield the DMA engine, the time and the records of each packet of a queue; the oldest transfer first."""
        device = self.recorder.device
        found = device.dma.queue(core, queue)
        last: dict[int, int] = {}  # rings serve transfers in their order
        for row in sorted(range(len(track)), key=track.transfer.__getitem__):
            start, end = track.start[row], track.completed[row]
            pieces, nbytes = track.pieces[row], track.nbytes[row]
            each = nbytes // pieces if pieces else 0
            shares = share_out(pieces, device.costs.dma.rows_per_engine, found.num_queues)
            for ring, (low, high) in enumerate(shares):
                engine = number * DMA_ENGINES + ring
                held, through = spans.get((ring, track.transfer[row]), (start, end))
                sizes = list(_cut(each, high - low))
                # The transfer starts with its first data and ends with its last signal, whatever an engine waited for.
                begun = max(start, held) if ring else start
                over = end if ring == len(shares) - 1 else min(end, max(begun, through))
                begun = min(over, max(begun, last.get(ring, 0)))
                last[ring] = over
                for index, size in enumerate(sizes):
                    at, until = (begun + (over - begun) * turn // len(sizes) for turn in (index, index + 1))
                    yield engine, at, packet_records(engine, found.ring, size, begin_ps + at, begin_ps + until)
                yield engine, over, packet_records(engine, found.ring, _SIGNAL, begin_ps + over, begin_ps + over)


def _cut(nbytes: int, times: int) -> Iterator[int]:
    """Yield the packets of so many descriptors of a size."""
    for _ in range(times):
        for at in range(0, nbytes, DESCRIPTOR_LIMIT):
            yield min(DESCRIPTOR_LIMIT, nbytes - at)


def _operation(change: SemaphoreChange) -> str:
    """Return what was done to a semaphore or event, as far as its values say."""
    if change.kind == "event":
        return "set" if change.new else "clear"
    step = change.new - change.old
    # words that step by one have modes of their own
    return {1: "increment", -1: "decrement"}.get(step, "add" if step > 0 else "write")


def _offsets(core: Core, engine: str) -> list[int]:
    """Return where each word of an engine begins in its loaded stream."""
    offsets, at = [], 0
    for word in core.engines[engine].words:
        offsets.append(at)
        at += len(word.word.raw)
    return offsets


def _contents(
    core: Core, number: int, address_of: AddressOf, memory: Mapping[str, int], records: Records, device: Device
) -> CoreContents:
    assert core.loaded is not None
    subgraph = core.loaded.subgraph
    streams: dict[str, tuple[int, bytes]] = {}
    edits: dict[str, list[Edit]] = {}
    for engine in ENGINES:
        words = core.engines[engine].words
        streams[engine] = address_of(core.index, engine), b"".join(word.word.raw for word in words)
        edits[engine], slot, at = [], 0, 0
        for word in words:
            if word.slot > slot:
                edits[engine].append(Edit(at, word.slot - slot, DELETED))
            # a gap between slots is words of the compiler that the loader dropped
            slot, at = word.slot + len(word.word.raw) // WORD, at + len(word.word.raw)
        left = len(subgraph.stream_bytes(engine)) // WORD - slot
        if left > 0:
            edits[engine].append(Edit(at, left, DELETED))
    rings = [
        DmaRing(number * DMA_ENGINES + engine, queue.ring, queue.name)
        for queue in device.dma.queues
        if queue.core == core.index
        for engine in range(queue.num_queues)
    ]
    return CoreContents(subgraph.name, number, streams, edits, rings, memory, records)
