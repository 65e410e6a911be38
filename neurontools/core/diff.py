"""`neurontools core diff`: what is different between two dumps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from formats.core import Core, Segment
from formats.core.records import EngineState, FaultNote, QueueState, Waiting
from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json
from neurontools.command.output import report
from neurontools.command.results import plain
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.text.table import bytes_text, count, table

_SHOWN, _WIDTH = 40, 60  # rows of a list, characters of a value
# When and where a dump was taken differs between any two.
_PASSED_OVER = frozenset(("created", "pid", "tool_version"))

Value = str | int | float | bool | list[object] | dict[str, object] | None


class Difference(NamedTuple):
    """One value that is not the same."""

    where: Annotated[str, 'As "nc0 PE pc".']
    one: Value
    two: Value


class MemoryDifference(NamedTuple):
    """Bytes that both dumps hold and that differ."""

    space: str
    core: int
    name: Annotated[str, "Engine, or allocation in HBM."]
    partition: Annotated[int, "0 in HBM."]
    first: Annotated[int, "First byte that differs."]
    last: Annotated[int, "Last byte that differs."]
    different: Annotated[int, "How many bytes between them differ."]
    written: Annotated[int, "How many of them only one of the two devices had written."]


class Compared(NamedTuple):
    """What differs between two dumps."""

    same: bool
    differences: tuple[Difference, ...]
    memory: tuple[MemoryDifference, ...]
    compared: Annotated[int, "Bytes of memory that are in both dumps."]
    only_one: Annotated[int, "Bytes of memory that only the first one holds."]
    only_two: Annotated[int, "Bytes of memory that only the second one holds."]


class _Record(Protocol):
    """A record of a dump; which fields it has its own class says."""

    @property
    def _fields(self) -> tuple[str, ...]: ...


def compare(one: Core, two: Core) -> Compared:
    """Compare two dumps."""
    differences = tuple(_state(one, two))
    memory, compared = _memory(one, two)
    sizes = [sum(segment.size for segment in core.segments) for core in (one, two)]
    return Compared(
        not (differences or memory), differences, tuple(memory), compared, sizes[0] - compared, sizes[1] - compared
    )


def _state(one: Core, two: Core) -> Iterator[Difference]:
    yield from _fields("dump", one.dump, two.dump)
    yield from _fields("status", one.status, two.status)
    yield from _fields("fault", one.fault, two.fault)
    yield from _fields("neff", one.neff, two.neff)
    yield from _keyed(_engines(one), _engines(two))
    for number in sorted({bank.core for core in (one, two) for bank in core.counters}):
        yield from _counters(f"nc{number} S", one.semaphores(number), two.semaphores(number))
        yield from _counters(f"nc{number} E", one.events(number), two.events(number))
    yield from _keyed(_queues(one), _queues(two))


def _engines(core: Core) -> dict[str, EngineState]:
    return {f"nc{each.core} {each.engine}": each for each in core.engines}


def _queues(core: Core) -> dict[str, QueueState]:
    # A light dump keeps fewer transfers than a full one of the same moment.
    return {f"nc{each.core} {each.name}": each._replace(transfers=()) for each in core.queues}


def _counters(letter: str, left: Sequence[int], right: Sequence[int]) -> Iterator[Difference]:
    for index in range(max(len(left), len(right))):
        mine, its = (side[index] if index < len(side) else None for side in (left, right))
        if mine != its:
            yield Difference(f"{letter}[{index}]", mine, its)


def _keyed(left: Mapping[str, _Record], right: Mapping[str, _Record]) -> Iterator[Difference]:
    """Compare records of one kind by core and name."""
    for name in dict.fromkeys([*left, *right]):
        yield from _fields(name, left.get(name), right.get(name))


def _fields(name: str, one: _Record | None, two: _Record | None) -> Iterator[Difference]:
    if one is None or two is None:
        if one is not two:
            yield Difference(name, _short(one), _short(two))
        return
    for field in one._fields:
        mine, its = getattr(one, field), getattr(two, field)
        if mine == its or field in _PASSED_OVER:
            continue
        if field == "registers":  # zeros at the end are left out
            for number in range(max(len(mine), len(its))):
                left, right = (side[number] if number < len(side) else 0 for side in (mine, its))
                if left != right:
                    yield Difference(f"{name} r{number}", left, right)
        else:
            yield Difference(f"{name} {field}", _short(mine), _short(its))


def _short(value: object) -> Value:
    """Return a value as JSON has it; of a wait its condition and of a fault its message, which say it all."""
    text = value.condition if isinstance(value, Waiting) else value.message if isinstance(value, FaultNote) else ""
    found: Value = text or plain(value)
    return found


def _memory(one: Core, two: Core) -> tuple[list[MemoryDifference], int]:
    """Compare what both dumps hold, segment by segment; return what differs, and how many bytes were compared."""
    found: list[MemoryDifference] = []
    compared = 0
    for mine in one.segments:
        for its in two.segments.within(mine.address, mine.address + mine.size):
            low, high = max(mine.address, its.address), min(mine.address + mine.size, its.address + its.size)
            left = one.segments.data(mine)[low - mine.address : high - mine.address]
            right = two.segments.data(its)[low - its.address : high - its.address]
            compared += high - low
            # A byte that nothing wrote and one that was written with the same value are not the same state.
            wrote = [core.segments.written(part, low - part.address, high - low) if mine.written or its.written else b""
                     for core, part in ((one, mine), (two, its))]  # fmt: skip
            if bytes(left) != bytes(right) or wrote[0] != wrote[1]:
                found.append(_difference(one, mine, low, (left, right), wrote))
    return found, compared


def _difference(
    core: Core, segment: Segment, low: int, data: Sequence[bytes | memoryview], wrote: Sequence[bytes]
) -> MemoryDifference:
    import numpy as np

    bytes_, written = (np.not_equal(*(np.frombuffer(one, np.uint8) for one in pair)) for pair in (data, wrote))
    places = np.flatnonzero(bytes_ | written if written.size else bytes_)
    start = segment.byte + low - segment.address
    name = segment.engine
    if segment.space == "HBM":
        name = next((a.name for a in core.allocations if a.address <= low < a.address + a.nbytes), "")
    first, last = start + int(places[0]), start + int(places[-1])
    return MemoryDifference(
        segment.space, segment.core, name, segment.partition, first, last, int(bytes_.sum()), int(written.sum())
    )


def view(found: Compared) -> list[str]:
    """Return the text of `core diff`."""
    rows = [[d.where, _cut(d.one), _cut(d.two)] for d in found.differences[:_SHOWN]]
    lines = table(("what", "one", "two"), rows) if rows else []
    lines += _more(len(found.differences))
    memory = [
        [m.space, m.core, m.name or "-", m.partition, f"{m.first:#x}-{m.last:#x}", m.different, m.written]
        for m in found.memory[:_SHOWN]
    ]
    if memory:
        lines += ["", *table(("memory", "core", "name", "partition", "bytes", "different", "written by one"), memory)]
    lines += _more(len(found.memory))
    total = (
        f"{count(len(found.differences), 'difference')}, {count(len(found.memory), 'range')} of memory; "
        f"{bytes_text(found.compared)} are in both dumps, {bytes_text(found.only_one)} only in the first, "
        f"{bytes_text(found.only_two)} only in the second"
    )
    return [*lines, "", total] if lines else [f"the same: {total}"]


def _more(number: int) -> list[str]:
    return [f"and {number - _SHOWN} more; --json lists them"] if number > _SHOWN else []


def _cut(value: Value) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def diff(
    file: CoreFile,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Another core dump.", show_default=False)],
    error_exitcode: ErrorExitCode = None,
    json: Json = False,
) -> None:
    """Compare two core dumps.

    Status, fault, engines, registers, semaphores, queues, and of the memories what both dumps hold. When and where the
    dumps were taken is not compared.
    """
    with report("core diff", json, file=file, other=other) as out:
        one, two = open_core_file(file), open_core_file(other)
        out.result = found = compare(one, two)
        out.warn(*one.warnings)
        out.warn(*two.warnings)
        out.lines = lambda: view(found)
        if not found.same:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(diff, Compared)
