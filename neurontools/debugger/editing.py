"""Changing a program's state: semaphores, events, registers, bytes, tensors; the journal keeps what was before."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.dtypes import numpy_dtype
from formats.errors import NotFoundError
from formats.regions import Region
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import LiveExecution
from neurontools.debugger.expressions import Expression, Situation
from neurontools.debugger.frames import bound
from neurontools.debugger.memory import cast_values, parse_format, parse_spot
from neurontools.debugger.names import engine_name, is_engine, parse_core
from neurontools.debugger.regions import regions_of_text
from neurontools.debugger.results import Edited
from neurontools.debugger.tensors import NAMED, parse_index

if TYPE_CHECKING:
    from emulator.device import Device

__all__ = ["Editor"]

_COUNTER = re.compile(r"(?:(\w+)\.)?([SER])\[([^\]]+)\]")
_ASSIGNMENT = re.compile(r"(.*?[^=!<>])=(?!=)(.*)", re.DOTALL)
# 32 bits, signed or not: a register may be given either way.
_LOW, _HIGH = -(1 << 31), (1 << 32) - 1
_EVENTS = (0, 1)
Change = Callable[["Device"], None]


class Editor:
    """Write into the device, between two completions."""

    def __init__(self, execution: LiveExecution, situation: Callable[[], Situation]) -> None:
        self._execution, self._situation = execution, situation

    def set(self, text: str) -> Edited:
        """Carry out "PLACE = EXPRESSION"; going back undoes it.

        PLACE is S[8], E[3], PE.R[5], TENSOR, TENSOR[slice], or an address as in `Inspector.examine` with a /FORMAT
        behind it where it is not a byte. Raises UsageError, NotFoundError; UsageError where no journal is kept.
        """
        found = _ASSIGNMENT.fullmatch(text.strip())
        if found is None:
            raise UsageError("set what? PLACE = EXPRESSION, such as S[8] = 16, PE.R[3] = 0, t[0, 0:4] = 1.5")
        place, expression = found[1].strip(), Expression(found[2])
        core, rest = parse_core(place)
        core = self._execution.engine(None, core)[0]
        at = self._situation()
        try:
            value = expression.value(at)
            counter = _COUNTER.fullmatch(rest)
            if counter is not None:
                number = Expression(counter[3]).value(at)
                return self._counter(counter, core, number, value, place)
        except ArithmeticError as error:
            raise UsageError(f"{text.strip()}: {error}") from None
        return self._bytes(place, core, value, at)

    def write(self, address: str, offset: int, data: bytes) -> Edited:
        """Write bytes `offset` behind an address; NotFoundError where they do not fit."""
        spot = parse_spot(self._execution.device, address, self._execution.focus[0])
        if spot is None or not data:
            raise UsageError(f"{address!r} is no address, or there are no bytes to write")
        first = spot.address + offset
        if first < 0 or first + len(data) > spot.end:
            raise NotFoundError(f"{len(data)} bytes do not fit at {address}")
        if spot.space == "HBM":
            region = Region("HBM", 0, 0, 1, first, len(data))
        else:
            region = Region(spot.space, spot.core or 0, spot.partition or 0, 1, first, len(data))
        place = f"{address}+{offset}" if offset else address
        return self._carry_out(_byte_change(region, data), (region,), region.core, "", place, "", f"{len(data)} bytes")

    def _counter(self, found: re.Match[str], core: int, number: Any, value: Any, place: str) -> Edited:
        letter, owner = found[2], found[1]
        if not isinstance(number, int) or np.ndim(value) or int(value) != value:
            raise UsageError(f"{place} takes one whole number")
        new, device = int(value), self._execution.device
        engine = ""
        if letter == "R":
            if owner is not None and not is_engine(owner):
                raise UsageError(f"registers of which engine? {owner!r} is none")
            engine = self._execution.focus[1] if owner is None else engine_name(owner)
            table: Any = device.cores[core].engines[engine].registers
        elif owner is not None:
            raise UsageError(f"{place}: semaphores and events belong to a core: nc{core}.{letter}[{number}]")
        else:
            table = device.cores[core].semaphores if letter == "S" else device.cores[core].events
        if not 0 <= number < len(table):
            raise NotFoundError(f"no {letter}[{number}]; there are 0 to {len(table) - 1}")
        if (letter == "E" and new not in _EVENTS) or not _LOW <= new <= _HIGH or (letter == "S" and new >= 1 << 31):
            raise UsageError(f"{new} does not fit in {place}")
        old = int(table[number])

        def change(device: Device) -> None:
            here = device.cores[core]
            if letter == "R":
                here.engines[engine].registers[number] = new & 0xFFFF_FFFF
            elif letter == "S":
                here.semaphores.set(number, new, device.now_ps)
            else:
                here.events.set(number, new, device.now_ps)

        return self._carry_out(change, (), core, engine, place, str(old), str(new))

    def _bytes(self, place: str, core: int, value: Any, at: Situation) -> Edited:
        spot = parse_spot(self._execution.device, place.partition("/")[0].strip(), core)
        if spot is not None:
            _, _, dtype = parse_format(place.partition("/")[2] or "xb")
            raw = cast_values(value, numpy_dtype(dtype), place).tobytes()
            if spot.address + len(raw) > spot.end:
                raise NotFoundError(f"{len(raw)} bytes do not fit at {place}; there are {spot.end - spot.address}")
            where = place.partition("/")[0].strip()
            regions = regions_of_text(self._execution, f"{where}, {len(raw)}", core)[0]
            change = _byte_change(regions[0], raw)
            return self._carry_out(change, regions, core, "", place, "", str(np.asarray(value).tolist())[:80])
        return self._tensor(place, core, value, at)

    def _tensor(self, place: str, core: int, value: Any, at: Situation) -> Edited:
        matched = NAMED.fullmatch(bound(self._execution, parse_core(place)[1]))
        if matched is None:
            raise UsageError(f"{place!r} is no semaphore, event, register, address, TENSOR or TENSOR[slice]")
        name, index = matched[1], matched[2]
        if index is not None:
            index = Expression(f"_[{index}]").index(at)
        text = name if index is None else f"{name}[{index}]"
        # Before anything is changed: an index that is none must leave no event behind.
        before = self._execution.tensors.value(text, core).array
        regions = regions_of_text(self._execution, text, core)[0]
        new = cast_values(value, before.dtype, place)
        if np.shape(new) != before.shape:
            try:
                new = np.broadcast_to(new, before.shape)
            except ValueError:
                shapes = f"{list(np.shape(value))} into {list(before.shape)}"
                raise UsageError(f"{place}: values of shape {shapes} do not fit") from None
        chosen: Any = () if index is None else parse_index(index)
        parts = chosen if isinstance(chosen, tuple) else (chosen,)
        # Going back and on carries the change out again, when the expression would give something else.
        kept = np.array(new)
        tensors = self._execution.tensors

        def change(device: Device) -> None:
            tensors.of(device).store(name, core, parts, kept)

        size = before.size
        shown = [str(np.asarray(each).astype(np.float64).item()) if size == 1 else f"{size} elements"
                 for each in (before, kept)]  # fmt: skip
        return self._carry_out(change, regions, core, "", place, *shown)

    def _carry_out(self, change: Change, regions: tuple[Region, ...], core: int, engine: str, place: str, old: str,
                   new: str) -> Edited:  # fmt: skip
        entry = self._execution.journal.edit(change, regions, core, engine, f"set {place} = {new}")
        self._execution.events, self._execution.time_ps = entry.number + 1, entry.time_ps
        return Edited(place, old, new, entry.number, entry.time_ps)


def _byte_change(region: Region, raw: bytes) -> Change:
    data = np.frombuffer(raw, np.uint8)

    def change(device: Device) -> None:
        if region.space == "HBM":
            device.hbm.write(region.byte, data)
            return
        memory = device.cores[region.core].memory
        memory.array(region.space)[region.first, region.byte : region.byte + len(raw)] = data
        memory.mark_written(region.space, region.first, region.first + 1, region.byte, region.byte + len(raw))

    return change
