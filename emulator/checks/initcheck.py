"""initcheck: bytes that nothing ever wrote, read by something whose result reaches an output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from emulator.access import Operand, plan_of
from emulator.action import Action, operands_of
from emulator.checks.courses import Courses
from emulator.checks.finding import Finding, Site
from emulator.checks.flow import Flow, outputs_of
from emulator.checks.kept import ACCUMULATING, traits_of
from emulator.checks.mark_rows import MarkRows
from emulator.checks.origins import MOST, Origins, numbers_in
from emulator.checks.place import Names, site_of_event
from emulator.checks.poison import Marks
from emulator.checks.registers import Registers
from emulator.checks.undefined import BandedPlanes
from emulator.checks.undefined_findings import UndefinedFindings
from emulator.checks.unwritten import Unwritten, is_row
from emulator.checks.written import Written
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
        self._plain: dict[type[isa.Instruction], bool] = {}  # classes of which nothing is kept that is calm
        self._written: Written | None = None  # up to a note of the run, where this goes by notes

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
            what = note[0]
            if what != EXECUTED:
                if what == MOVED and self._asked:
                    waiting = self._asked.get((note[1].core, note[1].engine, note[1].pc))
                    if waiting:
                        waiting.popleft()
                continue
            if type(note[2].word) not in followed:
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
                self._ask((core, engine.name, loaded.pc), None)

    def _take(
        self, word: isa.Instruction, core: int, engine: str, pc: int, event: Callable[[], Event], missing: str
    ) -> None:
        def site() -> Site:
            return site_of_event(self.device, event(), "loads" if word.loaded else "compares")

        self._registers.take(word, core, engine, pc, site, missing)

    def _fold(self, event: Event) -> None:
        site = partial(site_of_event, self.device, event, "reads")
        self._registers.fold(event.instruction, event.core, event.engine, site)

    def go_by(self, written: Written | None) -> Courses:
        """Go by what the notes of a run say that was written, up to the note at hand; None: by what memories say.

        Return what words do to marks, for those that do nothing else.
        """
        self._written = self._planes.written = written
        return Courses(self._planes)

    def flow_of(self, core: int) -> Flow:
        """Return what the engines of a core keep between words."""
        return self._flows[core]

    # --- words -------------------------------------------------------------------------------------------------------

    def on_effect(self, event: Event) -> None:
        """Look at the inputs of a word before it runs: afterwards they may be overwritten."""
        self._inputs = None
        if event.kind == "dma":
            self._sources = self.sources_of(event)
        if event.kind == "instruction":
            core = self.device.cores[event.core]
            self.enter(core, event.engine, event.pc, event.instruction, event.touches, lambda: event)

    def sources_of(self, event: Event) -> list[Marks | None]:
        """Return the marks of what each part of a transfer is about to move."""
        waiting = self._asked.get((event.core, event.instruction.engine, event.pc))
        asked = waiting.popleft() if waiting else 0
        return [self._source_marks(event, part, asked) for part in event.instruction.parts]

    def passes(self, core: Core, word: isa.Instruction, action: Action) -> bool:
        """Return whether nothing is to do for a word that reads what was written, and nothing is to be kept of it."""
        cls = type(word)
        plain = self._plain.get(cls)
        if plain is None:
            plain = self._plain[cls] = not (cls.REGISTERS or cls.STATE in ACCUMULATING or cls is isa.DmaIndirect)
        return plain and self._calm(core, word, action)

    def enter(
        self,
        core: Core,
        engine: str,
        pc: int,
        word: isa.Instruction,
        action: Any,
        happening: Callable[[], Event],
        is_whole: bool = False,
    ) -> bool:
        """Look at the inputs of a word; return whether anything undefined is near it.

        `is_whole` tells that all that it reads was written.
        """
        self._inputs = None
        written = self._written
        if is_whole:
            unsure = []
        elif written is None:
            unsure = [each for each in action.reads if not each.full]
        else:
            unsure = [each for each in action.reads if each not in written.full]
        operands: dict[str, Operand] = {}
        unwritten: dict[str, Unwritten] = {}
        lacking: list[Extent] = []
        calm = not unsure and self._calm(core, word, action)
        if not calm:
            operands = operands_of(core.engines[engine], word, action)
            lacking = [each for each in unsure if self._lacks(core, operands, each, unwritten)]
            calm = bool(unsure) and not lacking and self._calm(core, word, action)
        if word.REGISTERS:
            missing = "" if calm else self._missing(core, engine, pc, word, operands)
            self._take(word, core.index, engine, pc, happening, missing)
        indirect = isinstance(word, isa.DmaIndirect)
        if word.STATE in ACCUMULATING:
            self._fold(happening())
        if calm:
            if indirect:
                self._ask((core.index, engine, pc), None)
            return False
        inputs: dict[str, MarkRows | None] = {}
        self._outputs = outputs = {}
        keeps, planes = word.KEEPS or word.adds, self._planes
        for plan in plan_of(type(word)):
            name = plan.name
            operand = operands.get(name)
            if operand is None:
                continue
            if plan.writes:
                outputs[name] = operand
                if not plan.reads and not keeps:
                    continue
            extents = operand.extents
            if any(map(lacking.__contains__ if plan.reads else self._is_missing, extents)):
                inputs[name] = self._numbered(core, operand, unwritten.get(name), engine, pc, happening)
            else:
                inputs[name] = planes.look(core, operand)
        self._inputs = inputs
        if indirect:
            self._ask((core.index, engine, pc), inputs.get("index"))
        return True

    def _lacks(self, core: Core, operands: dict[str, Operand], extent: Extent, unwritten: dict[str, Unwritten]) -> bool:
        """Return whether nothing wrote some bytes that a word reads, and keep what was found out of its operand."""
        hull = extent.hull()
        if self._written is not None or (hull is not None and not extent.notes.cover(hull)):
            for name, operand in operands.items():
                if operand.extents == (extent,) and is_row(operand):
                    found = self._unwritten(core, operand)
                    if found.is_any:
                        unwritten[name] = found
                        return True
                    if self._written is not None and found.is_none:
                        self._written.full.add(extent)
                        return False
                    break
        return self._is_missing(extent)

    def _is_missing(self, extent: Extent) -> bool:
        """Return whether nothing wrote some bytes of an extent."""
        return not extent.full and bool(extent.missing()) if self._written is None else self._written.lacks(extent)

    def _unwritten(self, core: Core, operand: Operand) -> Unwritten:
        return Unwritten(core, operand) if self._written is None else Unwritten(core, operand, self._written)

    def _numbered(
        self,
        core: Core,
        operand: Operand,
        unwritten: Unwritten | None,
        engine: str,
        pc: int,
        happening: Callable[[], Event],
    ) -> MarkRows | None:
        """Return the marks of an operand of which nothing wrote some bytes; these get a number."""
        known = len(self._origins)
        number = self._origins.number((core.index, engine, pc), operand.name, operand.regions[0], happening)
        if unwritten is None:
            unwritten = self._unwritten(core, operand)
        fresh = unwritten.marks(number)
        marks = self._planes.look(core, operand, fresh)
        if len(self._origins) > known:
            if marks is not fresh and (marks is None or not marks.has(number)):
                self._origins.forget()
            else:
                self._cut(unwritten.boxes())
        return marks

    def _ask(self, place: tuple[int, str, int], marks: MarkRows | None) -> None:
        """Keep the mark of an index for the transfer that goes by it."""
        waiting = self._asked.setdefault(place, deque())
        waiting.append(0 if marks is None else int(marks.rows.max()))

    def _missing(self, core: Core, engine: str, pc: int, word: isa.Instruction, operands: dict[str, Operand]) -> str:
        """Say how much of what a word reads nothing wrote, or comes from such bytes; "" for nothing."""
        for plan in plan_of(type(word)):
            operand = operands.get(plan.name) if plan.reads else None
            if operand is None:
                continue
            is_missing = any(self._is_missing(extent) for extent in operand.extents)
            fresh = self._unwritten(core, operand).marks(MOST) if is_missing else None
            marks = self._planes.look(core, operand, fresh)
            if marks is not None and marks.rows.any():
                name = self._names.name(operand.regions[0], engine, pc)
                return f"bytes of {name or 'memory'}"
        return ""

    def _calm(self, core: Core, word: Any, action: Action) -> bool:
        """Return whether nothing undefined is near a word that reads what was written; then there is nothing to do."""
        if self._planes.may_have_any(core.index, (*action.read_places, *action.write_places)):
            return False
        flow = self._flows[core.index]
        if isinstance(word, isa.LoadWeights):
            flow.load(word, None)
            return True
        return not flow.reaches(word)

    def on_event(self, event: Event) -> None:
        """Give the results of a word, or of a transfer, their marks."""
        if event.kind == "dma":
            self.transfer(event, self._sources)
        elif event.kind == "instruction" and self._inputs is not None:
            self.leave(self.device.cores[event.core], event.engine, event.instruction)

    def leave(self, core: Core, engine: str, word: isa.Instruction) -> None:
        """Give the results of the word that was entered last their marks."""
        inputs = self._inputs
        assert inputs is not None
        self._inputs = None
        flow = self._flows[core.index]
        if isinstance(word, isa.LoadWeights):
            flow.load(word, inputs.get("src"))
            return
        marks = outputs_of(flow, word, engine, inputs, self._outputs, core)
        given = [one for one in (*inputs.values(), *flow.held(word, engine)) if one is not None]
        # Nothing is mixed where there are not two numbers.
        if len(given) > 1 or (given and not given[0].number):
            made = [one for one in marks.values() if one is not None]
            numbers = {one.number for one in given}
            # Nor is anything lost where all comes out as it went in.
            if (len(numbers) > 1 or 0 in numbers) and not all(any(one is each for each in made) for one in given):
                self._origins.mix(map(_numbers, given), map(_numbers, made))
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
            name = f"src{index}" if index else "src"
            place = event.core, event.engine, event.pc
            number = self._origins.number(place, name, side_regions(source, width)[0], lambda: event)
            marks = self._planes.read_side(source, number)
            if len(self._origins) > known:
                if marks is None or not (marks == number).any():
                    self._origins.forget()
                else:
                    found = [self._planes.missing_in(region) for region in side_regions(source, width)]
                    self._cut([box for box in found if box is not None])
            if marks is not None:
                given.append(marks)
                marks = _converted(marks, source.dtype.size, target.dtype.size)
                total = marks if total is None else np.maximum(total, marks)
        if total is None:
            return None
        self._origins.mix([numbers_in(one) for one in given if one is not None], [numbers_in(total)])
        if part.op == "transpose" and part.shape:
            inner, first, second, outer = part.shape
            blocks = total.reshape(-1, inner, second, first, outer, part.element)
            total = np.ascontiguousarray(blocks.transpose(0, 4, 2, 3, 1, 5)).reshape(-1)
        return total

    def transfer(self, event: Event, sources: list[Marks | None]) -> None:
        """Give what a transfer has moved the marks of its sources."""
        blank = self._planes.are_blank
        for part, total in zip(event.instruction.parts, sources, strict=True):
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


def _numbers(marks: MarkRows) -> Iterable[int]:
    return numbers_in(marks.rows) if marks.stencil is None else marks.numbers


def _converted(marks: Marks, source: int, target: int) -> Marks:
    """Return the marks of a transfer's bytes after a cast from elements of one size to another."""
    if source == target:
        return marks
    return np.repeat(marks.reshape(-1, source).max(1), target)
