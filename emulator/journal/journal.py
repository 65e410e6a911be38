"""The journal: what every completion changed, in a byte budget, and checkpoints for what is further back.

Runs are deterministic, so any state can be had again: the newest completions are undone one by one, older ones by
running again from the nearest checkpoint before them, which fills the journal anew. A run without a journal pays
nothing for it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from emulator.device_memory import Allocation
from emulator.dma.transfer import Transfer
from emulator.events import Event, SemaphoreChange
from emulator.journal import checkpoint
from emulator.journal.checkpoint import Checkpoint, Originals
from emulator.journal.control import Change, Control
from emulator.journal.effects import holds_back, regions_of_event, written_by
from emulator.journal.saved import ChipBytes, DeviceBytes, Pool, Saved, save_region, save_tile
from emulator.memory import ChipMemory
from emulator.memory_state import DeviceMemoryState
from formats import isa
from formats.named_tuple import NamedTuple
from formats.regions import Region

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["BUDGET", "Edit", "Entry", "Journal"]

BUDGET = 500_000_000
_RECORD = 1500  # bytes that a record takes besides what it saves, about
_WINDOW = 0.6  # of the budget is for records, the rest for checkpoints
_APART = 16  # checkpoints are this part of the window apart, more where they are large
_TIMES = 4  # bytes recorded between two checkpoints are at least so many times theirs
_MOST = 20_000  # completions between two, at most; twice that when thinned
_BEHIND = 200  # completions to have at hand before a place far back that is gone to, for steps back from there


class Entry(NamedTuple):
    """One event that has happened; `kind` as in `Event`, `regions` the bytes it wrote.

    For a word or transfer that faulted, `owner` is its engine or queue; `core`, `engine` and `pc` are the event's.
    """

    number: int
    time_ps: int
    core: int
    engine: str
    pc: int
    kind: str
    owner: tuple[int, str, int, str]
    regions: tuple[Region, ...]
    reads: tuple[Region, ...] = ()
    semaphores: tuple[SemaphoreChange, ...] = ()


class Edit(NamedTuple):
    """What a person changed between two completions: `change` does it again, `number` is that of its event.

    `engine` is whose registers change, "" where none do.
    """

    number: int
    change: Callable[[Device], None]
    regions: tuple[Region, ...]
    core: int
    engine: str
    text: str


class _Record(NamedTuple):
    saved: tuple[Saved, ...]
    change: Change
    touched: tuple[Allocation, ...]
    transfer: Transfer | None
    nbytes: int


class Journal:
    """An observer of a device that can take it back; `log` holds every event since the beginning.

    `budget` bounds the bytes of records and checkpoints together; the log and what the program's own tensors held
    before it overwrote them come on top. Make it before the first step.
    """

    def __init__(self, device: Device, budget: int = BUDGET) -> None:
        self.device, self.budget = device, budget
        self.log: list[Entry] = []
        self.nbytes = 0
        self._control = Control(device)
        self._records: deque[_Record] = deque()
        # a twentieth of the budget for buffers that wait to be used again
        self._pool = Pool(budget // 20)
        self._originals: Originals = {}
        self._untouched = [each for each in device.hbm.allocations.values() if not each.touched]
        self._triggered = device.dma.triggered
        self._open: tuple[Event, tuple[Region, ...], list[Saved]] | None = None
        untouched = tuple(self._untouched)
        chips = tuple(core.memory.fresh_state() for core in device.cores)
        self.checkpoints = [Checkpoint(0, self._control.copy(), chips, DeviceMemoryState(), untouched, 0)]
        self._since = 0  # bytes recorded since the last checkpoint
        self._spread = 1
        self._spacing = budget * _WINDOW / _APART
        self._due = False
        self._edits: dict[int, Edit] = {}  # by how many events lie before them

    # --- recording ---------------------------------------------------------------------------------------------------

    def on_effect(self, event: Event) -> None:
        """Save what a word or transfer is about to overwrite."""
        if self._due:
            self._take_checkpoint()
        device = self.device
        regions = regions_of_event(device, event)
        saved: list[Saved] = []
        own = event.writes if holds_back(device, event) else ()
        for region in regions:
            if region in own and device.cores[region.core].memory.known_written(region):
                continue
            if region.space == "HBM":
                self._keep_original(region)
            part = save_region(device, region, self._pool)
            if part is not None:
                saved.append(part)
        word = event.instruction
        if isinstance(word, isa.LoadWeights):
            saved.append(save_tile(device.cores[event.core], word))
        self._open = event, regions, saved

    def on_event(self, event: Event) -> None:
        """Complete the record of an event: what else has changed."""
        opened, self._open = self._open, None
        key = event.core, event.engine, event.pc, "dma" if event.kind == "dma" else "instruction"
        regions: tuple[Region, ...] = ()
        saved: list[Saved] = []
        transfer = None
        if opened is not None:
            first, regions, saved = opened
            key = first.core, first.engine, first.pc, "dma" if first.kind == "dma" else "instruction"
            transfer = first.instruction if isinstance(first.instruction, Transfer) else None
            regions = written_by(self.device, first, regions)
        change = self._control.follow(event)
        touched = self._touched(event)
        nbytes = sum(part.nbytes for part in saved) + _RECORD
        self._records.append(_Record(tuple(saved), change, touched, transfer, nbytes))
        self.log.append(
            Entry(
                event.number,
                event.time_ps,
                event.core,
                event.engine,
                event.pc,
                event.kind,
                key,
                regions,
                event.reads,
                event.semaphores,
            )
        )
        self.nbytes += nbytes
        self._since += nbytes
        window = self.budget * _WINDOW
        while self.nbytes > window and len(self._records) > 1:
            gone = self._records.popleft()
            self.nbytes -= gone.nbytes
            for part in gone.saved:
                if isinstance(part, ChipBytes):
                    part.release(self._pool)
        spread = self._spread
        if self._since > self._spacing * spread or len(self.log) - self.checkpoints[-1].events >= _MOST * spread:
            self._due = True

    def edit(self, change: Callable[[Device], None], regions: tuple[Region, ...], core: int, engine: str,
             text: str) -> Entry:  # fmt: skip
        """Change the device between its last completion and the next one, as an event that going back undoes.

        `regions` are the bytes that it changes, `engine` is whose registers, "" for none. Words that have been issued
        since are issued again. Going back past an edit forgets it: a run from there on is another run.
        """
        self._control.apply()
        self._settle(None)
        self._forget_checkpoints()
        edit = Edit(-1, change, regions, core, engine, text)
        entry = self._carry_out(edit)
        self._edits[len(self.log) - 1] = edit._replace(number=entry.number)
        return entry

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Return what was edited, and not taken back, in order."""
        return tuple(self._edits[at] for at in sorted(self._edits))

    def _carry_out(self, edit: Edit) -> Entry:
        device = self.device
        if self._due:
            self._take_checkpoint()
        saved = []
        for region in edit.regions:
            if region.space == "HBM":
                self._keep_original(region)
            part = save_region(device, region, self._pool)
            if part is not None:
                saved.append(part)
        before = len(device.changes)
        edit.change(device)
        semaphores = tuple(device.changes[before:])
        del device.changes[before:]
        touched = tuple(each for each in self._untouched if each.touched)
        self._untouched = [each for each in self._untouched if not each.touched]
        number, now = device.next_number(), device.now_ps
        event = Event(number, now, now, edit.core, edit.engine, -1, edit.text, "edit", semaphores)
        nbytes = sum(part.nbytes for part in saved) + _RECORD
        self._records.append(_Record(tuple(saved), self._control.follow(event), touched, None, nbytes))
        entry = Entry(number, now, edit.core, "", -1, "edit", (edit.core, "", -1, "edit"), edit.regions, (), semaphores)
        self.log.append(entry)
        self.nbytes += nbytes
        self._since += nbytes
        for region in edit.regions:
            if region.space != "HBM":
                device.cores[region.core].memory.forget()
        return entry

    def _touched(self, event: Event) -> tuple[Allocation, ...]:
        """Return the allocations that came into being since the last event."""
        triggered = self.device.dma.triggered
        addressed = isinstance(event.instruction, isa.Write | isa.TensorStore | isa.TensorLoad)
        if (triggered == self._triggered and not addressed) or not self._untouched:
            return ()
        self._triggered = triggered
        found = tuple(each for each in self._untouched if each.touched)
        if found:
            self._untouched = [each for each in self._untouched if not each.touched]
        return found

    def _keep_original(self, region: Region) -> None:
        found = self.device.hbm.find(region.byte)
        if found is not None and found.address not in self._originals:
            self._originals[found.address] = found, DeviceBytes(found, 0, found.nbytes)

    def _take_checkpoint(self) -> None:
        """Keep the state behind the last completion: nothing of the next one has had an effect on memory yet."""
        self._due, self._since = False, 0
        room = self.budget * (1 - _WINDOW)
        # One that would be larger than half of the room pushes out all others: better none, and a longer way to run
        # again.
        if len(self.log) <= self.checkpoints[-1].events or checkpoint.size_of(self._originals) > room / 2:
            return
        untouched = tuple(self._untouched)
        point = checkpoint.take(self.device, self._control, len(self.log), self._originals, untouched)
        self._spacing = max(self.budget * _WINDOW / _APART, _TIMES * point.nbytes)
        if point.nbytes > room / 2:
            return
        self.checkpoints.append(point)
        while sum(point.nbytes for point in self.checkpoints) > room:
            # every second one goes, the first stays: it is the beginning, and takes no bytes
            del self.checkpoints[1::2]
            self._spread *= 2

    # --- where it stands ---------------------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """Return how many completions can be undone without running again."""
        return len(self._records)

    @property
    def checkpoint_bytes(self) -> int:
        """Return the bytes of all checkpoints."""
        return sum(point.nbytes for point in self.checkpoints)

    def count_before(self, number: int) -> int:
        """Return how many events have a lower number."""
        return bisect_left(self.log, number, key=lambda entry: entry.number)

    def count_until(self, time_ps: int) -> int:
        """Return how many events happened up to a time."""
        return bisect_right(self.log, time_ps, key=lambda entry: entry.time_ps)

    def last_write(self, regions: tuple[Region, ...], before: int | None = None) -> Entry | None:
        """Return the last event, of the first `before`, that wrote into one of some regions, None where none did."""
        for entry in reversed(self.log[:before]):
            if entry.regions and any(mine.overlaps(other) for mine in entry.regions for other in regions):
                return entry
        return None

    # --- going back --------------------------------------------------------------------------------------------------

    def back_to(self, target: int, stop: Callable[[], bool] = lambda: False) -> int:
        """Take the device back to where `target` events had happened; return how many have.

        Where that is not in the window, it runs again from a checkpoint; `stop` is asked in between, and ends it early
        at a state that the program has been in.
        """
        wanted = len(self.log) - target
        if wanted <= 0:
            return len(self.log)
        if wanted <= len(self._records):
            self._undo(wanted)
        else:
            self._run_again(target, stop)
        kept = {at: edit for at, edit in self._edits.items() if at < len(self.log)}
        if len(kept) < len(self._edits):
            self._edits = kept
            self._forget_checkpoints()
        return len(self.log)

    def _forget_checkpoints(self) -> None:
        """Forget those that lie ahead: with an edit more, or less, the run does not come by them again."""
        while self.checkpoints[-1].events > len(self.log):
            self.checkpoints.pop()

    def _undo(self, wanted: int) -> None:
        memories: dict[int, ChipMemory] = {}
        transfers: list[Transfer] = []
        for _ in range(wanted):
            record = self._records.pop()
            self.log.pop()
            for part in record.saved:
                part.restore()
                if isinstance(part, ChipBytes) and part.memory is not None:
                    memories[id(part.memory)] = part.memory
            for allocation in record.touched:
                allocation.untouch()
            self._untouched += record.touched
            self._control.undo(record.change)
            if record.transfer is not None:
                transfers.append(record.transfer)
            self.nbytes -= record.nbytes
        for memory in memories.values():
            memory.forget()
        self._control.apply()
        self._settle(transfers)

    def _run_again(self, target: int, stop: Callable[[], bool]) -> None:
        spare = _BEHIND if len(self.log) - target > _BEHIND else 0
        index = max(bisect_right(self.checkpoints, target - spare, key=lambda point: point.events) - 1, 0)
        point = self.checkpoints[index]
        del self.checkpoints[index + 1 :]
        checkpoint.restore(self.device, self._control, point, self._originals)
        del self.log[point.events :]
        self._records.clear()
        self.nbytes = self._since = 0
        self._untouched = list(point.untouched)
        self._settle(None)
        device = self.device
        # Others have seen these completions: only the journal is filled anew.
        observers, device.observers = device.observers, [self]
        try:
            while len(self.log) < target and not stop():
                again = self._edits.get(len(self.log))
                if again is not None:
                    self._control.apply()
                    self._settle(None)
                    self._carry_out(again)
                elif device.step() is None:
                    break
        finally:
            device.observers = observers

    def _settle(self, transfers: list[Transfer] | None) -> None:
        """Make what is derived fit the state that was put back; all transfers may be concerned, or only some."""
        self._open, self._due = None, False
        self._triggered = self.device.dma.triggered
        # What a transfer knows of written bytes may not be so any more.
        self.device.dma.bind_again(transfers)
