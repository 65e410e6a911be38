"""What makes a session stop: breakpoints against what completes next and what has completed."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from emulator.access import operand_dtype, plan_of
from emulator.dtypes import numpy_dtype
from emulator.events import Event, Region, SemaphoreChange
from emulator.memory import FRESH
from emulator.session.breakpoints import Breakpoint, Breakpoints
from emulator.session.conditions import Moment
from emulator.session.places import meets
from formats import isa
from formats.dtypes import Dtype
from formats.errors import NeuronError

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.session.live_checks import LiveChecks
    from emulator.session.program import Program
    from emulator.session.tensors import Tensors

__all__ = ["COMPARISONS", "Happened", "Stops", "happened", "region_values"]

COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
               "<": operator.lt}  # fmt: skip
Key = tuple[int, str, int, str]  # core, engine or queue, pc, "instruction" or "dma"


class Happened(NamedTuple):
    """One event as breakpoints see it; forwards from the device, backwards from the journal."""

    number: int
    time_ps: int
    kind: str
    owner: Key
    writes: tuple[Region, ...]
    reads: tuple[Region, ...]
    semaphores: tuple[SemaphoreChange, ...]
    instruction: Any = None


class Stops:
    """The part of a session that decides whether something is a stop, the same way in both directions."""

    device: Device
    program: Program
    tensors: Tensors
    _breakpoints: Breakpoints
    _focus: tuple[int, str]
    _live: LiveChecks | None

    def _hit_before(self, key: Key, time_ps: int, events: int) -> tuple[int, ...]:
        """Return the breakpoints that stop before a completion, and count them."""
        found = [each for each in self._breakpoints.before if each.matches(*key)]
        return self._stopping(found, key, time_ps, events)

    def _hit_behind(self, event: Happened) -> tuple[int, ...]:
        """Return the watchpoints and catchpoints that stop behind an event, and count them."""
        found = [each for each in self._breakpoints.behind if self._behind(each, event)]
        return self._stopping(found, event.owner, event.time_ps, event.number + 1)

    def _stopping(self, found: list[Breakpoint], key: Key, time_ps: int, events: int) -> tuple[int, ...]:
        return tuple(
            each.number
            for each in found
            if self._holds(each, key, time_ps, events) and self._breakpoints.pass_by(each)
        )

    def _holds(self, each: Breakpoint, key: Key, time_ps: int, events: int) -> bool:
        if each.condition is None:
            return True
        try:
            return each.condition.holds(self._moment(key, time_ps, events))
        except (ArithmeticError, NeuronError) as error:
            each.error = str(error)
            return True

    def _moment(self, key: Key, time_ps: int, events: int) -> Moment:
        core, engine, pc, _ = key
        if not 0 <= core < len(self.device.cores):
            core = self._focus[0]
        name = engine if engine in self.device.cores[core].engines else self._focus[1]
        return Moment(self.device, self.tensors, core, name, pc, time_ps, events)

    def _behind(self, each: Breakpoint, event: Happened) -> bool:
        """Tell whether an event is what a watchpoint or catchpoint waits for."""
        kind = each.kind
        if kind in ("fault", "hang"):
            return event.kind == kind
        if kind == "finding":
            return self._found_at(event.number + 1, each.tool)
        if event.kind in ("fault", "hang"):
            return False
        if kind == "dma":
            return event.kind == "dma" and each.matches(*event.owner)
        if each.counter is not None:
            return any(_changes(each, change) for change in event.semaphores)
        if kind in ("nan", "inf"):
            return self._appears(each, event)
        seen = (*(event.writes if kind != "read" else ()), *(event.reads if kind != "write" else ()))
        return any(meets(mine, other) for mine in each.regions for other in seen)

    def _found_at(self, events: int, tool: str) -> bool:
        if self._live is None:
            return False
        self._live.advance(events)
        return bool(self._live.new_at(events, tool))

    # --- NaN and Inf -------------------------------------------------------------------------------------------------

    def _appears(self, each: Breakpoint, event: Happened) -> bool:
        """Tell whether an event wrote a NaN or an Inf, into the place of a catchpoint if it has one."""
        if each.regions:
            if not any(meets(mine, other) for mine in each.regions for other in event.writes):
                return False
            if each.tool:  # the place is a tensor, or a slice of one
                return _has(each.kind, self.tensors.value(each.tool, each.regions[0].core).array)
        return any(_has(each.kind, values) for values in self._written(event))

    def _written(self, event: Happened) -> Iterator[npt.NDArray[Any]]:
        """Yield what an event wrote, as arrays of the element types it was written in."""
        core, engine, pc, kind = event.owner
        if kind == "dma":
            for region in event.writes:
                # Where nothing names the destination, bytes keep the type that they had at their source.
                dtype = self._dtype_at(region) or (self._dtype_at(event.reads[0]) if event.reads else None)
                values = None if dtype is None or not dtype.is_float else region_values(self.device, region, dtype)
                if values is not None:
                    yield values
            return
        word = event.instruction if event.instruction is not None else self._word(core, engine, pc)
        if not isinstance(word, isa.Instruction):
            return
        resolver = self.device.cores[core].resolver
        for plan in plan_of(type(word)):
            if plan.writes and plan.field.enabled(word.raw):
                dtype = _dtype(operand_dtype(word, plan.field))
                operand = resolver.resolve(word, plan, engine) if dtype is not None and dtype.is_float else None
                if operand is not None:
                    yield operand.view

    def _word(self, core: int, engine: str, pc: int) -> Any:
        return next((loaded.word for loaded in self.device.cores[core].engines[engine].words if loaded.pc == pc), None)

    def _dtype_at(self, region: Region) -> Dtype | None:
        """Return the element type of the tensor that a region lies in."""
        found = self.tensors.at(region)
        return None if found is None or not found.dtype else Dtype.from_numpy_name(found.dtype)


def _changes(each: Breakpoint, change: SemaphoreChange) -> bool:
    if (change.core, change.kind, change.number) != each.counter:
        return False
    if each.compare is None:
        return True
    holds, value = COMPARISONS[each.compare[0]], each.compare[1]
    return bool(holds(change.new, value)) and not holds(change.old, value)


def _dtype(code: int) -> Dtype | None:
    try:
        return Dtype(code)
    except ValueError:
        return None


def _has(kind: str, values: npt.NDArray[Any]) -> bool:
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return False
    return bool((np.isnan(array) if kind == "nan" else np.isinf(array)).any())


def region_values(device: Device, region: Region, dtype: Dtype) -> npt.NDArray[Any] | None:
    """Return a view of a region's bytes as elements; None where its runs are no whole number of them."""
    kind = numpy_dtype(dtype)
    dims, run = ((), region.nbytes) if region.pattern is None else region.pattern
    if run % kind.itemsize:
        return None
    rows: tuple[tuple[int, int], ...] = ()
    if region.space == "HBM":
        held = device.hbm.find(region.byte)
        if held is None or not held.touched:
            return np.full(0, FRESH, np.uint8).view(kind)
        base, start = held.data, region.byte - held.address
    else:
        base = device.cores[region.core].memory.array(region.space)
        start, rows = region.first * base.shape[1] + region.byte, ((base.shape[1], region.partitions),)
    walk = (*rows, *dims, (kind.itemsize, run // kind.itemsize))
    return np.ndarray(
        tuple(count for _, count in walk), kind, base, start, tuple(step for step, _ in walk)
    )


def happened(event: Event, key: Key, writes: tuple[Region, ...]) -> Happened:
    """Return an event that the device has just reported as breakpoints see it."""
    return Happened(event.number, event.time_ps, event.kind, key, writes, event.reads, event.semaphores,
                    event.instruction)  # fmt: skip
