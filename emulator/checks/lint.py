"""lint: work that no output needs. Stores that nothing reads, loads of what is there, waits for what is known.

Every byte on chip and in device memory has the number of the word or transfer that wrote it last (`writers.py`).
Advice, never an error: what cannot be said for certain is not said. A store counts as dead only where no byte of it was
read, in any execution; a load as a reload only where the earlier copy could have served all reads of the later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from emulator.checks.clocks import Clocks
from emulator.checks.finding import Finding, Site
from emulator.checks.kinds import KINDS
from emulator.checks.needless import NeedlessWaits
from emulator.checks.place import Names, site_of
from emulator.checks.serial import SerialQueues
from emulator.checks.writers import Numbers, Writers
from emulator.device import Device
from emulator.dma.regions import side_regions
from emulator.dma.transfer import Side, Transfer
from emulator.events import Event
from emulator.loaded import LoadedWord
from emulator.sequencer import Sequencer
from formats import isa
from formats.isa import Dataflow, ReduceCommand
from formats.isa.behaviour import EngineState
from formats.named_tuple import NamedTuple
from formats.neuron_core import SBUF_PARTITION_STRIDE
from formats.regions import Region

__all__ = ["Lint"]

_SCRATCH = frozenset(("virtual", "tmp-buf"))
_MEMORIES = ("hbm", "sbuf", "psum")
_COPIES = 4  # loads of the same bytes that are kept in mind
# These reach memory by addresses in registers or in the word, without regions that observers could look at.
_HIDDEN = (isa.TensorLoad, isa.TensorStore, isa.Unknown)
_WHOLE = frozenset((Dataflow.SCATTER, Dataflow.CHOICE, Dataflow.PERMUTATION, Dataflow.GATHER))

Place = tuple[int, str, int]


class _Store:
    """What one word writes, over all of its executions; `live` once somebody read of it or may have."""

    __slots__ = ("count", "event", "live", "region", "written")

    def __init__(self, event: Event, region: Region) -> None:
        self.event, self.region = event, region
        self.count = self.written = 0
        self.live = False


class _Load(NamedTuple):
    """One load of device memory: its number and where it put the bytes."""

    number: int
    event: Event
    regions: tuple[Region, ...]


class Lint:
    """Watch a run for stores that nothing reads, loads of what is there, and waits for what is known."""

    name = "lint"

    def __init__(self, clocks: Clocks) -> None:
        self.findings: list[Finding] = []
        self._waits = NeedlessWaits(clocks)
        self._queues = SerialQueues(clocks)
        self._stores: dict[Place, _Store] = {}
        self._by_number: list[_Store | None] = [None]
        self._read = bytearray(1)  # by number, whether anybody read of it
        self._loads: dict[tuple[Any, ...], list[_Load]] = {}
        self._open: dict[int, tuple[_Load, _Load]] = {}  # later loads that an earlier copy could serve so far
        self._again: dict[int, tuple[_Load, _Load]] = {}  # those that lie where the earlier one lay
        self._hidden = False

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and its inputs."""
        self.device = device
        self._width = device.arch.sbuf_bytes.whole
        self._names = Names(device)
        self._writers = Writers(device)
        self._waits.attach(device)
        self._queues.attach(device)
        named = [each for core in device.cores for each in core.variables.values()]
        self._scratch = [(one.address, one.address + one.nbytes) for one in named if one.kind in _SCRATCH]

    def on_issue(self, sequencer: Sequencer, loaded: LoadedWord, now: int) -> None:
        """Let waits be judged before the clocks join what they tell."""
        self._waits.on_issue(sequencer, loaded, now)
        self._queues.on_issue(sequencer, loaded, now)

    def on_event(self, event: Event) -> None:
        """Take what a word or transfer read, then what it wrote."""
        if event.kind not in ("dma", "instruction"):
            return
        word = event.instruction
        if isinstance(word, _HIDDEN) or (isinstance(word, isa.Write) and self._stores_there(word)):
            self._hidden = True
        for region in event.reads:
            self._reads(region)
        writes = event.writes
        if not writes:
            return
        if isinstance(word, Transfer):
            exact = all(_exact(side, side_regions(side, self._width)) for side in word.writes)
        else:
            exact = not (word.KEEPS or word.adds or word.DATAFLOW in _WHOLE)
        if not exact:
            for region in writes:
                self._reads(region)
        number = self._number(event, writes[0])
        load = _key(word) if isinstance(word, Transfer) and exact else None
        if load is not None:
            self._loaded(load, word, _Load(number, event, tuple(writes)))
        for region in writes:
            self._writers.write(region, number)

    def _stores_there(self, word: isa.Write) -> bool:
        """Return whether a WRITE goes to memory; nearly all go to doorbells and semaphores."""
        places = ((word.size0, word.address0), (word.size1, word.address1))
        return any(size and self.device.addresses.locate(int(address)).kind in _MEMORIES for size, address in places)

    # --- who wrote which byte ----------------------------------------------------------------------------------------

    def _number(self, event: Event, region: Region) -> int:
        place = event.core, event.engine, event.pc
        store = self._stores.get(place)
        if store is None:
            store = self._stores[place] = _Store(event, region)
        store.count += 1
        word = event.instruction
        # Later words go on with its random numbers, or with accumulators: results in memory are not all.
        state = EngineState.NONE if isinstance(word, Transfer) else word.STATE
        stateful = state not in (EngineState.NONE, EngineState.OPTIONAL)
        if stateful or int(getattr(word, "reduce_command", 0)) != ReduceCommand.IDLE:
            store.live = True
        if not all(self._may_be_dead(each) for each in event.writes):
            store.live = True
        self._by_number.append(store)
        self._read.append(0)
        return len(self._by_number) - 1

    def _may_be_dead(self, region: Region) -> bool:
        return region.space != "HBM" or any(low <= region.byte and region.end <= high for low, high in self._scratch)

    def _reads(self, region: Region) -> None:
        writers = self._writers.of(region)
        if not writers.size:
            return
        numbers = _distinct(writers)
        for number in numbers:
            self._read[number] = True
            if number in self._open and not (len(numbers) == 1 and self._holds(self._open[number][0])):
                del self._open[number]

    # --- loads -------------------------------------------------------------------------------------------------------

    def _holds(self, load: _Load) -> bool:
        return all(bool((self._writers.of(region) == load.number).all()) for region in load.regions)

    def _loaded(self, key: tuple[Any, ...], transfer: Transfer, load: _Load) -> None:
        """Compare a load with those of the same bytes whose copies are still there."""
        known = self._loads.setdefault(key, [])
        for earlier in reversed(known):
            if self._holds(earlier) and self._unchanged(transfer, earlier.number):
                if earlier.regions == load.regions:
                    self._again[load.number] = earlier, load
                elif self._swapped(earlier.event, load.event) and not self._read[earlier.number]:
                    self._open[earlier.number] = load, earlier
                else:
                    self._open[load.number] = earlier, load
                break
        known.append(load)
        del known[:-_COPIES]

    def _swapped(self, first: Event, second: Event) -> bool:
        """Return whether of two loads that were under way together the one that ended first comes later in the text."""
        one, other = self._site(first, "", ""), self._site(second, "", "")
        lines = getattr(one.source, "line", 0), getattr(other.source, "line", 0)
        return second.issued_ps < first.time_ps and lines[0] > lines[1]

    def _unchanged(self, transfer: Transfer, since: int) -> bool:
        for side in transfer.reads:
            for region in side_regions(side, self._width):
                writers = self._writers.of(region)
                if writers.size and int(writers.max()) > since:
                    return False
        return True

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Report, where the program came to its end: what would have been read behind a fault is not known."""
        if self.device.outcome != "finished":
            return
        if not self._hidden:
            for store, number in zip(self._by_number[1:], range(1, len(self._by_number)), strict=True):
                if store is not None and self._read[number]:
                    store.live = True
            found = [*self._dead(), *self._reloads()]
        else:
            found = []
        needless = list(self._waits.findings())
        told = {(one.site.core, one.site.engine, one.site.pc) for one in needless}
        serial = (one for one in self._queues.findings() if (one.site.core, one.site.engine, one.site.pc) not in told)
        self.findings = list(_merged([*found, *needless, *serial]))

    def _dead(self) -> Iterator[Finding]:
        for store in self._stores.values():
            if store.live:
                continue
            site, name = self._site(store.event, "writes", "dst"), self._name(store.event, store.region)
            yield self._finding(
                "dead-store", f"{site.engine} pc {site.pc} writes {name or store.region.space}, and nothing reads it",
                site, (), store.region, name,
                "leave it out, unless it is there for its time alone (a warm-up)", executions=store.count)  # fmt: skip

    def _reloads(self) -> Iterator[Finding]:
        for number, (earlier, load) in sorted((self._again | self._open).items()):
            if not self._read[number]:
                continue  # a dead store, and told as one
            site, first = self._site(load.event, "loads", "src"), self._site(earlier.event, "loads", "src")
            source = side_regions(load.event.instruction.reads[0], self._width)[0]
            name = self._name(load.event, source)
            nbytes = sum(side.nbytes for side in load.event.instruction.reads)
            yield self._finding(
                "reload", f"{site.engine} pc {site.pc} loads {nbytes} bytes of {name or 'HBM'} that are in "
                f"{self._name(earlier.event, earlier.regions[0]) or earlier.regions[0].text} already, unchanged",
                site, (first,), source, name,
                "leave it out: the copy is there" if number in self._again else "read the earlier tile instead",
                bytes=nbytes)  # fmt: skip

    def _finding(self, kind: str, message: str, site: Site, others: tuple[Site, ...], region: Region, name: str,
                 hint: str, **details: object) -> Finding:  # fmt: skip
        severity = KINDS[f"lint:{kind}"].severity
        return Finding("lint", kind, severity, message, site, others, region, name, hint, details=details)

    def _site(self, event: Event, access: str, operand: str) -> Site:
        word = event.instruction
        return site_of(self.device, event.core, event.engine, event.pc, word,
                       owner=getattr(word, "engine", event.engine), access=access, operand=operand,
                       time_ps=event.time_ps)  # fmt: skip

    def _name(self, event: Event, region: Region) -> str:
        return self._names.name(region, getattr(event.instruction, "engine", event.engine), event.pc)


def _distinct(numbers: Numbers) -> set[int]:
    """Return the numbers in an array; nearly always it is one, all over."""
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return {low}
    if high > 2 * numbers.size:
        return set(np.unique(numbers).tolist())
    # np.unique takes ten times as long for many numbers of few kinds.
    return set(np.flatnonzero(np.bincount(numbers.reshape(-1))).tolist())


def _exact(side: Side, regions: Iterable[Region]) -> bool:
    """Return whether regions hold the bytes of a side and no others."""
    total = 0
    for region in regions:
        steps, run = region.pattern or ((), region.nbytes)
        for _, count in steps:
            run *= count
        total += region.partitions * run
    return total == side.nbytes


def _key(transfer: Transfer) -> tuple[Any, ...] | None:
    """Return what two loads have in common that bring the same bytes in the same form; None where it is no plain load.

    Where an index chose the bytes, another input chooses others: such a load is none that can be left out.
    """
    parts: list[Any] = []
    base: int | None = None
    for part in transfer.parts:
        for source, target in part.copies:
            if part.op != "copy" or source.space != "HBM" or target.space != "SBUF" or source.chosen or target.chosen:
                return None
            base = target.address if base is None else base
            lane = target.address // SBUF_PARTITION_STRIDE
            parts.append((source.address, source.dims, source.run, source.dtype, target.core, target.dims, target.run,
                          target.dtype, lane, target.address - base))  # fmt: skip
    return tuple(parts)


def _merged(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with those of one source line and kind as one, counted."""
    found: dict[tuple[object, ...], Finding] = {}
    for one in findings:
        site = one.site
        key = one.kind, site.core, *((site.line, one.tensor) if site.line else (site.engine, site.pc))
        if key in found:
            found[key].count += 1
        else:
            found[key] = one
    yield from found.values()
