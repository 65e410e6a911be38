"""What tiles leave behind at addresses that the kernel chose: whether a later tile at the place reads it.

A kernel may keep data at an address under another name, so that bytes between two tiles at one address belong to
nobody else. They are free in between where each later tile there writes what it reads before it does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from formats.named_tuple import NamedTuple
from neurontools.builder.allocate import Life, Span, span_of
from neurontools.builder.planes import part_of
from neurontools.builder.trace import (
    Allocation,
    ComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Op,
    Trace,
    View,
    views_of,
)

__all__ = ["Leftovers"]


class _Use(NamedTuple):
    """Whether a tile reads what it has not written, and whether it writes all of its bytes."""

    reads_older: bool
    writes_all: bool


class _Place(NamedTuple):
    """The tiles at addresses that share a byte with a span, by their first operations, and the partitions of all."""

    lives: list[Life]
    firsts: list[int]
    partitions: tuple[int, int]
    is_looped: bool


class Leftovers:
    """Tells of any place whether what a tile leaves there is read; `lives` are those of the trace as it stands."""

    def __init__(self, trace: Trace, lives: Sequence[Life]) -> None:
        self._trace = trace
        self._fixed = sorted((life for life in lives if life.allocation.address is not None), key=lambda one: one.first)
        self._ops: dict[int, list[int]] | None = None
        self._looped: set[int] = set()
        self._uses: dict[int, _Use] = {}
        self._places: dict[tuple[object, Span], _Place] = {}

    def are_read(self, span: Span, space: object, after: int) -> bool:
        """Return whether what the tiles up to an operation leave in a span may be read by those that come later."""
        place = self._places.get((space, span))
        if place is None:
            place = self._places[space, span] = self._place(span, space)
        if place.is_looped:
            return True
        for number in range(bisect_right(place.firsts, after), len(place.lives)):
            life = place.lives[number]
            use = self._use(life.allocation)
            if use.reads_older:
                return True
            if use.writes_all and _covers(life, span, place.partitions):
                return False
        return False

    def _place(self, span: Span, space: object) -> _Place:
        """Return what there is to know of the tiles that share a byte with a span."""
        beside = []
        for life in self._fixed:
            if life.allocation.space is space:
                low, high = span_of(life)
                if span.low < high and low < span.high:
                    beside.append(life)
        self._operations()
        partitions = [_partitions(life) for life in beside]
        return _Place(
            beside,
            [life.first for life in beside],
            (min(low for low, _ in partitions), max(high for _, high in partitions)),
            # The next turn of a loop comes back to tiles that lie before in the program.
            any(life.allocation.id in self._looped for life in beside),
        )

    def _operations(self) -> dict[int, list[int]]:
        """Return the operations on each tile at an address, and note the tiles that a loop touches."""
        if self._ops is None:
            self._ops = defaultdict(list)
            fixed = {life.allocation.id for life in self._fixed}
            depth = 0
            for number, op in enumerate(self._trace.ops):
                depth += isinstance(op, LoopOp)
                for tile in dict.fromkeys(view.allocation.id for view in views_of(op)):
                    if tile in fixed:
                        self._ops[tile].append(number)
                        if depth:
                            self._looped.add(tile)
                depth -= isinstance(op, LoopEndOp)
        return self._ops

    def _use(self, tile: Allocation) -> _Use:
        found = self._uses.get(tile.id)
        if found is None:
            found = self._uses[tile.id] = self._used(tile)
        return found

    def _used(self, tile: Allocation) -> _Use:
        plane = np.zeros((tile.partitions, tile.partition_bytes), dtype=bool)
        seen: set[tuple[object, ...]] = set()
        for number in self._operations()[tile.id]:
            for view, writes in _accesses(self._trace.ops[number], tile):
                key = writes, view.dtype.size, view.partition, view.partitions, view.offset, view.dims
                if key in seen:
                    continue
                seen.add(key)
                part = part_of(plane, view)
                if writes:
                    part[...] = True
                elif not part.all():
                    return _Use(True, False)
        return _Use(False, bool(plane.all()))


def _partitions(life: Life) -> tuple[int, int]:
    """Return the first partition of a tile at an address, and the one behind its last."""
    low, _ = life.allocation.address or (0, 0)
    return low, low + life.allocation.partitions


def _covers(life: Life, span: Span, partitions: tuple[int, int]) -> bool:
    low, high = span_of(life)
    first, last = _partitions(life)
    return low <= span.low and high >= span.high and first <= partitions[0] and last >= partitions[1]


def _accesses(op: Op, tile: Allocation) -> list[tuple[View, bool]]:
    """Return the views of a tile with whether an operation certainly writes all of them, reads first.

    What may read, or leave something as it is, counts as a read. A product that follows what its tile holds overwrites
    what that has not written.
    """
    if isinstance(op, ComputeOp):
        sound = op.instruction.OVERWRITES and not op.fields.get("accumulate")
        outputs = [op.operands[name] for name, role in op.instruction.OPERANDS.items()
                   if sound and role.role == "write" and name in op.operands]  # fmt: skip
    elif isinstance(op, MatmulOp):
        outputs = [] if op.accumulate else [op.dst]
    elif isinstance(op, DmaOp):
        outputs = [op.dst]
    elif isinstance(op, IndirectDmaOp):
        outputs = [] if op.scatter or op.skip or op.accumulate else [op.dst]
    else:
        outputs = []
    inputs = list(views_of(op))
    for one in outputs:
        inputs.remove(one)
    return [*((view, False) for view in inputs if view.allocation is tile),
            *((view, True) for view in outputs if view.allocation is tile)]  # fmt: skip
