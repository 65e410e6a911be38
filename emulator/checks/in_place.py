"""Words that write bytes which they read only later: what a device reads there is open.

An engine streams: it reads the elements of its inputs in order, and writes each result a pipeline's length behind.
Where a result lies on an element that is read later, as in a copy of a row onto itself one column on, the distance
decides whether the element is read before it is overwritten, and how long the pipelines are is not public. The
emulator reads all before it writes. The same place, and one that is read already, are in order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from emulator.access import plan_of
from emulator.checks.kept import kept_of
from emulator.device import Device
from formats import isa
from formats.dtypes import Dtype
from formats.errors import NeuronError
from formats.isa import Dataflow, Pattern
from formats.named_tuple import NamedTuple
from formats.regions import Region

__all__ = ["Reread", "rereads_of"]

_ADDRESS = 4  # bytes
_HEADER = 12  # bytes of opcode, waits and signals in front of a word's operands


class Reread(NamedTuple):
    """A word that writes what it reads later: where it stands, the operand that is read, and the bytes."""

    core: int
    engine: str
    pc: int
    operand: str
    region: Region


class _Side(NamedTuple):
    """An operand without its address: its steps in bytes, innermost last, how often each, and the bytes of an element.

    `low` and `high` are the first byte that it may reach, and the one behind the last.
    """

    steps: tuple[int, ...]
    counts: tuple[int, ...]
    size: int
    low: int
    high: int

    @property
    def starts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the byte where each element begins, in order."""
        starts = np.zeros(1, np.int64)
        for step, count in zip(self.steps, self.counts, strict=True):
            starts = (starts[:, None] + np.arange(count) * step).reshape(-1)
        return starts


class _Pair(NamedTuple):
    """An input beside the result: its name, which address is its own, and between which distances they share bytes."""

    operand: str
    place: int
    below: int
    above: int
    source: _Side
    target: _Side
    is_same: bool
    known: dict[int, bool]  # by distance of the result


class _Operands(NamedTuple):
    """The operands of a class of words: the result last, all of their addresses, and what holds none of them.

    `kinds` are words that differ in addresses only.
    """

    fields: tuple[tuple[str, int, Pattern], ...]  # each with the place of its address among all
    addresses: struct.Struct
    rest: Callable[[bytes], tuple[bytes, ...]]
    kinds: dict[tuple[bytes, ...], list[_Pair]]


def rereads_of(device: Device) -> list[Reread]:
    """Return the words of a program that write bytes which they read only later."""
    return kept_of(device, "rereads", lambda: _find(device))


def _find(device: Device) -> list[Reread]:
    found: list[Reread] = []
    classes: dict[type[isa.Instruction], _Operands | None] = {}
    for core in device.cores:
        for name, engine in core.engines.items():
            for loaded in engine.words:
                word = loaded.word
                cls = type(word)
                operands = classes[cls] if cls in classes else classes.setdefault(cls, _operands(cls))
                if operands is None:
                    continue
                fields, packed, rest, kinds = operands
                kind = rest(word.raw)
                pairs = kinds.get(kind)
                if pairs is None:
                    pairs = kinds[kind] = _pairs(word, operands)
                if not pairs:
                    continue
                addresses = packed.unpack_from(word.raw)
                at = addresses[fields[-1][1]]
                for operand, place, below, above, source, target, is_same, known in pairs:
                    distance = at - addresses[place]
                    if not below < distance < above or (is_same and not distance):
                        continue
                    if distance not in known:
                        known[distance] = _is_reread(source, target, distance)
                    if known[distance] and (region := _common(core, word, name, operand)) is not None:
                        found.append(Reread(core.index, name, loaded.pc, operand, region))
                        break
    return found


def _operands(cls: type[isa.Instruction]) -> _Operands | None:
    """Return the operands of words that make each result of the elements at its place; None for any other class."""
    plans = [plan for plan in plan_of(cls) if isinstance(plan.field, Pattern)]
    plans.sort(key=lambda plan: plan.writes)
    if cls.DATAFLOW is not Dataflow.ELEMENTS or [plan.writes for plan in plans[-2:]] != [False, True]:
        return None
    fields = [(plan.name, plan.field) for plan in plans if isinstance(plan.field, Pattern)]
    addresses = sorted(field.offset for _, field in fields)
    begins = (_HEADER, *(at + _ADDRESS for at in addresses))
    gaps = [at - begin for at, begin in zip(addresses, (0, *begins[1:]), strict=False)]
    return _Operands(
        tuple((name, addresses.index(field.offset), field) for name, field in fields),
        struct.Struct("<" + "".join(f"{gap}xI" for gap in gaps)),
        itemgetter(*map(slice, begins, (*addresses, None))),
        {},
    )


def _pairs(word: isa.Instruction, operands: _Operands) -> list[_Pair]:
    """Return the inputs of a word that have as many elements as the result."""
    pairs = []
    *inputs, (_, _, result) = operands.fields
    target = _side(word, result)
    for name, place, field in inputs:
        source = _side(word, field)
        if prod(source.counts) == prod(target.counts):
            below, above = source.low - target.high, source.high - target.low
            pairs.append(_Pair(name, place, below, above, source, target, source == target, {}))
    return pairs


def _side(word: isa.Instruction, field: Pattern) -> _Side:
    _, steps, counts = field.read(word.raw)
    size = Dtype(word.dtype_of(field)).size
    steps, counts = tuple(step * size for step in reversed(steps)), tuple(reversed(counts))
    reach = [step * (count - 1) for step, count in zip(steps, counts, strict=True)]
    return _Side(steps, counts, size, sum(min(one, 0) for one in reach), sum(max(one, 0) for one in reach) + size)


def _is_reread(source: _Side, target: _Side, distance: int) -> bool:
    """Return whether an element of the target, so many bytes on, lies on one of the source that comes later."""
    low = min(source.low, distance + target.low)
    width = max(source.high, distance + target.high) - low
    starts = source.starts
    places = np.arange(starts.size)
    read = np.full(width, -1, np.int64)
    for byte in range(source.size):
        np.maximum.at(read, starts - low + byte, places)
    written = target.starts + (distance - low)
    return any(bool((read[written + byte] > places).any()) for byte in range(target.size))


def _common(core: Any, word: isa.Instruction, engine: str, operand: str) -> Region | None:
    """Return a region of the result that shares bytes with the operand; None where they lie in other partitions."""
    try:
        of = {plan.name: core.resolver.resolve(word, plan, engine) for plan in plan_of(type(word))}
    except NeuronError:
        return None  # memcheck says what is wrong with it
    written = [one for plan in plan_of(type(word)) if plan.writes and of[plan.name] for one in of[plan.name].regions]
    return next((one for one in written if any(one.overlaps(other) for other in of[operand].regions)), None)
