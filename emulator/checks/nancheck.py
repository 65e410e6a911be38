"""nancheck: where the NaN and infinities of an output come from, and the way they took."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.access import Operand, plan_of
from emulator.checks.finding import Finding, Site
from emulator.checks.kinds import KINDS
from emulator.checks.place import Names, site_of
from emulator.checks.poison import Marks, Planes, of_elements
from emulator.core import Core
from emulator.device import Device
from emulator.device_memory import Allocation
from emulator.dma.collectives import COLLECTIVE, CollectiveTransfer
from emulator.dma.transfer import Part
from emulator.dtypes import NARROWING, numpy_dtype
from emulator.events import Event
from formats import isa
from formats.dtypes import Dtype

__all__ = ["Nancheck"]

_MOST = 30000  # places told apart
_UNWRITTEN = _MOST + 1
_NAN = "NaN"
_LOST = 100  # places that store what their type does not hold
_WAY = 8  # sites of a way that a finding names
_PART = 1 << 22  # elements looked at together

Mask = npt.NDArray[np.bool_]
_Place = tuple[int, str, int]


class _Made:
    """A word or transfer, by its place, that left something not finite: what it was made of, and an event of it."""

    __slots__ = ("event", "fresh", "name", "number", "parents", "what")

    def __init__(self, number: int, event: Event | None, name: str) -> None:
        self.number, self.event, self.name = number, event, name
        self.parents: dict[int, None] = {}
        self.fresh = False  # it read what nothing wrote
        self.what = "infinite values"


class Nancheck:
    """Follow what is not finite through a run, and report what reaches an output, with its origin."""

    name = "nancheck"

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._made: list[_Made] = []
        self._by_place: dict[_Place, _Made] = {}
        self._parents: dict[int, None] = {}
        self._fresh = False
        self._constants: _Made | None = None  # what the file brings, as far as it is not finite
        self._outputs: list[Operand] = []
        self._weights: dict[tuple[int, bool], dict[int, None]] = {}
        self._lost: dict[_Place, tuple[Event, str, int]] = {}  # words that stored what their type does not hold
        self._rounded: dict[_Place, tuple[Event, int]] = {}  # words that computed with integers that fp32 does not hold

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program and its inputs; inputs may hold something already."""
        self.device = device
        self._planes = Planes(device)
        self._names = Names(device)
        self._results = {}
        if device.model is None:
            return
        self._results = {t.name: device.model.tensors[t.name].address for t in device.model.outputs}
        for tensor in device.model.inputs:
            allocation = device.hbm.allocations[device.model.tensors[tensor.name].address]
            dtype = numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
            values = allocation.data[: allocation.nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
            if not _any_bad(values, allocation):
                continue
            bad = _bad(values)
            if bad is not None:
                made = self._new(None, tensor.name)
                if np.isnan(values.astype(np.float32)).any():
                    made.what = _NAN
                self._planes.mark(allocation, np.repeat(bad, dtype.itemsize), made.number)

    def _new(self, event: Event | None, name: str = "") -> _Made:
        made = _Made(len(self._made) + 1, event, name)
        self._made.append(made)
        return made

    # --- words -------------------------------------------------------------------------------------------------------

    def on_effect(self, event: Event) -> None:
        """Look at the operands of a word before it runs: afterwards they may be overwritten."""
        self._outputs, self._parents, self._fresh = [], {}, False
        NARROWING.counting, NARROWING.lost, NARROWING.rounded = True, 0, 0
        if event.kind != "instruction":
            return
        core, word = self.device.cores[event.core], event.instruction
        for plan in plan_of(type(word)):
            operand = core.resolver.resolve(word, plan, event.engine)
            if operand is None:
                continue
            if plan.writes:
                self._outputs.append(operand)
            if plan.reads or (plan.writes and (word.KEEPS or word.adds)):
                self._look(core, operand)

    def _look(self, core: Core, operand: Operand) -> None:
        """Note what of an operand is not finite, and who made it."""
        bad = _some_bad(operand.view)
        if bad is None:
            return
        marks = self._planes.read(core, operand, _UNWRITTEN)
        for number in [0] if marks is None else _numbers_in(marks.reshape(-1)[bad.reshape(-1)]):
            if number == _UNWRITTEN:
                self._fresh = True
            elif number:
                self._parents[number] = None
            else:
                if self._constants is None:
                    self._constants = self._new(None)
                self._parents[self._constants.number] = None

    def on_event(self, event: Event) -> None:
        """Look at the results of a word, or of a transfer."""
        NARROWING.counting = False
        if event.kind == "dma":
            if NARROWING.lost:
                self._narrowed(event, str(numpy_dtype(event.instruction.parts[0].copies[0][1].dtype)))
            for part in event.instruction.parts:
                self._moved(event, part)
            return
        if event.kind != "instruction":
            return
        core, word = self.device.cores[event.core], event.instruction
        # Those of bytes that nothing wrote mean nothing.
        if NARROWING.lost or NARROWING.rounded:
            stored = next((o.view.dtype for o in self._outputs if o.view.dtype.kind in "iu"), None)
            if not any(core.memory.extent(region).missing() for region in event.reads):
                self._counted(event, stored)
        if isinstance(word, isa.LoadWeights):
            self._weights[event.core, False] = dict(self._parents)
            return
        if isinstance(word, isa.MatMul):
            self._parents |= self._weights.get((event.core, False), {})
        for operand in self._outputs:
            bad = _some_bad(operand.view)
            if bad is None:
                self._planes.write(core, operand, None)
                continue
            number = self._note(event, operand.view)
            if bad.all():
                self._planes.fill(core, operand, number)
            else:
                self._planes.write(core, operand, bad.reshape(operand.view.shape[0], -1) * np.int16(number))

    def _counted(self, event: Event, stored: np.dtype[Any] | None) -> None:
        """Note what a word that stores integers, or none, has lost of its operands or results."""
        if NARROWING.lost:
            self._narrowed(event, str(stored or ""))
        place = event.core, event.engine, event.pc
        # A narrower type holds none of those numbers, and floats of large integers are meant to be rounded.
        is_beyond = place not in self._rounded and len(self._rounded) >= _LOST
        if NARROWING.rounded and stored is not None and stored.itemsize > 2 and not is_beyond:
            self._rounded[place] = event, self._rounded.get(place, (event, 0))[1] + NARROWING.rounded

    def _narrowed(self, event: Event, dtype: str) -> None:
        """Note numbers that the type of a result does not hold."""
        place = event.core, event.engine, event.pc
        if place in self._lost or len(self._lost) < _LOST:
            self._lost[place] = event, dtype, self._lost.get(place, (event, dtype, 0))[2] + NARROWING.lost

    def _note(self, event: Event, values: npt.NDArray[Any] | None = None) -> int:
        """Return the number of the word at hand, with what it was made of."""
        place = event.core, event.engine, event.pc
        made = self._by_place.get(place)
        if made is None:
            if len(self._made) >= _MOST:
                return _MOST
            made = self._by_place[place] = self._new(event)
            made.fresh = self._fresh
            made.parents.update(self._parents)
        if made.what != _NAN and (
            self._has_nan(self._parents) if values is None else bool(np.isnan(values.astype(np.float32)).any())
        ):
            made.what = _NAN
        return made.number

    def _moved(self, event: Event, part: Part) -> None:
        """Follow one operation of a transfer; what a cast makes infinite begins there."""
        total: Marks | None = None
        target = part.copies[0][1]
        for source, _ in part.copies:
            marks = self._planes.read_side(source, 0)
            if marks is not None and source.dtype.size != target.dtype.size:
                marks = np.repeat(of_elements(marks, source.dtype.size), target.dtype.size)
            if marks is not None:
                total = marks if total is None else np.maximum(total, marks)
        bad: Mask | None = None
        values: npt.NDArray[Any] | None = None
        if target.dtype.size and target.dtype != Dtype.UNKNOWN and part.op != "copy":
            values = self._planes.values(target).view(numpy_dtype(target.dtype))
            found = _bad(values)
            bad = None if found is None else np.repeat(found.reshape(-1), target.dtype.size)
        if total is None and (bad is None or not bad.any()):
            self._planes.write_side(target, None)
            return
        self._parents = {} if total is None else dict.fromkeys(one for one in _numbers_in(total) if one)
        self._fresh = False
        # What other ranks put into a collective is known by its values alone.
        number = self._note(event, values if part.op == COLLECTIVE and bad is not None else None)
        if bad is None:
            assert total is not None
            bad = total > 0
        if part.op == "transpose":
            bad = np.broadcast_to(np.bool_(bad.any()), (target.nbytes,))
        self._planes.write_side(target, bad * np.int16(number))

    def release(self) -> None:
        """Leave what is as large as a memory to the next run."""
        self._planes.release()

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Report what is not finite in the outputs, by where it began, and what integers did not hold."""
        self.findings += [self._overflow(*lost) for lost in self._lost.values()]
        self.findings += [self._rounding(*rounded) for rounded in self._rounded.values()]
        if self.device.model is None:
            return
        for tensor in self.device.model.outputs:
            allocation = self.device.hbm.allocations[self._results[tensor.name]]
            marks = self._planes.of_output(allocation)
            dtype = numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
            values = allocation.data[: allocation.nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
            bad = _bad(values)
            if marks is None or bad is None:
                continue
            numbers = of_elements(marks[: values.nbytes], dtype.itemsize)
            nans = np.isnan(values.astype(np.float32))
            for kind, mask in (("nan", nans & bad), ("inf", bad & ~nans)):
                counts: dict[int, int] = {}
                ways: dict[int, list[_Made]] = {}
                for last, count in zip(*np.unique(numbers[mask & (numbers > 0)], return_counts=True), strict=True):
                    way = self._way(int(last))
                    counts[way[0].number] = counts.get(way[0].number, 0) + int(count)
                    ways.setdefault(way[0].number, way)
                for number, count in counts.items():
                    self.findings.append(self._finding(kind, tensor.name, count, ways[number]))

    def _way(self, last: int) -> list[_Made]:
        """Return the words from the origin to the one that stored; a shortest way back.

        NaN of infinities that were meant, as in a mask, begins where they become one; `before` is what meant them.
        """
        before: dict[int, int] = {last: 0}
        queue = [last]
        for number in queue:
            made = self._made[number - 1]
            if not made.parents or made.fresh:
                break
            for parent in made.parents:
                if parent not in before:
                    before[parent] = number
                    queue.append(parent)
        way = [number]
        while before[way[-1]]:
            way.append(before[way[-1]])
        return [self._made[one - 1] for one in way]

    @staticmethod
    def _from_nan(way: list[_Made]) -> tuple[list[_Made], list[_Made]]:
        """Return the part of a way before NaN comes up and that from there on, where its infinities were meant."""
        first = next((number for number, one in enumerate(way) if one.what == _NAN), 0)
        return (way[:first], way[first:]) if _is_meant(way[0]) else ([], way)

    def _has_nan(self, numbers: Iterable[int]) -> bool:
        """Return whether a word of some numbers left NaN; an input that is not finite may hold some."""
        found = (self._made[one - 1] for one in numbers)
        return any(one.event is None or one.what == _NAN for one in found)

    def _finding(self, kind: str, output: str, count: int, way: list[_Made]) -> Finding:
        infinite, way = self._from_nan(way) if kind == "nan" else ([], way)
        origin = way[0]
        what = "NaN" if kind == "nan" else "infinite"
        passed = tuple(self._site(one, "passes it on") for one in way[1:][-_WAY:] if one.event is not None)
        tail = f"{count} elements of output {output} are {what}"
        if origin.event is None:
            site = Site(0, "host", "host", -1, "", access="gives")
            given, where = (f"input {origin.name}", "as input") if origin.name else ("a constant", "in the file")
            message, hint = f"{given} is not finite, and {tail}", f"check what is given {where}"
        else:
            site = self._site(origin, "makes")
            operands = "infinite" if infinite else "finite"
            brought = not origin.parents and isinstance(origin.event.instruction, CollectiveTransfer)
            began = "reads what nothing wrote" if origin.fresh else f"makes {origin.what} of {operands} operands"
            if brought:
                began = f"brings {origin.what} that this rank did not put in"
            passed = (*(self._site(one, "makes infinite values") for one in infinite if one.event), *passed)
            message = f"{site.engine} pc {site.pc} {began}, and {tail}"
            if origin.fresh:
                hint = "write the tile before this word (check --tool initcheck says which bytes)"
            elif brought:
                hint = (
                    "look at the other ranks: that where they begin has a finding of its own; else the sum is too large"
                )
            elif infinite:
                hint = "keep its operands finite, as with -1e30 in the place of -inf in a mask"
            else:
                hint = (
                    "look at its operands there: a division by zero, an exponent or a sum too large, a logarithm of 0"
                )
        severity = KINDS[f"nancheck:{kind}"].severity
        return Finding("nancheck", kind, severity, message, site, passed, None, output, hint,
                       details={"output": output, "elements": count, "steps": len(way)})  # fmt: skip

    def _overflow(self, event: Event, dtype: str, count: int) -> Finding:
        site = self._place(event, "stores")
        message = f"{site.engine} pc {site.pc} stores {count} numbers as {dtype} that do not fit, or are NaN"
        hint = "limit the numbers first (nl.minimum, nl.maximum), or use a wider type: what a device stores is unknown"
        severity = KINDS["nancheck:overflow"].severity
        return Finding("nancheck", "overflow", severity, message, site, hint=hint, details={"elements": count})

    def _rounding(self, event: Event, count: int) -> Finding:
        site = self._place(event, "stores")
        message = f"{site.engine} pc {site.pc} computes in fp32 with {count} integers over 2**24 that it does not hold"
        hint = "keep integers within 2**24, or compute on GpSimd, which takes tensors of 32-bit integers as they are"
        severity = KINDS["nancheck:rounded"].severity
        return Finding("nancheck", "rounded", severity, message, site, hint=hint, details={"elements": count})

    def _site(self, made: _Made, access: str) -> Site:
        assert made.event is not None
        return self._place(made.event, access)

    def _place(self, event: Event, access: str) -> Site:
        word = event.instruction
        owner = getattr(word, "engine", event.engine)
        return site_of(self.device, event.core, event.engine, event.pc, word, owner=owner, access=access,
                       operand="dst", time_ps=event.time_ps)  # fmt: skip


def _is_meant(made: _Made) -> bool:
    """Return whether infinities are a word's purpose: it has nothing to compute them of, or they stand in it."""
    if made.what == _NAN or made.fresh:
        return False
    if made.event is None:
        return True
    word = made.event.instruction
    if not isinstance(word, isa.Instruction):
        return False
    read = any(plan.reads and plan.field.enabled(word.raw) for plan in plan_of(type(word)))
    values = (field.read(word.raw) for field in word.FIELDS.values())
    return not read or any(isinstance(value, float) and math.isinf(value) for value in values)


def _numbers_in(marks: Marks) -> list[int]:
    """Return the numbers among marks, ascending; counting takes one look at each where sorting takes many."""
    found: list[int] = np.flatnonzero(np.bincount(marks)).tolist()
    return found


def _any_bad(values: npt.NDArray[Any], allocation: Allocation) -> bool:
    """Return whether anything is NaN or infinite, without a mask as large as the allocation."""
    for start in range(0, values.size, _PART):
        bad = _bad(values[start : start + _PART])
        if bad is not None and bad.any():
            return True
        if allocation.pages is not None:
            allocation.pages.leave()
    return False


def _bad(values: npt.NDArray[Any]) -> Mask | None:
    """Return which elements are NaN or infinite, None for types that have neither."""
    finite = _finite(values)
    return None if finite is None else ~finite


def _some_bad(values: npt.NDArray[Any]) -> Mask | None:
    """Return which elements are NaN or infinite, None where none is."""
    finite = _finite(values)
    return None if finite is None or finite.all() else ~finite


def _finite(values: npt.NDArray[Any]) -> Mask | None:
    dtype = values.dtype
    if dtype.kind in "iub":
        return None
    if dtype == np.float32:
        found: Mask = np.isfinite(values)
        return found
    with np.errstate(all="ignore"):
        return np.isfinite(values.astype(np.float32))
