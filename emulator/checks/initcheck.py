"""initcheck: bytes that nothing ever wrote, read by something whose result reaches an output."""

from __future__ import annotations

from collections import deque
from math import prod
from typing import Any

import numpy as np

from emulator.access import Operand, plan_of
from emulator.action import Action
from emulator.checks.finding import Finding, Site
from emulator.checks.flow import Flow, outputs_of
from emulator.checks.kept import ACCUMULATING, traits_of
from emulator.checks.mark_rows import MarkRows
from emulator.checks.origins import MOST, Origin, Origins, numbers_in
from emulator.checks.place import Names, site_of
from emulator.checks.poison import Marks, unwritten_in
from emulator.checks.registers import Registers
from emulator.checks.undefined import BandedPlanes, Unwritten
from emulator.core import Core
from emulator.device import Device
from emulator.dma.regions import side_regions
from emulator.dma.transfer import Part
from emulator.events import Event
from emulator.notes import EXECUTED, MOVED, Notes
from formats import isa
from formats.regions import Region

__all__ = ["Initcheck"]

_NOTES = 50
_LATER = frozenset([isa.LoadWeights, isa.DmaIndirect])  # what they leave is for words behind them to tell of
_WRITE_FIRST = "write the tile before this word, or leave out of the access what is not written"


