"""initcheck: bytes that nothing ever wrote, read by something whose result reaches an output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from emulator.access import Operand, plan_of
from emulator.action import Action, operands_of
from emulator.checks.finding import Finding, Site
from emulator.checks.flow import Flow, outputs_of
from emulator.checks.kept import ACCUMULATING, traits_of
from emulator.checks.mark_rows import MarkRows
from emulator.checks.origins import MOST, Origins, numbers_in
from emulator.checks.place import Names, site_of_event
from emulator.checks.poison import Marks, unwritten_in
from emulator.checks.registers import Registers
from emulator.checks.undefined import BandedPlanes, Unwritten, is_row
from emulator.checks.undefined_findings import UndefinedFindings
from emulator.core import Core
from emulator.device import Device
from emulator.dma.regions import side_regions
from emulator.dma.transfer import Part
from emulator.events import Event
from emulator.extents import Extent
from emulator.notes import EXECUTED, MOVED, Notes
from formats import isa
from formats.regions import Region

__all__ = ["Initcheck"]

_LATER = frozenset([isa.LoadWeights, isa.DmaIndirect])  # what they leave is for words behind them to tell of


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
        taken: set[tuple[Any, Any]] = set()
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
                continue
            if action.barrier:
                continue
            event = partial(
                Event, number, now, issued, core, engine.name, loaded.pc, word, "instruction", changes or (), action
            )
            # A register that was loaded once with what was written has nothing more to tell.
            if cls.REGISTERS and (engine, loaded) not in taken:
                taken.add((engine, loaded))
                self._take(word, core, engine.name, loaded.pc, event, "")
            if cls.STATE in ACCUMULATING:
                self._fold(event())
            if cls is isa.DmaIndirect:
                self._ask(event(), None)

    def _take(
        self, word: isa.Instruction, core: int, engine: str, pc: int, event: Callable[[], Event], missing: str
    ) -> None:
        def site() -> Site:
            return site_of_event(self.device, event(), "loads" if word.loaded else "compares")

        self._registers.take(word, core, engine, pc, site, missing)

    def _fold(self, event: Event) -> None:
        site = partial(site_of_event, self.device, event, "reads")
        self._registers.fold(event.instruction, event.core, event.engine, site)

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
        unsure = [each for each in action.reads if not each.full]
        operands: dict[str, Operand] = {}
        unwritten: dict[str, Unwritten] = {}
        lacking: list[Extent] = []
        calm = not unsure and self._calm(core, word, action)
        if not calm:
            operands = operands_of(core.engines[event.engine], word, action)
            lacking = [each for each in unsure if self._lacks(core, operands, each, unwritten)]
            calm = bool(unsure) and not lacking and self._calm(core, word, action)
        if word.REGISTERS:
            missing = "" if calm else self._missing(event, operands)
            self._take(word, event.core, event.engine, event.pc, lambda: event, missing)
        indirect = isinstance(word, isa.DmaIndirect)
        if word.STATE in ACCUMULATING:
            self._fold(event)
        if calm:
            if indirect:
                self._ask(event, None)
            return
        inputs: dict[str, MarkRows | None] = {}
        self._outputs = outputs = {}
        keeps = word.KEEPS or word.adds
        for plan in plan_of(type(word)):
            operand = operands.get(plan.name)
            if operand is None:
                continue
            if plan.writes:
                outputs[plan.name] = operand
            if plan.reads or (plan.writes and keeps):
                inputs[plan.name] = self._look(event, core, operand, lacking, unwritten.get(plan.name))
        self._inputs = inputs
        if indirect:
            self._ask(event, inputs.get("index"))

    @staticmethod
    def _lacks(core: Core, operands: dict[str, Operand], extent: Extent, unwritten: dict[str, Unwritten]) -> bool:
        """Return whether nothing wrote some bytes that a word reads, and keep what was found out of its operand."""
        hull = extent.hull()
        if hull is not None and not extent.notes.cover(hull):
            for name, operand in operands.items():
                if operand.extents == (extent,) and is_row(operand):
                    found = Unwritten(core, operand)
                    if found.is_any:
                        unwritten[name] = found
                        return True
                    break
        return bool(extent.missing())

    def _look(
        self, event: Event, core: Core, operand: Operand, lacking: list[Extent], unwritten: Unwritten | None
    ) -> MarkRows | None:
        """Return the marks of an operand that is read, None where all of it is defined; number what nothing wrote."""
        for extent in operand.extents:
            if not extent.full and (extent in lacking or extent.missing()):
                break
        else:
            return self._planes.look(core, operand)
        known = len(self._origins)
        number = self._origins.number(event, operand.name, operand.regions[0])
        if unwritten is None:
            unwritten = Unwritten(core, operand)
        fresh = unwritten.marks(number)
        marks = self._planes.look(core, operand, fresh)
        if len(self._origins) > known:
            if marks is not fresh and (marks is None or not (marks.rows == number).any()):
                self._origins.forget()
            else:
                self._cut(unwritten.boxes(self.device))
        return marks

    def _ask(self, event: Event, marks: MarkRows | None) -> None:
        """Keep the mark of an index for the transfer that goes by it."""
        waiting = self._asked.setdefault((event.core, event.engine, event.pc), deque())
        waiting.append(0 if marks is None else int(marks.rows.max()))

    def _missing(self, event: Event, operands: dict[str, Operand]) -> str:
        """Say how much of what a word reads nothing wrote, or comes from such bytes; "" for nothing."""
        core = self.device.cores[event.core]
        for plan in plan_of(type(event.instruction)):
            operand = operands.get(plan.name) if plan.reads else None
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

    @property
    def looks_at_data(self) -> bool:
        """Return whether data have decided which bytes are undefined: those of another run may decide otherwise."""
        return any(flow.looks_at_data for flow in self._flows)

    def release(self) -> None:
        """Leave what is as large as a memory to the next run."""
        self._planes.release()

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Report what reached an output, note what did not, and name outputs that were left unwritten."""
        told = UndefinedFindings(self.device, self._names, self._origins)
        self.findings += told.of_reads(self._reached())
        self.findings += self._registers.findings
        self.findings.sort(key=lambda finding: not finding.serious)
        if self.device.outcome == "finished":
            self.findings += told.of_outputs(self._results, self._stores, self._followed)

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


def _converted(marks: Marks, source: int, target: int) -> Marks:
    """Return the marks of a transfer's bytes after a cast from elements of one size to another."""
    if source == target:
        return marks
    return np.repeat(marks.reshape(-1, source).max(1), target)
