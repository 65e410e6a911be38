"""An order of operations in which engines wait less: what is ready goes ahead of what waits, for who asks for it.

Engines carry out their words in order, so a fill for the next tile that stands behind the copy of this one waits with
it. AWS's compiler moves such words; the builder keeps the kernel's order unless it is told to schedule. Then operations
are laid on engines in time, by rough costs, the oldest that is ready first, no further ahead than some hundreds and
than tiles have room. Operations that depend on each other keep their order, so results are the same to the bit.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Sequence
from math import prod

from formats.dtypes import Dtype
from neurontools.builder.allocate import allocate
from neurontools.builder.chip import Chip
from neurontools.builder.dependencies import accesses_of, predecessors, stands
from neurontools.builder.errors import AllocationError
from neurontools.builder.sinking import renumbered
from neurontools.builder.tiles import lives_of
from neurontools.builder.trace import ComputeOp, MatmulOp, Op, Space, Trace, View, views_of

__all__ = ["scheduled"]

_AHEAD = 512  # operations of the kernel that one may pass
_CHOICES = 8  # of those that are ready on an engine, how many are looked at for one whose tiles have room
# Parts of SBUF and PSUM that tiles may take for operations to go ahead; the first that leaves a place for all.
_ROOM = (3 / 4, 7 / 8), (3 / 4, 5 / 8), (1 / 2, 1 / 2), (1 / 4, 1 / 4)
# Nanoseconds, those of trn2 roughly: `emulator.cost` has them exactly. Of a column, of a word, until it is seen.
_COLUMN = {"DVE": 1.04, "Activation": 0.83, "Pool": 1.04}
_WORD, _SEEN = 60.0, 150.0
_PE_COLUMN, _WEIGHTS, _FP32_PASSES = 0.42, 60.0, 4
_TRIGGER, _BYTE, _ARRIVAL = 600.0, 1 / 368, 2000.0


def scheduled(trace: Trace, chip: Chip) -> Trace:
    """Return the trace in an order in which engines wait less; as it is where its tiles have no room in any."""
    before = predecessors(trace)
    for parts in _ROOM:
        other = renumbered(trace, _Schedule(trace, chip, before, parts).order())
        try:
            allocate(lives_of(other), chip)
        except AllocationError:
            continue
        return other
    return trace


class _Engine:
    """What is to be laid on an engine: operations that are ready, and those that will be at a time, both sorted."""

    __slots__ = ("free", "pending", "ready")

    def __init__(self) -> None:
        self.free = 0.0
        self.ready: list[int] = []
        self.pending: list[tuple[float, int]] = []

    def settle(self) -> None:
        """Have those ready whose time has come when the engine is free."""
        pending, free = self.pending, self.free
        while pending and pending[0][0] <= free:
            insort(self.ready, pending.pop(0)[1])


class _Room:
    """The bytes that live tiles take in SBUF and PSUM, and how many there may be."""

    def __init__(self, ops: Sequence[Op], chip: Chip, parts: tuple[float, float]) -> None:
        sbuf, psum = parts
        self._most = {Space.SBUF: sbuf * (chip.sbuf_end - chip.sbuf_first), Space.PSUM: psum * chip.psum_bytes}
        self._bank = chip.psum_bank
        self._taken = {Space.SBUF: 0, Space.PSUM: 0}
        self._live: set[int] = set()
        self._tiles = [self._tiles_of(op) for op in ops]
        self._left: dict[int, int] = defaultdict(int)  # operations that still want a tile
        for tiles in self._tiles:
            for tile in tiles:
                self._left[tile] += 1

    def _tiles_of(self, op: Op) -> dict[int, tuple[Space, int]]:
        """Return memory and bytes of the tiles of an operation that the builder places, whole banks in PSUM."""
        found: dict[int, tuple[Space, int]] = {}
        for view in views_of(op):
            tile = view.allocation
            if tile.space is not Space.HBM and tile.address is None:
                unit = self._bank if tile.space is Space.PSUM else 1
                found[tile.id] = tile.space, -(-tile.partition_bytes // unit) * unit
        return found

    def holds(self, number: int) -> bool:
        """Return whether the tiles that begin with an operation fit beside those that live."""
        more = {Space.SBUF: 0, Space.PSUM: 0}
        for tile, (space, size) in self._tiles[number].items():
            if tile not in self._live:
                more[space] += size
        return all(not size or self._taken[space] + size <= self._most[space] for space, size in more.items())

    def take(self, number: int) -> None:
        """Let tiles begin with an operation, and end where it is the last that wants them."""
        for tile, (space, size) in self._tiles[number].items():
            if tile not in self._live:
                self._live.add(tile)
                self._taken[space] += size
            self._left[tile] -= 1
            if not self._left[tile]:
                self._live.discard(tile)
                self._taken[space] -= size


class _Schedule:
    """Operations that are laid on engines one after the other, each as early as it can begin."""

    def __init__(self, trace: Trace, chip: Chip, before: Sequence[tuple[int, ...]], parts: tuple[float, float]) -> None:
        self._ops, self._before = trace.ops, before
        self._room = _Room(trace.ops, chip, parts)
        self._engines: defaultdict[str, _Engine] = defaultdict(_Engine)
        self._data = 0.0  # when the DMA engines are through with what they were given
        self._end = [-1.0] * len(trace.ops)  # of those that are laid
        self._order: list[int] = []

    def order(self) -> list[int]:
        """Return the numbers of the operations in their new order; none passes what `stands`."""
        begin = 0
        edges = [number for number, op in enumerate(self._ops) if stands(op)]
        for edge in (*edges, len(self._ops)):
            self._lay_all(begin, edge)
            if edge < len(self._ops):
                self._lay(edge, max(self._end))
            begin = edge + 1
        return self._order

    def _lay_all(self, begin: int, end: int) -> None:
        """Lay the operations of a stretch in which nothing stands."""
        followers: dict[int, list[int]] = defaultdict(list)
        waits: dict[int, int] = {}
        for number in range(begin, end):
            ahead = [one for one in self._before[number] if one >= begin]
            waits[number] = len(ahead)
            for one in ahead:
                followers[one].append(number)
            if not ahead:
                self._engine_of(number).pending.append((0.0, number))
        oldest = begin
        while oldest < end:
            start, number = self._next(oldest)
            self._lay(number, start)
            for one in followers[number]:
                waits[one] -= 1
                if not waits[one]:
                    from_when = max([self._end[other] for other in self._before[one]])
                    insort(self._engine_of(one).pending, (from_when, one))
            while oldest < end and self._end[oldest] >= 0:
                oldest += 1

    def _next(self, oldest: int) -> tuple[float, int]:
        """Take what can begin first off its engine, the oldest where none may; return when, and its number."""
        best: tuple[float, int] | None = None
        for engine in self._engines.values():
            engine.settle()
            for number in engine.ready[:_CHOICES]:
                if self._may_go(number, oldest):
                    best = min(best or (engine.free, number), (engine.free, number))
                    break
            else:
                for each in engine.pending[:_CHOICES]:
                    if self._may_go(each[1], oldest):
                        best = min(best or each, each)
                        break
        if best is None:  # it is there: all before it are laid
            engine = self._engine_of(oldest)
            best = next((each for each in engine.pending if each[1] == oldest), (engine.free, oldest))
        engine = self._engine_of(best[1])
        if best in engine.pending:
            engine.pending.remove(best)
        else:
            engine.ready.remove(best[1])
        return best

    def _may_go(self, number: int, oldest: int) -> bool:
        """Return whether an operation is the oldest, or not too far ahead of it and its tiles have room."""
        return number == oldest or (number - oldest <= _AHEAD and self._room.holds(number))

    def _lay(self, number: int, start: float) -> None:
        """Lay an operation on its engine."""
        op = self._ops[number]
        self._order.append(number)
        self._room.take(number)
        if isinstance(op, ComputeOp):
            busy = _WORD + max(map(_columns, op.operands.values()), default=0) * _COLUMN.get(op.engine, 1.0)
            self._end[number] = start + busy + _SEEN
        elif isinstance(op, MatmulOp):
            passes = _FP32_PASSES if op.moving.dtype is Dtype.FLOAT32 else 1
            busy = _WEIGHTS + _columns(op.moving) * passes * _PE_COLUMN
            self._end[number] = start + busy + _SEEN
        else:
            busy = _TRIGGER
            moved = sum(view.elements * view.dtype.size for view, write in accesses_of(op) if write)
            self._data = max(self._data, start + busy) + moved * _BYTE
            self._end[number] = self._data + _ARRIVAL
        self._engine_of(number).free = start + busy

    def _engine_of(self, number: int) -> _Engine:
        """Return the engine that carries out an operation, or whose queue does."""
        op = self._ops[number]
        if isinstance(op, MatmulOp):
            return self._engines["PE"]
        name: str | None = getattr(op, "engine", None)
        if name is None:  # the builder chooses one later
            dst: View | None = getattr(op, "dst", None)
            name = "Pool" if dst is not None and dst.allocation.space is Space.HBM else "SP"
        return self._engines[name]


def _columns(view: View) -> int:
    return prod([count for _, count in view.dims])