class Initcheck:
    """Follow undefined bytes through a run, and report those that reach an output; the others are notes."""

    name = "initcheck"

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._origins = Origins()
        self._inputs: dict[str, MarkRows | None] | None = None
        self._registers = Registers()
        self._outputs: dict[str, Operand] = {}
        self._sources: list[Marks | None] = []  # what each part of a transfer is about to move
        self._stores: dict[int, Event] = {}  # the last transfer into each output
        self._followed = Notes()  # what happened before it began to watch
        # Of transfers by an index, by the word that started them: the mark of the index, 0 where it is defined.
        self._asked: dict[tuple[int, str, int], deque[int]] = {}

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and its inputs."""
        self.device = device
        self._planes = BandedPlanes(device)
        self._flows = [Flow() for _ in device.cores]
        self._names = Names(device)
        model = device.model
        self._results = {} if model is None else {model.tensors[t.name].address: t.name for t in model.outputs}

    def follow(self, notes: Notes, over: bool = False) -> None:
        """Take all that happened in a run, or in one so far, in which everything that was read had been written.

        One that is `over` needs nothing that only a word behind it would ask for.
        """
        self._followed = notes
        traits = traits_of(self.device)
        followed = traits.loads if over else traits.loads | _LATER.intersection(traits.classes)
        if not followed:
            return
        for number, note in enumerate(notes):
            if note[0] == MOVED and self._asked:
                waiting = self._asked.get((note[1].core, note[1].engine, note[1].pc))
                if waiting:
                    waiting.popleft()
            if note[0] != EXECUTED or type(note[2].word) not in followed:
                continue
            _, engine, loaded, bound, issued, now, changes = note
            word, core, action = loaded.word, engine.core.index, bound.action
            cls = type(word)
            if cls is isa.LoadWeights:
                self._flows[core].load(word, None)
            else:
                kind = "barrier" if action.barrier else "instruction"
                event = Event(number, now, issued, core, engine.name, loaded.pc, word, kind, changes or (), action)
                if kind == "barrier":
                    continue
                if cls.REGISTERS:
                    self._take(event, "")
                if cls.STATE in ACCUMULATING:
                    self._fold(event)
                if cls is isa.DmaIndirect:
                    self._ask(event, None)

    def _take(self, event: Event, missing: str) -> None:
        word = event.instruction
        self._registers.take(word, self._site(event, "loads" if word.loaded else "compares", ""), missing)

    def _fold(self, event: Event) -> None:
        self._registers.fold(event.instruction, event.core, event.engine, lambda: self._site(event, "reads", ""))

    # --- words -------------------------------------------------------------------------------------------------------

    def on_effect(self, event: Event) -> None:
        """Look at the inputs of a word before it runs: afterwards they may be overwritten."""
        self._inputs = None
        if event.kind == "dma":
            waiting = self._asked.get((event.core, event.instruction.engine, event.pc))
            asked = waiting.popleft() if waiting else 0
            self._sources = [self._source_marks(event, part, asked) for part in event.instruction.parts]
        if event.kind != "instruction":
            return
        core, word = self.device.cores[event.core], event.instruction
        action = event.touches
        assert isinstance(action, Action)
        lacking = [extent for extent in action.reads if not extent.full and extent.missing()]
        calm = not lacking and self._calm(core, word, action)
        if word.REGISTERS:
            self._take(event, "" if calm else self._missing(event))
        indirect = isinstance(word, isa.DmaIndirect)
        if word.STATE in ACCUMULATING:
            self._fold(event)
        if calm:
            if indirect:
                self._ask(event, None)
            return
        inputs: dict[str, MarkRows | None] = {}
        self._outputs = outputs = {}
        resolve, engine = core.resolver.resolve, event.engine
        for plan in plan_of(type(word)):
            operand = resolve(word, plan, engine)
            if operand is None:
                continue
            if plan.writes:
                outputs[plan.name] = operand
            keeps = plan.writes and (word.KEEPS or word.adds)
            if plan.reads or keeps:
                if not any(extent in lacking or (not extent.full and extent.missing()) for extent in operand.extents):
                    inputs[plan.name] = self._planes.look(core, operand)
                    continue
                known = len(self._origins)
                number = self._origins.number(event, plan.name, operand.regions[0])
                unwritten = Unwritten(core, operand)
                fresh = unwritten.marks(number)
                marks = inputs[plan.name] = self._planes.look(core, operand, fresh)
                if len(self._origins) > known:
                    if marks is not fresh and (marks is None or not (marks.rows == number).any()):
                        self._origins.forget()
                    else:
                        self._cut(unwritten.boxes(self.device))
        self._inputs = inputs
        if indirect:
            self._ask(event, inputs.get("index"))

    def _ask(self, event: Event, marks: MarkRows | None) -> None:
        """Keep the mark of an index for the transfer that goes by it."""
        waiting = self._asked.setdefault((event.core, event.engine, event.pc), deque())
        waiting.append(0 if marks is None else int(marks.rows.max()))

    def _missing(self, event: Event) -> str:
        """Say how much of what a word reads nothing wrote, or comes from such bytes; "" for nothing."""
        core, word = self.device.cores[event.core], event.instruction
        for plan in plan_of(type(word)):
            operand = core.resolver.resolve(word, plan, event.engine) if plan.reads else None
            if operand is None:
                continue
            fresh = Unwritten(core, operand).marks(MOST) if self._planes.is_missing(operand) else None
            marks = self._planes.look(core, operand, fresh)
            if marks is not None and marks.rows.any():
                name = self._names.name(operand.regions[0], event.engine, event.pc)
                return f"bytes of {name or 'memory'}"
        return ""

    def _calm(self, core: Core, word: Any, action: Action) -> bool:
        """Return whether nothing undefined is near a word that reads what was written; then there is nothing to do."""
        planes = self._planes
        if planes.has_bands:
            for region in (*action.read_places, *action.write_places):
                if planes.may_have(core.index, region):
                    return False
        flow = self._flows[core.index]
        if isinstance(word, isa.LoadWeights):
            flow.load(word, None)
            return True
        return not flow.reaches(word)

    def on_event(self, event: Event) -> None:
        """Give the results of a word, or of a transfer, their marks."""
        if event.kind == "dma":
            self._transfer(event)
            return
        inputs = self._inputs
        if inputs is None or event.kind != "instruction":
            return
        self._inputs = None
        core, word = self.device.cores[event.core], event.instruction
        flow = self._flows[event.core]
        if isinstance(word, isa.LoadWeights):
            flow.load(word, inputs.get("src"))
            return
        marks = outputs_of(flow, word, event.engine, inputs, self._outputs, core)
        given = [one for one in (*inputs.values(), *flow.held(word, event.engine)) if one is not None]
        made = [one for one in marks.values() if one is not None]
        numbers = {one.number for one in given}
        # Nothing is lost where all comes out as it went in, nor mixed where there are not two.
        if (len(numbers) > 1 or 0 in numbers) and not all(any(one is each for each in made) for one in given):
            self._origins.mix([one.rows for one in given], [one.rows for one in made])
        for name, operand in self._outputs.items():
            self._planes.put(core, operand, marks.get(name))

    def _cut(self, found: list[tuple[Region, int]]) -> None:
        """Cut the region of the newest read down to boxes around bytes that nothing wrote."""
        origin = self._origins.newest
        if found:
            origin.region, origin.missing = found[0][0], sum(count for _, count in found)

    # --- transfers ---------------------------------------------------------------------------------------------------

    def _source_marks(self, event: Event, part: Part, asked: int) -> Marks | None:
        """Return the marks of what a part is about to move; one that accumulates reads its target, too.

        `asked` is the mark of the index that the transfer goes by: which bytes it brings is as undefined as that.
        """
        width = self.device.arch.sbuf_bytes.whole
        target = part.copies[0][1]
        total: Marks | None = np.full(target.nbytes, asked, np.int16) if asked else None
        given = [total]
        for index, (source, _) in enumerate(part.copies):
            if self._planes.is_defined(source):
                continue
            known = len(self._origins)
            number = self._origins.number(event, f"src{index}" if index else "src", side_regions(source, width)[0])
            marks = self._planes.read_side(source, number)
            if len(self._origins) > known:
                if marks is None or not (marks == number).any():
                    self._origins.forget()
                else:
                    found = [unwritten_in(self.device, region) for region in side_regions(source, width)]
                    self._cut([box for box in found if box is not None])
            if marks is not None:
                given.append(marks)
                marks = _converted(marks, source.dtype.size, target.dtype.size)
                total = marks if total is None else np.maximum(total, marks)
        if total is None:
            return None
        self._origins.mix(given, [total])
        if part.op == "transpose" and part.shape:
            inner, first, second, outer = part.shape
            blocks = total.reshape(-1, inner, second, first, outer, part.element)
            total = np.ascontiguousarray(blocks.transpose(0, 4, 2, 3, 1, 5)).reshape(-1)
        return total

    def _transfer(self, event: Event) -> None:
        blank = self._planes.are_blank
        for part, total in zip(event.instruction.parts, self._sources, strict=True):
            target = part.copies[0][1]
            if not blank or total is not None:
                self._planes.write_side(target, total)
                blank = False
            if target.space == "HBM":
                found = self.device.hbm.find(target.span[0])
                tensor = "" if found is None else self._results.get(found.address, "")
                if found is not None and tensor:
                    self._stores[found.address] = event
                if tensor and total is not None:
                    for number in numbers_in(total):
                        origin = self._origins[number]
                        origin.store, origin.tensor = event, tensor

    @property
    def has_met(self) -> bool:
        """Return whether anything undefined was read: what comes of that may be for data to decide."""
        return bool(len(self._origins)) or not self._planes.are_blank

    def release(self) -> None:
        """Leave what is as large as a memory to the next run."""
        self._planes.release()

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Report what reached an output, note what did not, and name outputs that were left unwritten."""
        reached = self._reached()
        notes = 0
        for origin in self._origins:
            first = self._origins.within(origin, reached)
            if origin.number in reached:
                self.findings.append(self._finding(origin, reached[origin.number]))
            elif first is not None:
                if not _same_bytes(origin, first):
                    self.findings.append(self._mixed(origin, first))
            elif self._faults(origin.event):
                self.findings.append(self._faulting(origin))
            elif notes < _NOTES:
                notes += 1
                self.findings.append(self._note(origin))
        self.findings += self._registers.findings
        self.findings.sort(key=lambda finding: not finding.serious)
        if self.device.outcome == "finished":
            self._unwritten()

    def _reached(self) -> dict[int, int]:
        """Return how many bytes of outputs each read made undefined, as they are at the end."""
        found: dict[int, int] = {}
        for address in self._results:
            marks = self._planes.of_output(self.device.hbm.allocations[address])
            if marks is not None:
                numbers, counts = np.unique(marks[marks > 0], return_counts=True)
                for number, count in zip(numbers, counts, strict=True):
                    found[int(number)] = found.get(int(number), 0) + int(count)
        return found

    def _site(self, event: Event, access: str, operand: str) -> Site:
        word = event.instruction
        return site_of(
            self.device,
            event.core,
            event.engine,
            event.pc,
            word,
            owner=getattr(word, "engine", event.engine),
            access=access,
            operand=operand,
            time_ps=event.time_ps,
        )

    def _finding(self, origin: Origin, count: int) -> Finding:
        event, store = origin.event, origin.store
        site = self._site(event, "reads", origin.name)
        others = (self._site(store, "stores", "dst"),) if store is not None and store is not event else ()
        name = self._name(origin)
        message = (
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote, and "
            f"{count} bytes of output {origin.tensor} come from them"
        )
        return Finding(
            "initcheck",
            "undefined-output",
            "error",
            message,
            site,
            others,
            origin.region,
            name,
            _WRITE_FIRST,
            details={"output": origin.tensor, "bytes": count},
        )

    def _mixed(self, origin: Origin, first: Origin) -> Finding:
        """Return the finding of a read whose bytes are mixed with others that nothing wrote either."""
        site, other = self._site(origin.event, "reads", origin.name), self._site(first.event, "reads", first.name)
        name = self._name(origin)
        return Finding(
            "initcheck",
            "undefined-output",
            "error",
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote, and "
            f"output {first.tensor} comes from them together with those of {other.engine} pc {other.pc}",
            site,
            (other,),
            origin.region,
            name,
            _WRITE_FIRST,
            details={"output": first.tensor, "bytes": 0},
        )

    def _faults(self, event: Event) -> bool:
        """Return whether a word is the one whose values, or whose transfer, ended the run in a fault."""
        fault = self.device.fault
        place = event.core, event.engine, event.pc
        return event.kind == "instruction" and fault is not None and place == (fault.core, fault.engine, fault.pc)

    def _faulting(self, origin: Origin) -> Finding:
        fault = self.device.fault
        assert fault is not None
        site, name = self._site(origin.event, "reads", origin.name), self._name(origin)
        return Finding(
            "initcheck",
            "undefined-fault",
            "error",
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote, and "
            f"faults: {fault.message}",
            site,
            (),
            origin.region,
            name,
            _WRITE_FIRST,
        )

    def _note(self, origin: Origin) -> Finding:
        site = self._site(origin.event, "reads", origin.name)
        name = self._name(origin)
        message = (
            f"{site.engine} pc {site.pc} reads {origin.missing} bytes of {name or 'memory'} that nothing wrote; no "
            "output depends on them"
        )
        return Finding(
            "initcheck",
            "unwritten-read",
            "note",
            message,
            site,
            (),
            origin.region,
            name,
            "nothing, where it is the tail of a ragged tile; else write the tile before this word",
        )

    def _name(self, origin: Origin) -> str:
        event = origin.event
        owner = getattr(event.instruction, "engine", event.engine)
        return "" if origin.region is None else self._names.name(origin.region, owner, event.pc)

    def _unwritten(self) -> None:
        for address, tensor in self._results.items():
            allocation = self.device.hbm.allocations[address]
            missing = allocation.nbytes - allocation.written_bytes
            if not missing:
                continue
            first = int(np.argmin(allocation.written))
            region = Region("HBM", 0, 0, 1, address + first, allocation.nbytes - first)
            message = (
                f"{missing} of {allocation.nbytes} bytes of output {tensor} are never written, the first at {first:#x}"
                + self._element(tensor, first, allocation.nbytes)
            )
            store = self._stores.get(address) or self._last_store(address)
            others = () if store is None else (self._site(store, "stores", "dst"),)
            self.findings.append(
                Finding(
                    "initcheck",
                    "output-unwritten",
                    "warning",
                    message,
                    Site(0, "host", "host", -1, "", access="reads"),
                    others,
                    region,
                    tensor,
                    "store every part of the output; check the tail of ragged loops",
                )
            )

    def _last_store(self, address: int) -> Event | None:
        """Return the last transfer into an output that was told of afterwards."""
        for note in reversed(self._followed):
            if note[0] != MOVED or note[3] is None:
                continue
            _, transfer, now, changes, touches = note
            for part in transfer.parts:
                target = part.copies[0][1]
                found = self.device.hbm.find(target.span[0]) if target.space == "HBM" else None
                if found is not None and found.address == address:
                    return Event(0, now, transfer.triggered_ps, transfer.core, transfer.queue, transfer.pc, transfer,
                                 "dma", changes, touches)  # fmt: skip
        return None

    def _element(self, tensor: str, byte: int, nbytes: int) -> str:
        """Return which element of an output a byte belongs to, as ", NAME[ROW, COLUMN]"."""
        assert self.device.model is not None
        shape = next(one.shape for one in self.device.model.outputs if one.name == tensor)
        elements = prod(shape)
        if not shape or not elements or nbytes % elements:
            return ""
        place = np.unravel_index(byte * elements // nbytes, shape)
        return f", {tensor}[{', '.join(map(str, place))}]"


def _same_bytes(one: Origin, other: Origin) -> bool:
    """Return whether two reads miss bytes of one place: the later one then says nothing new."""
    return one.region is None or other.region is None or one.region.overlaps(other.region)


def _converted(marks: Marks, source: int, target: int) -> Marks:
    """Return the marks of a transfer's bytes after a cast from elements of one size to another."""
    if source == target:
        return marks
    return np.repeat(marks.reshape(-1, source).max(1), target)
