"""What one completion reads and writes, as arrays, and the report on the one that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from emulator.access import plan_of
from emulator.dma.regions import side_regions
from emulator.dma.transfer import Side as End
from emulator.dma.transfer import Transfer
from emulator.events import Event
from formats import isa
from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.regions import Region
from neurontools.debugger.results import TensorValue
from neurontools.debugger.stops import region_values
from neurontools.divergence.array_difference import difference
from neurontools.divergence.results import Completion, Figures, Kind, OperandPair
from neurontools.running.rows import source_row

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["Operand", "before", "completion", "operands", "pairs"]

Array = npt.NDArray[Any]


class Operand(NamedTuple):
    """One operand of a word or transfer: a copy of its elements, and the regions that they lie in."""

    name: str
    array: Array
    regions: tuple[Region, ...]


def operands(session: Session, event: Event, writes: bool) -> tuple[Operand, ...]:
    """Return copies of what an event writes, or reads, with element types; words outside memory have none."""
    device, word = session.device, event.instruction
    found = []
    if isinstance(word, Transfer):
        width = device.arch.sbuf_bytes.whole
        for number, end in enumerate(dict.fromkeys(word.writes if writes else word.reads)):
            for region in side_regions(end, width):
                values = region_values(device, region, _dtype(session, event, end, region))
                if values is not None:
                    name = ("dst" if writes else "src") + (str(number) if number else "")
                    found.append(Operand(name, values.copy(), (region,)))
    elif isinstance(word, isa.Instruction) and event.engine in device.cores[event.core].engines:
        resolver = device.cores[event.core].resolver
        for plan in plan_of(type(word)):
            if plan.writes if writes else plan.reads:
                operand = resolver.resolve(word, plan, event.engine)
                if operand is not None:
                    found.append(Operand(plan.name, operand.view.copy(), operand.regions))
    return tuple(found)


def _dtype(session: Session, event: Event, end: End, region: Region) -> Dtype:
    """Return the element type of one end of a transfer: files move most tensors as bytes, but say what they hold."""
    if end.dtype.is_float:
        return end.dtype
    for each in (region, *event.reads, *event.writes):
        found = session.tensors.at(each)
        if found is not None and found.dtype:
            dtype = Dtype.from_numpy_name(found.dtype)
            if not region.nbytes % dtype.size and (region.pattern is None or not region.pattern[1] % dtype.size):
                return dtype
    return end.dtype


def completion(session: Session, event: Event) -> Completion:
    """Return an event as one side of a report."""
    word = event.instruction
    engine = word.engine if isinstance(word, Transfer) else event.engine
    own = "" if isinstance(word, Transfer) else session.program.text(event.core, event.engine, event.pc)
    source = source_row(session.program.source(event.core, engine, event.pc))
    return Completion(event.number, event.time_ps, event.core, event.engine, event.pc, cast(Kind, event.kind),
                      own or event.text, source)  # fmt: skip


def before(session: Session, number: int) -> tuple[Event, tuple[Operand, ...], tuple[Operand, ...]]:
    """Run a session up to an event; return it, what it found in its inputs and what it made of its outputs."""
    found: list[tuple[Operand, ...]] = []

    class Watch:
        def on_effect(self, event: Event) -> None:
            if event.number == number:
                found.append(operands(session, event, writes=False))

        def on_event(self, event: Event) -> None:
            """Nothing to do behind an event."""

    watch = Watch()
    session.device.observers.append(watch)
    try:
        while True:
            event = session.device.step()
            assert event is not None, f"event {number} has happened before"
            if event.number == number:
                return event, found[0] if found else (), operands(session, event, writes=True)
    finally:
        session.device.observers.remove(watch)


def pairs(session: Session, mine: tuple[Operand, ...], theirs: tuple[Operand, ...] | None, rtol: float,
          atol: float) -> tuple[OperandPair, ...]:  # fmt: skip
    """Return operands side by side."""
    rows = []
    for number, one in enumerate(mine):
        other = theirs[number] if theirs is not None and number < len(theirs) else None
        region = one.regions[0] if one.regions else None
        tensor = None if region is None else session.tensors.at(region)
        gap = None
        if other is not None and other.array.size == one.array.size:
            gap = difference(one.array, other.array.reshape(one.array.shape), rtol, atol)
        rows.append(
            OperandPair(
                one.name,
                "" if tensor is None else tensor.name,
                "" if region is None else region.text,
                one.array.dtype.name,
                one.array.shape,
                _figures(one.array),
                None if other is None else _figures(other.array),
                gap,
            )
        )
    return tuple(rows)


def _figures(array: Array) -> Figures:
    return Figures(*TensorValue("", "", "", np.asarray(array), 0).statistics)
