"""Trace records of an NTFF: sixteen bytes each, eight of facts and a 64-bit time.

The layouts were found by pairing the records of ten public captures (version 6, trn2) with the profile that AWS's
profiler printed of each: every field below says how it is known. What is not in `LAYOUT` stays in `raw`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from formats.neff import ENGINES

__all__ = ["LAYOUT", "RECORD", "ClockChange", "DmaPacket", "Executed", "Layout", "RawRecord", "SignalChange",
           "clock_changes", "dma_packets", "executed", "raw_records", "signal_changes"]  # fmt: skip

RECORD = 16
_PAIR = struct.Struct("<8sQ")
_CYCLES_PER_US = 1200       # the counter of waits runs at 1.2 GHz
_OUTSIDE = 6
_ADDRESS = 0x1FFFFF
_OPERATIONS = {0x1: "set", 0x3: "increment", 0x4: "decrement", 0x5: "add", 0x7: "clear", 0x9: "write"}
_STEPS = {1: "start", 5: "end", 6: "signal"}
_DMA_BASE = 64              # DMA engines of one instance


class Layout(NamedTuple):
    """One field of a record and how it is known."""

    section: str
    place: str
    meaning: str
    provenance: str
    cite: str


_PAIRS = "ten public captures paired with their profiles"
LAYOUT: tuple[Layout, ...] = (
    Layout("all", "8:16", "time in picoseconds", "observed", _PAIRS),
    Layout("trace", "0:3 bits 0 to 20", "bits 6 to 26 of the word's device address", "observed", _PAIRS),
    Layout("trace", "2 bit 5", "the word is a branch that was taken", "inferred", _PAIRS),
    Layout("trace", "3 bit 0", "0 begin, 1 end", "observed", _PAIRS),
    Layout("trace", "3 bits 2 to 6", "engine: 1 PE, 2 Activation, 3 Pool, 4 DVE, 5 SP", "observed", _PAIRS),
    Layout("trace", "6:8 of a begin", "evt_wait_time of the profile in cycles of 1.2 GHz", "observed", _PAIRS),
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
    """Yield the records of a section; a cut-off last one is left out."""
    for raw, time_ps in _PAIR.iter_unpack(data[:len(data) // RECORD * RECORD]):
        yield RawRecord(raw, time_ps)


def executed(records: Iterable[RawRecord], core: int, addresses: dict[str, tuple[int, int]]) -> Iterator[Executed]:
    """Yield executions in the order in which they began; `addresses` holds (device address, bytes) by engine.

    A record that names no word of a buffer is left out: there is no telling what it is of.
    """
    begun: dict[tuple[str, int], list[int]] = {}
    found: list[Executed] = []
    for raw, time_ps in records:
        number = raw[3] >> 2 & 0x1F
        engine = ENGINES[number - 1] if 1 <= number <= len(ENGINES) else ""
        if engine not in addresses:
            continue
        address, nbytes = addresses[engine]
        pc = int.from_bytes(raw[:3], "little") - (address >> 6) & _ADDRESS
        if pc * 64 >= nbytes:
            continue
        if not raw[3] & 1:
            waited = int.from_bytes(raw[6:8], "little") * 1_000_000 // _CYCLES_PER_US
            begun.setdefault((engine, pc), []).append(len(found))
            found.append(Executed(core, engine, pc, time_ps, None, waited))
        elif open_ := begun.get((engine, pc)):
            at = open_.pop(0)
            found[at] = found[at]._replace(end_ps=time_ps)
    yield from found


def signal_changes(records: Iterable[RawRecord], core: int) -> Iterator[SignalChange]:
    """Yield the changes of semaphores and events."""
    for raw, time_ps in records:
        source = raw[3] >> 2 & 0xF
        operation = _OPERATIONS.get(raw[2] & 0xF, f"{raw[2]:#x}")
        yield SignalChange(
            core,
            "semaphore" if raw[1] & 1 else "event",
            raw[0],
            operation,
            int.from_bytes(raw[4:8], "little", signed=True),
            ENGINES[source - 1] if 1 <= source <= len(ENGINES) else "dma" if source == _OUTSIDE else f"source {source}",
            time_ps,
        )


def dma_packets(records: Iterable[RawRecord], core: int, instance: int) -> Iterator[DmaPacket]:
    """Yield packets in the order in which they began; the n-th end of a ring belongs to its n-th start."""
    waiting: dict[tuple[int, int], list[int]] = {}
    found: list[DmaPacket] = []
    for raw, time_ps in records:
        engine, ring, step = (raw[3] & 0x3F) + instance * _DMA_BASE, raw[4] >> 4, _STEPS.get(raw[4] & 0xF)
        if step == "start":
            waiting.setdefault((engine, ring), []).append(len(found))
            found.append(DmaPacket(core, engine, ring, 0, time_ps, None, 0))
        elif step == "end" and (open_ := waiting.get((engine, ring))):
            at = open_.pop(0)
            found[at] = found[at]._replace(nbytes=int.from_bytes(raw[:2], "little") or 1 << 16, end_ps=time_ps,
                                           checksum=int.from_bytes(raw[6:8], "little"))
    yield from found


def clock_changes(records: Iterable[RawRecord], core: int) -> Iterator[ClockChange]:
    """Yield the changes of the Tensor engine's clock."""
    for raw, time_ps in records:
        yield ClockChange(core, raw[4], raw[2], raw[5], time_ps)
