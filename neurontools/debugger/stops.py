"""What makes a session stop: breakpoints against what completes next and what has completed."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from emulator.access import plan_of
from emulator.dtypes import numpy_dtype
from emulator.events import Event, SemaphoreChange
from emulator.journal import Entry
from emulator.memory import FRESH
from formats import isa
from formats.dtypes import Dtype
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from formats.regions import Region
from neurontools.debugger.breakpoint import Breakpoint
from neurontools.debugger.expressions import situation_at
from neurontools.debugger.results import Array

if TYPE_CHECKING:
    from emulator.machine_view import MachineView
    from neurontools.debugger.breakpoints import Breakpoints
    from neurontools.debugger.checking import Checking
    from neurontools.debugger.execution import LiveExecution, Owner

__all__ = ["COMPARISONS", "Happened", "Stops", "region_values"]

COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
               "<": operator.lt}  # fmt: skip


class Happened(NamedTuple):
    """One event as breakpoints see it; forwards from the device, backwards from the journal."""

    number: int
    time_ps: int
    kind: str
    owner: Owner
    writes: tuple[Region, ...]
    reads: tuple[Region, ...]
    semaphores: tuple[SemaphoreChange, ...]
    instruction: object = None


class Stops:
    """Decides whether something is a stop, the same way in both directions."""

    def __init__(self, execution: LiveExecution, breakpoints: Breakpoints, checking: Checking) -> None:
        self._execution, self.breakpoints, self._checking = execution, breakpoints, checking

    def before(self, owner: Owner, time_ps: int, events: int) -> tuple[int, ...]:
        """Return the breakpoints that stop before a completion, and count them."""
        return tuple(each.number for each in self.met_before(owner, time_ps, events) if self._stops(each, owner))

    def met_before(self, owner: Owner, time_ps: int, events: int) -> tuple[Breakpoint, ...]:
        """Return the breakpoints whose place and condition a completion meets, without counting them."""
        found = (each for each in self.breakpoints.before if each.matches(*owner))
        return tuple(each for each in found if self._holds(each, owner, time_ps, events))

    def after(self, event: Happened) -> tuple[int, ...]:
        """Return the watchpoints and catchpoints that stop after an event, and count them."""
        return tuple(each.number for each in self.met_after(event) if self._stops(each, event.owner))

    def _stops(self, each: Breakpoint, owner: Owner) -> bool:
        """Count a hit; return whether it stops, and is not only passed."""
        if not self.breakpoints.pass_by(each):
            return False
        passing = self.breakpoints.passing.get(each.number)
        if passing is None:
            return True
        passing(owner)
        return False

    def met_after(self, event: Happened) -> tuple[Breakpoint, ...]:
        """Return the watchpoints and catchpoints whose event and condition an event meets, without counting them."""
        found = (each for each in self.breakpoints.after if self.concerns(each, event))
        return tuple(each for each in found if self._holds(each, event.owner, event.time_ps, event.number + 1))

    def _holds(self, each: Breakpoint, owner: Owner, time_ps: int, events: int) -> bool:
        if each.condition is None:
            return True
        each.error = ""
        try:
            return each.condition.holds(situation_at(self._execution, owner, time_ps, events))
        except (ArithmeticError, NeuronError) as error:
            # As in gdb: a condition that cannot be computed stops the program, where people see why; not stopping would
            # hide it.
            each.error = str(error)
            return True

    def concerns(self, each: Breakpoint, event: Happened) -> bool:
        """Return whether an event is what a watchpoint or catchpoint waits for."""
        kind = each.kind
        if kind in ("fault", "hang"):
            return event.kind == kind
        if kind == "finding":
            return self._checking.found_at(event.number + 1, each.tool)
        # What a person sets by hand stops nothing: they know of it.
        if event.kind in ("fault", "hang", "edit"):
            return False
        if kind == "dma":
            return event.kind == "dma" and each.matches(*event.owner)
        if each.counter is not None:
            return any(_changes(each, change) for change in event.semaphores)
        if kind in ("nan", "inf"):
            return self._appears(each, event)
        seen = (*(event.writes if kind != "read" else ()), *(event.reads if kind != "write" else ()))
        return any(mine.overlaps(other) for mine in each.regions for other in seen)

    # --- events ------------------------------------------------------------------------------------------------------

    def happened(self, event: Event) -> Happened:
        """Return an event that the device has just reported."""
        log = self._execution.log
        if log is not None:
            # The journal knows more: what words write to device addresses, and whose word it was that faulted.
            return self.remembered(log.log[-1])._replace(instruction=event.instruction)
        owner = event.core, event.engine, event.pc, "dma" if event.kind == "dma" else "instruction"
        return Happened(event.number, event.time_ps, event.kind, owner, event.writes, event.reads, event.semaphores,
                        event.instruction)  # fmt: skip

    @staticmethod
    def remembered(entry: Entry) -> Happened:
        """Return an event of the journal."""
        return Happened(entry.number, entry.time_ps, entry.kind, entry.owner, entry.regions, entry.reads,
                        entry.semaphores)  # fmt: skip

    # --- NaN and Inf -------------------------------------------------------------------------------------------------

    def _appears(self, each: Breakpoint, event: Happened) -> bool:
        """Return whether an event wrote a NaN or an Inf, and into the place of a catchpoint that has one."""
        if each.regions:
            if not any(mine.overlaps(other) for mine in each.regions for other in event.writes):
                return False
            # A tensor that holds one then, whichever word left it there.
            if each.tool:  # the place is a tensor, or a slice of one
                return _has(each.kind, self._execution.tensors.value(each.tool, each.regions[0].core).array)
        return any(_has(each.kind, values) for values in self._written(event))

    def _written(self, event: Happened) -> Iterator[Array]:
        """Yield what an event wrote, as arrays of the element types it was written in."""
        core, engine, pc, kind = event.owner
        device = self._execution.device
        if kind == "dma":
            for region in event.writes:
                # Where nothing names the destination, bytes keep the type that they had at their source.
                dtype = self._dtype_at(region) or (self._dtype_at(event.reads[0]) if event.reads else None)
                values = None if dtype is None or not dtype.is_float else region_values(device, region, dtype)
                if values is not None:
                    yield values
            return
        word = event.instruction if event.instruction is not None else self._execution.program.word(core, engine, pc)
        if not isinstance(word, isa.Instruction):
            return
        resolver = device.cores[core].resolver
        for plan in plan_of(type(word)):
            if plan.writes and word.uses(plan.name):
                dtype = _dtype(word.dtype_of(plan.field))
                operand = resolver.resolve(word, plan, engine) if dtype is not None and dtype.is_float else None
                if operand is not None:
                    yield operand.view

    def _dtype_at(self, region: Region) -> Dtype | None:
        """Return the element type of the tensor that a region lies in."""
        found = self._execution.tensors.at(region)
        return None if found is None or not found.dtype else Dtype.from_numpy_name(found.dtype)


def _changes(each: Breakpoint, change: SemaphoreChange) -> bool:
    if (change.core, change.kind, change.number) != each.counter:
        return False
    if each.compare is None:
        return True
    holds, value = COMPARISONS[each.compare[0]], each.compare[1]
    # It comes to hold: while it holds already, further changes stop nothing.
    return bool(holds(change.new, value)) and not holds(change.old, value)


def _dtype(code: int) -> Dtype | None:
    try:
        return Dtype(code)
    except ValueError:
        return None


def _has(kind: str, values: Array) -> bool:
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return False
    return bool((np.isnan(array) if kind == "nan" else np.isinf(array)).any())


def region_values(device: MachineView, region: Region, dtype: Dtype) -> Array | None:
    """Return a view of a region's bytes as elements; None where its runs are not a whole number of them."""
    kind = numpy_dtype(dtype)
    if region.space == "HBM":
        held = device.hbm.find(region.byte)
        # A look makes no memory: what nobody touched shows the pattern that fresh memory has.
        if held is None or not held.touched:
            return np.full(0, FRESH, np.uint8).view(kind)
        base, region = held.data, region._replace(byte=region.byte - held.address)
    else:
        base = device.cores[region.core].memory.array(region.space)
    offset, shape, strides = region.walk(base.shape[-1])
    if shape[-1] % kind.itemsize:
        return None
    return np.ndarray(shape, np.uint8, base, offset, strides).view(kind)
