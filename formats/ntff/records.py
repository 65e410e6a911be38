"""Trace records of an NTFF: sixteen bytes each, eight of facts and a 64-bit time.

The layouts were found by pairing the records of ten public captures (version 6, trn2) with the profile that AWS's
profiler printed of each: every field below says how it is known. Records of 25 captures of versions 4 and 5 fit them
without exception, every word in its buffer (`tests/corpus/test_ntff_versions.py`). What is not in `LAYOUT` stays in
`raw`; a record that is none of these raises UnsupportedError.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from formats.engines import ENGINES
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from formats.ntff.clocks import Clocks

__all__ = [
    "ADDRESS",
    "DMA_SOURCE",
    "LAYOUT",
    "OPERATIONS",
    "PER_INSTANCE",
    "RECORD",
    "ClockChange",
    "DmaPacket",
    "Executed",
    "Layout",
    "RawRecord",
    "SignalChange",
    "clock_changes",
    "dma_packets",
    "executed",
    "outside",
    "raw_records",
    "signal_changes",
]

RECORD = 16
_PAIR = struct.Struct("<8sQ")
ADDRESS = 0x1FFFFF  # the bits of a word's address, in words, that a record has room for
PER_INSTANCE = 64  # DMA engines of one instance, whose number their records do not have
DMA_SOURCE = 6  # who changed a semaphore, behind the five engines: DMA or another core
OPERATIONS = {0x1: "set", 0x3: "increment", 0x4: "decrement", 0x5: "add", 0x7: "clear", 0x9: "write"}
_STEPS = {1: "start", 5: "end", 6: "signal"}


class Layout(NamedTuple):
    """One field of a record and how it is known."""

    section: str
    place: str
    meaning: str
    provenance: str
    cite: str


_PAIRS = "ten public captures paired with their profiles"
LAYOUT: tuple[Layout, ...] = (
    Layout(
        "all",
        "8:16",
        "time in picoseconds; on trn1 a count of its own clock (field 10 of the core)",
        "observed",
        _PAIRS + "; for trn1 inferred, formats.md 6.1",
    ),
    Layout("trace", "0:3 bits 0 to 20", "bits 6 to 26 of the word's device address", "observed", _PAIRS),
    Layout("trace", "2 bit 5", "the word is a branch that was taken", "inferred", _PAIRS),
    Layout("trace", "3 bit 0", "0 begin, 1 end", "observed", _PAIRS),
    Layout("trace", "3 bits 2 to 6", "engine: 1 PE, 2 Activation, 3 Pool, 4 DVE, 5 SP", "observed", _PAIRS),
    Layout(
        "trace",
        "6:8 of a begin",
        "evt_wait_time of the profile in cycles of 1.2 GHz; on trn1 of the engine",
        "observed",
        _PAIRS + "; for trn1 inferred, formats.md 6.1",
    ),
    Layout("trace", "4:6, and 4:8 of an end", "unknown; all zero or all ones", "inferred", _PAIRS),
    Layout("notify", "0", "number of the semaphore or event", "observed", _PAIRS),
    Layout("notify", "1 bit 0", "1 semaphore, 0 event", "observed", _PAIRS),
    Layout("notify", "2 bits 0 to 3", "what was done, as in update modes", "inferred", "isa.md 2, " + _PAIRS),
    Layout("notify", "3 bits 2 to 5", "who did it: an engine as above, 6 DMA or another core", "inferred", _PAIRS),
    Layout("notify", "4:8", "value afterwards", "observed", _PAIRS),
    Layout("trace_dma", "0:2", "bytes of the packet, of an end", "observed", _PAIRS),
    Layout("trace_dma", "3 bits 0 to 5", "DMA engine, plus 64 for each instance", "observed", _PAIRS),
    Layout("trace_dma", "4 bits 0 to 3", "1 start, 5 end, 6 unknown (after the end)", "observed", _PAIRS),
    Layout("trace_dma", "4 bits 4 to 7", "ring on that engine", "observed", _PAIRS),
    Layout("trace_dma", "6:8 of an end", "checksum", "observed", _PAIRS),
    Layout("throttle", "2, 4", "n and k: the Tensor engine runs k of n cycles", "observed", _PAIRS),
    Layout("throttle", "5", "type of the change, as the profile has it", "observed", _PAIRS),
    Layout("throttle", "0, 1, 3", "unknown", "inferred", _PAIRS),
)


class RawRecord(NamedTuple):
    """One record as it stands: eight bytes and a time."""

    raw: bytes
    time_ps: int


class Executed(NamedTuple):
    """One execution of a word; `pc` is the loaded pc, `end_ps` is None where its end is not in the capture.

    `waited_ps` is what the device reports as the wait before it. Words that wait for a semaphore on their own
    (EVENT_SEMAPHORE) last as long as they wait.
    """

    core: int
    engine: str
    pc: int
    start_ps: int
    end_ps: int | None
    waited_ps: int

    @property
    def duration_ps(self) -> int:
        """Return how long it took; 0 where the end is not known."""
        return 0 if self.end_ps is None else self.end_ps - self.start_ps


class SignalChange(NamedTuple):
    """A semaphore or event that changed; `cause` is an engine, or "dma" for DMA and other cores."""

    core: int
    kind: str
    number: int
    operation: str
    value: int
    cause: str
    time_ps: int


class DmaPacket(NamedTuple):
    """One packet that a DMA engine moved; `end_ps` is None where its end is not in the capture."""

    core: int
    engine: int
    ring: int
    nbytes: int
    start_ps: int
    end_ps: int | None
    checksum: int


class ClockChange(NamedTuple):
    """From here on the Tensor engine runs `k` of `n` cycles."""

    core: int
    k: int
    n: int
    kind: int
    time_ps: int


def raw_records(data: bytes) -> Iterator[RawRecord]:
    """Yield the records of a section; a last one that is cut off is left out."""
    for raw, time_ps in _PAIR.iter_unpack(data[: len(data) // RECORD * RECORD]):
        yield RawRecord(raw, time_ps)


def executed(
    records: Iterable[RawRecord], core: int, addresses: Mapping[str, tuple[int, int]], clocks: Clocks
) -> Iterator[Executed]:
    """Yield executions in the order in which they began; `addresses` holds (device address, bytes) by engine.

    A record of no word of a buffer is left out: the runtime's own words before the program lie elsewhere.
    """
    begun: dict[tuple[str, int], deque[int]] = {}
    found: list[Executed] = []
    for raw, count in records:
        place = _place(raw, addresses)
        if place is None:
            continue
        clock = clocks.engines[place[0]]
        time_ps = clock.ps(count)
        if not raw[3] & 1:
            waited = clock.cycles(int.from_bytes(raw[6:8], "little"))
            begun.setdefault(place, deque()).append(len(found))
            found.append(Executed(core, *place, time_ps, None, waited))
        # A word of a loop may begin again before it has ended: the first end is that of the first beginning.
        elif open_ := begun.get(place):
            at = open_.popleft()
            found[at] = found[at]._replace(end_ps=time_ps)
    yield from found


def outside(records: Iterable[RawRecord], addresses: Mapping[str, tuple[int, int]]) -> int:
    """Return how many records are of words that no buffer holds."""
    return sum(_place(raw, addresses) is None for raw, _ in records)


def _place(raw: bytes, addresses: Mapping[str, tuple[int, int]]) -> tuple[str, int] | None:
    """Return engine and loaded pc of a trace record, None for a word that no buffer holds."""
    number = raw[3] >> 2 & 0x1F
    if not 1 <= number <= len(ENGINES):
        raise UnsupportedError(f"a trace record names engine {number}: {raw.hex()}")
    engine = ENGINES[number - 1]
    if engine not in addresses:
        return None
    address, nbytes = addresses[engine]
    # Modulo 2^21: buffers are far smaller, so that the bits of the address above do not matter. Of the three bytes bit
    # 21 is another fact, the branch taken.
    pc = int.from_bytes(raw[:3], "little") - (address >> 6) & ADDRESS
    return (engine, pc) if pc * WORD < nbytes else None


def signal_changes(records: Iterable[RawRecord], core: int, clocks: Clocks) -> Iterator[SignalChange]:
    """Yield the changes of semaphores and events."""
    for raw, count in records:
        source = raw[3] >> 2 & 0xF
        operation = OPERATIONS.get(raw[2] & 0xF, f"{raw[2]:#x}")
        yield SignalChange(
            core,
            "semaphore" if raw[1] & 1 else "event",
            raw[0],
            operation,
            int.from_bytes(raw[4:8], "little", signed=True),
            ENGINES[source - 1]
            if 1 <= source <= len(ENGINES)
            else "dma"
            if source == DMA_SOURCE
            else f"source {source}",
            clocks.signals.ps(count),
        )


def dma_packets(records: Iterable[RawRecord], core: int, first: int, clocks: Clocks) -> Iterator[DmaPacket]:
    """Yield packets in the order in which they began; the n-th end of a ring belongs to its n-th start.

    `first` is the number on the device that the section's DMA engine 0 has.
    """
    waiting: dict[tuple[int, int], deque[int]] = {}
    found: list[DmaPacket] = []
    for raw, count in records:
        number, ring, step = raw[3] & 0x3F, raw[4] >> 4, _STEPS.get(raw[4] & 0xF)
        if step is None:
            raise UnsupportedError(f"a record of a DMA packet has the step {raw[4] & 0xF}: {raw.hex()}")
        time_ps, engine = clocks.of_dma(number).ps(count), first + number
        if step == "start":
            waiting.setdefault((engine, ring), deque()).append(len(found))
            found.append(DmaPacket(core, engine, ring, 0, time_ps, None, 0))
        elif step == "end" and (open_ := waiting.get((engine, ring))):
            at = open_.popleft()
            found[at] = found[at]._replace(
                # Sixteen bits for 1 to 65,536: 0 is the full 64 KiB.
                nbytes=int.from_bytes(raw[:2], "little") or 1 << 16,
                end_ps=time_ps,
                checksum=int.from_bytes(raw[6:8], "little"),
            )
    yield from found


def clock_changes(records: Iterable[RawRecord], core: int, clocks: Clocks) -> Iterator[ClockChange]:
    """Yield the changes of the Tensor engine's clock."""
    for raw, time_ps in records:
        if not clocks.one:
            raise UnsupportedError("which clock times the changes of the Tensor engine's own is not established")
        yield ClockChange(core, raw[4], raw[2], raw[5], time_ps)
