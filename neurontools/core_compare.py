"""What differs between two core dumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.core import Segment
from neurontools.render.core import plain

if TYPE_CHECKING:
    from formats.core import Core

__all__ = ["Compared", "Difference", "MemoryDifference", "compare"]

_RANGES = 200
# When and where a dump was taken differs between any two.
_PASSED_OVER = frozenset(("created", "pid", "tool_version"))


class Difference(NamedTuple):
    """One value that is not the same: `where` as "nc0 PE pc", and what either dump has there."""

    where: str
    one: Any
    two: Any


class MemoryDifference(NamedTuple):
    """Bytes that both dumps hold and that differ: in partition (0 in HBM) from byte `first` to `last`."""

    space: str
    core: int
    name: str
    partition: int
    first: int
    last: int
    different: int


class Compared(NamedTuple):
    """What differs; `compared` bytes of memory are in both dumps, `only_one` and `only_two` in one of them."""

    differences: tuple[Difference, ...]
    memory: tuple[MemoryDifference, ...]
    compared: int
    only_one: int
    only_two: int


def compare(one: Core, two: Core) -> Compared:
    """Compare two dumps."""
    memory, compared = _memory(one, two)
    sizes = [sum(segment.size for segment in core.segments) for core in (one, two)]
    return Compared(tuple(_state(one, two)), tuple(memory), compared, sizes[0] - compared, sizes[1] - compared)


def _state(one: Core, two: Core) -> Iterator[Difference]:
    for name in ("dump", "status", "fault", "neff"):
        yield from _fields(name, plain(getattr(one, name)), plain(getattr(two, name)))
    yield from _keyed(
        [({"core": e.core, "engine": e.engine}, e) for e in one.engines],
        [({"core": e.core, "engine": e.engine}, e) for e in two.engines],
    )
    for number in sorted({bank.core for core in (one, two) for bank in core.counters}):
        for letter, left, right in (
            ("S", one.semaphores(number), two.semaphores(number)),
            ("E", one.events(number), two.events(number)),
        ):
            for index in range(max(len(left), len(right))):
                mine = left[index] if index < len(left) else None
                its = right[index] if index < len(right) else None
                if mine != its:
                    yield Difference(f"nc{number} {letter}[{index}]", mine, its)
    yield from _keyed(
        [({"core": q.core, "engine": q.name}, q._replace(transfers=())) for q in one.queues],
        [({"core": q.core, "engine": q.name}, q._replace(transfers=())) for q in two.queues],
    )


def _keyed(left: list[tuple[dict[str, Any], Any]], right: list[tuple[dict[str, Any], Any]]) -> Iterator[Difference]:
    """Compare records of one kind by core and name."""
    ones, twos = ({f"nc{k['core']} {k['engine']}": plain(v) for k, v in side} for side in (left, right))
    for name in dict.fromkeys([*ones, *twos]):
        yield from _fields(name, ones.get(name), twos.get(name))


def _fields(name: str, one: Any, two: Any) -> Iterator[Difference]:
    if one == two:
        return
    if not isinstance(one, dict) or not isinstance(two, dict):
        yield Difference(name, _short(one), _short(two))
        return
    for key in one:
        if one[key] == two[key] or key in _PASSED_OVER:
            continue
        if key == "registers":
            longest = max(len(one[key]), len(two[key]))
            for number in range(longest):
                mine, its = (side[key][number] if number < len(side[key]) else 0 for side in (one, two))
                if mine != its:
                    yield Difference(f"{name} r{number}", mine, its)
        else:
            yield Difference(f"{name} {key}", _short(one[key]), _short(two[key]))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("condition") or value.get("message") or value
    return value


def _memory(one: Core, two: Core) -> tuple[list[MemoryDifference], int]:
    """Compare what both dumps hold; neighbours with the same place in a partition are not drawn together."""
    found: list[MemoryDifference] = []
    compared = 0
    for mine in one.segments:
        for its in two.segments.within(mine.address, mine.address + mine.size):
            low, high = max(mine.address, its.address), min(mine.address + mine.size, its.address + its.size)
            left = one.segments.data(mine)[low - mine.address : high - mine.address]
            right = two.segments.data(its)[low - its.address : high - its.address]
            compared += high - low
            if len(found) < _RANGES and bytes(left) != bytes(right):
                found.append(_difference(one, mine, low, left, right))
    return found, compared


def _difference(core: Core, segment: Segment, low: int, left: memoryview, right: memoryview) -> MemoryDifference:
    import numpy as np

    places = np.flatnonzero(np.frombuffer(left, np.uint8) != np.frombuffer(right, np.uint8))
    start = segment.byte + low - segment.address
    name = segment.engine
    if segment.space == "HBM":
        name = next((a.name for a in core.allocations if a.address <= low < a.address + a.nbytes), "")
    first, last = start + int(places[0]), start + int(places[-1])
    return MemoryDifference(segment.space, segment.core, name, segment.partition, first, last, int(places.size))
