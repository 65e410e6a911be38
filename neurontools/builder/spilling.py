"""Tiles that go through device memory, where a program wants more at once than SBUF holds.

Kernels of the first generation leave order and memory to AWS's compiler, which spills: what is not wanted for long is
stored, and loaded again before its next use. What a tile was loaded with from a tensor that nobody writes needs no
store. Of all that is in SBUF, what is wanted last goes first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from formats.named_tuple import NamedTuple
from neurontools.builder.allocate import Life
from neurontools.builder.chip import Chip
from neurontools.builder.dependencies import accesses_of
from neurontools.builder.live_ranges import MOVED, changed, covers, overwrites
from neurontools.builder.trace import Allocation, DmaOp, LoopOp, Op, Source, Space, Trace, View, views_of

__all__ = ["Spilled", "spilled"]

# Parts of SBUF, ours, that stay free for gaps between tiles; less is tried first. With a sixty-fourth, places for the
# tiles of a long program took as long to find as all else.
_SPARE = (16, 8, 4)
_PIECE = 32 << 10  # bytes per partition of one transfer


class Spilled(NamedTuple):
    """A program some of whose tiles go through device memory: where the first had to, and what moves."""

    trace: Trace
    source: Source
    tiles: int
    stored_bytes: int
    loaded_bytes: int


def spilled(trace: Trace, lives: Sequence[Life], chip: Chip) -> Iterator[Spilled]:
    """Yield programs in which the tiles in SBUF are never more bytes than it has, by what they leave free for gaps.

    None where a loop of the device might come to a tile at other moments, or the kernel has placed tiles itself.
    `lives` are those of the trace as it stands.
    """
    if any(isinstance(op, LoopOp) for op in trace.ops):
        return
    if any(life.allocation.address is not None and life.allocation.space is Space.SBUF for life in lives):
        return
    capacity = chip.sbuf_end - chip.sbuf_first
    for part in _SPARE:
        found = _Spiller(trace, capacity - capacity // part).run()
        if found is not None:
            yield found


class _Spiller:
    """One pass over a program's operations, with what is in SBUF before each."""

    def __init__(self, trace: Trace, capacity: int) -> None:
        self.trace, self.capacity = trace, capacity
        self.uses: dict[int, list[int]] = defaultdict(list)
        self.pinned: set[int] = set()  # tiles of operations that cannot be given another one
        writers: dict[int, list[Op]] = defaultdict(list)
        for number, op in enumerate(trace.ops):
            tiles = dict.fromkeys(view.allocation.id for view in views_of(op) if view.allocation.space is Space.SBUF)
            for tile in tiles:
                self.uses[tile].append(number)
            if not isinstance(op, MOVED):
                self.pinned.update(tiles)
                for view in views_of(op):  # it may write any of them
                    writers[view.allocation.id].append(op)
            for view, writes in accesses_of(op):
                if writes:
                    writers[view.allocation.id].append(op)
        # Loads that give a tile all it ever holds: done again, they give the same where no other program may write.
        self.again = {
            tile: op
            for tile, (op, *others) in writers.items()
            if not others and isinstance(op, DmaOp) and covers(op.dst) and tile in self.uses and trace.num_programs == 1
            and op.src.allocation.kind in ("input", "constant") and op.src.allocation.id not in writers
        }  # fmt: skip
        self.ops: list[Op] = []
        self.made: list[Allocation] = []
        self.number = 1 + max((one.id for one in trace.allocations), default=0)
        self.taken_names = {one.name for one in trace.allocations}
        self.held: dict[int, Allocation] = {}  # what stands for a tile that is in SBUF
        self.used = 0
        self.home: dict[int, Allocation] = {}  # device memory of tiles that were stored
        self.stored: set[int] = set()  # of them those whose home has what they hold
        self.gone: set[int] = set()
        self.first: Source | None = None
        self.stored_bytes = self.loaded_bytes = 0

    def run(self) -> Spilled | None:
        """Return the program; None where the operands of one operation are more than there is room for."""
        places = []
        for number, op in enumerate(self.trace.ops):
            tiles = {one.id: one for view in views_of(op) if (one := view.allocation).space is Space.SBUF}
            if not self._bring(number, op, tiles):
                return None
            places.append(len(self.ops))
            now = {tile: held for tile in tiles if (held := self.held[tile]) is not tiles[tile]}
            self.ops.append(changed(op, now) if now else op)
            for view, writes in accesses_of(op):
                if writes:
                    self.stored.discard(view.allocation.id)
            for tile, one in tiles.items():
                if self.uses[tile][-1] == number:
                    del self.held[tile]
                    self.used -= one.partition_bytes
        if self.first is None:
            return None
        trace = self.trace
        other = Trace(trace.target, trace.program_id, trace.num_programs)
        other.visits, other.spills = trace.visits, trace.spills
        other.allocations = [*trace.allocations, *self.made]
        other.inputs, other.outputs, other.results = trace.inputs, trace.outputs, trace.results
        other.ops = self.ops
        other.after = {places[one]: {places[each] for each in ones} for one, ones in trace.after.items()}
        return Spilled(other, self.first, len(self.gone), self.stored_bytes, self.loaded_bytes)

    def _bring(self, number: int, op: Op, tiles: dict[int, Allocation]) -> bool:
        """Make all tiles of an operation be in SBUF; return whether there is room."""
        missing = [one for tile, one in tiles.items() if tile not in self.held]
        if not missing:
            return True
        wanted = sum(one.partition_bytes for one in missing)
        while self.used + wanted > self.capacity:
            others = [tile for tile in self.held if tile not in tiles and tile not in self.pinned]
            if not others:
                return False
            self._leave(max(others, key=lambda tile: self._next_use(tile, number)), op.source)
        for one in missing:
            self.used += one.partition_bytes
            if one.id not in self.gone:
                self.held[one.id] = one
                continue
            now = self.held[one.id] = self._allocation(Space.SBUF, one.name, one, "tile")
            if overwrites(op, one):
                continue
            again = self.again.get(one.id)
            if again is not None:
                self.ops.append(changed(again, {one.id: now}))
            else:
                self._move(now, self.home[one.id], op.source, loads=True)
            self.loaded_bytes += one.nbytes
        return True

    def _leave(self, tile: int, source: Source) -> None:
        """Take a tile out of SBUF; store it where nothing else has what it holds."""
        self.first = self.first or source
        one = self.held.pop(tile)
        self.used -= one.partition_bytes
        self.gone.add(tile)
        if tile in self.again or tile in self.stored:
            return
        if tile not in self.home:
            name = f"{one.name}_spilled"
            while name in self.taken_names:
                name += "_"
            self.taken_names.add(name)
            self.home[tile] = self._allocation(Space.HBM, name, one, "private")
        self._move(one, self.home[tile], source, loads=False)
        self.stored.add(tile)
        self.stored_bytes += one.nbytes

    def _next_use(self, tile: int, number: int) -> int:
        uses = self.uses[tile]
        return uses[bisect_right(uses, number)]

    def _allocation(self, space: Space, name: str, like: Allocation, kind: str) -> Allocation:
        shape = like.shape if space is Space.SBUF else (like.partitions, like.partition_bytes // like.dtype.size)
        made = Allocation(self.number, space, name, like.dtype, shape, kind, born=len(self.ops))
        self.number += 1
        self.made.append(made)
        return made

    def _move(self, tile: Allocation, home: Allocation, source: Source, *, loads: bool) -> None:
        """Copy a tile to its home or back, in pieces as long as one transfer takes."""
        size = tile.dtype.size
        row = tile.partition_bytes // size
        for first in range(0, row, _PIECE // size):
            count = min(_PIECE // size, row - first)
            here = View(tile, tile.dtype, 0, tile.partitions, first * size, ((1, count),))
            there = View(home, tile.dtype, 0, 1, first * size, ((row, tile.partitions), (1, count)))
            ends = (here, there) if loads else (there, here)
            word = "reload" if loads else "spill"
            self.ops.append(DmaOp(*ends, None, False, source, f"{word} {tile.name}"))
