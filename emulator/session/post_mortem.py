"""The debugger on a core dump: a session that stands still, with every command that looks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from emulator.events import Region
from emulator.hang import Hang
from emulator.journal import Entry
from emulator.session.errors import UsageError
from emulator.session.post_mortem_device import DumpedDevice, hang_of, still, tiles_of
from emulator.session.program import Program
from emulator.session.results import (
    Ahead,
    Checks,
    EngineRow,
    Examined,
    LastWrite,
    Listing,
    MemoryRow,
    QueueRow,
    SourceRow,
    State,
    TensorValue,
    Why,
)
from emulator.session.session import Session
from emulator.session.tensors import NAMED, Tensors
from emulator.session.tiles import Tile
from formats.core import Core, open_core
from formats.core.records import Range
from formats.errors import NotFoundError
from formats.neff import Neff

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PostMortem", "open_core_session"]


def open_core_session(source: Core | str | os.PathLike[str]) -> PostMortem:
    """Return a session on a core dump: it stands where the dump was taken, and does not move.

    Raises FormatError as `formats.core.open_core` does, and where the dump does not tell which chip it is of.
    """
    return PostMortem(source if isinstance(source, Core) else open_core(source))


class _DumpedNeff(Neff):
    """The identity of the NEFF that ran; its contents are not in a dump."""

    def __init__(self, core: Core, device: DumpedDevice) -> None:
        self._core = core
        self.__dict__["target"] = device.target
        self.__dict__["subgraphs"] = tuple(each.subgraph for each in cast("Any", device.model).cores)

    path = property(lambda self: self._core.neff.path or None)
    inputs = property(lambda self: ())
    outputs = property(lambda self: ())


class JournalTail:
    """The end of a journal as a dump holds it; `total` counts the events since the beginning."""

    records = nbytes = checkpoint_bytes = budget = 0
    checkpoints: tuple[None, ...] = (None,)

    def __init__(self, core: Core, device: DumpedDevice) -> None:
        tail = core.journal_tail
        self.device, self.total = device, tail.total
        known = range(len(device.cores))
        self.log = [
            Entry(each.number, each.time_ps, each.core, each.engine, each.pc, each.kind,
                  (each.core, each.engine, each.pc, each.kind), tuple(map(_region, each.writes)),
                  tuple(map(_region, each.reads)))
            for each in tail.entries
            if each.core in known
        ]  # fmt: skip
        self.texts = {each.number: each.text for each in tail.entries}

    def count_before(self, number: int) -> int:
        """Return how many of the kept events have a lower number."""
        return sum(entry.number < number for entry in self.log)

    def count_until(self, time_ps: int) -> int:
        """Return how many of the kept events happened up to a time."""
        return sum(entry.time_ps <= time_ps for entry in self.log)

    def last_write(self, regions: tuple[Region, ...], meets: Callable[[Region, Region], bool],
                   before: int | None = None) -> Entry | None:  # fmt: skip
        """Return the last event that wrote into one of some regions, None where none of those kept did."""
        for entry in reversed(self.log[:before]):
            if any(meets(mine, other) for mine in entry.regions for other in regions):
                return entry
        return None


def _region(found: Range) -> Region:
    pattern = (found.steps, found.run) if found.run > 0 and found.steps else None
    return Region(found.space, found.core, found.first, found.partitions, found.byte, found.nbytes, pattern)


class PostMortem(Session):
    """A session on a core dump; `core` is the dump.

    What would move it raises UsageError, what the dump does not hold NotFoundError. `notes` are the dump's warnings.
    """

    post_mortem = True
    device: DumpedDevice

    def __init__(self, core: Core) -> None:
        self.core = core
        device = DumpedDevice(core)
        self._made: DumpedDevice | None = device
        super().__init__(_DumpedNeff(core, device), timing=core.dump.timing, seed=core.dump.seed, journal_bytes=0)
        self.notes += core.warnings
        if core.path:
            self.folders.append(Path(core.path).parent)
        where = core.fault if core.fault is not None else next(iter(core.waits.waits), None)
        if where is not None and 0 <= where.core < len(device.cores) and where.engine in device.cores[0].engines:
            self._focus = where.core, where.engine

    def _start(self) -> None:
        device = self._made
        if device is None:
            still()
        self._made = None
        self.device = device
        self.program, self.tensors = Program(device), Tensors(device)
        for each in device.cores:
            self.tensors._tiles[each.index] = tuple(tiles_of(self.core, each.index))
        self._reported = -1
        self._waited = -1, 0
        tail = JournalTail(self.core, device)
        self._journal = cast("Any", tail)
        self.events, self.time_ps = tail.total, device.now_ps
        if tail.log:
            self.events = max(self.events, tail.log[-1].number + 1)

    # --- what does not move ------------------------------------------------------------------------------------------

    def _refuse(self, *_: Any, **__: Any) -> Any:
        """Raise UsageError: a core dump does not move."""
        still()

    step = stepi = next = continue_ = until = _refuse
    reverse_step = reverse_stepi = reverse_next = reverse_continue = goto = mark = when = restart = _refuse
    break_at = tbreak = watch = _refuse

    def ahead(self) -> Ahead | None:
        """Return None: nothing comes next."""
        return None

    @property
    def outcome(self) -> str:
        """Return how the run stood: "running", "finished", "fault" or "hang"."""
        return self.device.outcome

    def enable_checks(self, *names: str) -> Checks:
        """Raise UsageError: checks watch a run."""
        raise UsageError("checks watch a run, and a core dump does not move; what they found is in the dump")

    def save_core(self, path: str | os.PathLike[str], level: str = "full") -> int:
        """Raise UsageError: this is a core dump already."""
        raise UsageError("this is a core dump already; copy the file")

    # --- looking -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return where the dump was taken."""
        return super().state()._replace(name=self.core.neff.name)

    def info_engines(self) -> tuple[EngineRow, ...]:
        """Return every engine: where it stood and what it waited for."""
        known = {(state.core, state.engine): state for state in self.core.engines}
        rows = []
        for row in super().info_engines():
            state = known.get((row.core, row.engine))
            if state is not None:
                source = self.program.source(row.core, row.engine, state.pc)
                row = row._replace(pc=state.pc, words=state.words, text=state.text, source=source or row.source,
                                   in_flight=len(state.in_flight))  # fmt: skip
            rows.append(row)
        return tuple(rows)

    def info_queues(self) -> tuple[QueueRow, ...]:
        """Return every DMA queue."""
        pending = {(state.core, state.name): state.pending for state in self.core.queues}
        return tuple(
            row._replace(pending=pending.get((row.core, row.name), row.pending)) for row in super().info_queues()
        )

    def info_memory(self) -> tuple[MemoryRow, ...]:
        """Return the memories and the allocations in HBM."""
        chip = {(w.space, w.core): w.written for w in self.core.windows if w.space in ("SBUF", "PSUM")}
        rows = []
        for row in super().info_memory():
            if row.space == "HBM":
                item = next((a for a in self.core.allocations if a.address == row.address), None)
                rows.append(row if item is None else row._replace(written=item.written))
            else:
                rows.append(row._replace(written=chip.get((row.space, row.core or 0), row.written)))
        return tuple(rows)

    def why(self, engine: str | None = None, core: int | None = None) -> Why:
        """Return what an engine waited for, what that was, and who could still have signalled it."""
        number, name = self._engine(engine, core)
        state = next((each for each in self.core.engines if (each.core, each.engine) == (number, name)), None)
        if state is None:
            raise NotFoundError(f"the dump has nothing about nc{number} {name}")
        whole = hang_of(self.core)
        own = tuple(wait for wait in whole.waits if (wait.core, wait.engine) == (number, name))
        report = None
        if own:
            cycles = tuple(cycle for cycle in whole.cycles if (number, name) in cycle)
            report = Hang(f"nc{number} {name} waits", whole.time_ps, own, cycles)
        return Why(number, name, state.state, state.pc, state.text, report)

    def examine(self, address: int | str | None = None, count: int | None = None, format: str = "x") -> Examined:
        """Return values in memory, as in a live session; NotFoundError for bytes that the dump does not hold."""
        found = super().examine(address, count, format)
        nbytes = int(found.values.nbytes)
        where = f"{found.space} from {found.address:#x}"
        self._need(found.space, found.core or 0, found.partition or 0, 1, found.address, nbytes, where)
        return found

    def tensor(self, text: str) -> TensorValue:
        """Return elements of a tensor, as in a live session; NotFoundError where the dump does not hold all of them."""
        matched = NAMED.fullmatch(text)
        if matched is not None:
            item, core = self.tensors.find(matched[1], self._focus[0]), self._focus[0]
            if isinstance(item, Tile):
                where = item.partition, item.partitions, item.offset, item.partition_bytes
                self._need(item.space, core, *where, item.name)
            else:
                self._need("HBM", 0, 0, 1, item.address, item.nbytes, item.name)
        return super().tensor(text)

    def _need(self, space: str, core: int, first: int, partitions: int, byte: int, nbytes: int, name: str) -> None:
        """Raise NotFoundError where the dump lacks bytes of a range that it does not know to be unwritten."""
        window = self.core.window(space, core, address=byte if space == "HBM" else None)
        own = next((each for each in self.core.allocations if each.address <= byte < each.address + each.nbytes), None)
        if window.sparse or not (window.written if space != "HBM" or own is None else own.written):
            return
        rows = range(first, min(first + partitions, window.rows))
        missing = sum(self.core.read(space, core, byte, nbytes, row).missing for row in rows)
        if missing:
            raise NotFoundError(
                f"{missing} of {nbytes * len(rows)} bytes of {name} are not in this {self.core.level} dump; "
                "`core memory` lists what is"
            )

    def last_write(self, where: str) -> LastWrite:
        """Return what wrote last into a place, as far as the events that the dump kept tell."""
        found = super().last_write(where)
        if found.number is None:
            tail = cast("JournalTail", self._journal)
            if len(tail.log) < tail.total or not tail.log:
                raise NotFoundError(
                    f"none of the last {len(tail.log)} events wrote {found.where}; the dump keeps no more of "
                    f"{tail.total}"
                )
        return found

    def list_source(self, around: str | int | None = None, count: int = 10, *, remember: bool = True) -> Listing:
        """Return source lines: from the file where it is here, else those that the dump keeps."""
        before = self._listed
        try:
            return super().list_source(around, count, remember=remember)
        except NotFoundError as error:
            self._listed = before
            file, line = self._source_place(around) if around is not None or before is None else before
            first = max(1, line - count // 2) if around is not None or before is None else line
            kept = {each.line: each.text for each in self.core.program.lines if each.file == file}
            rows = tuple(
                SourceRow(number, kept[number], self._standing(file, number), ())
                for number in range(first, first + count)
                if number in kept
            )
            if not rows:
                raise NotFoundError(f"{error}, and the dump keeps none of these lines") from None
            if remember:
                self._listed = file, first + count
            return Listing(file, rows)

    def _standing(self, file: str, line: int) -> tuple[str, ...]:
        many = len(self.device.cores) > 1
        return tuple(
            (f"nc{row.core}." if many else "") + row.engine.lower()
            for row in self.info_engines()
            if row.source is not None and (row.source.file, row.source.line) == (file, line)
        )
