"""Fills moved back and reads moved forward, so that a program fits on chip that keeps too many tiles alive at once.

Kernels fill a row of tiles and then read them one by one; AWS's compiler schedules the reads between. The builder keeps
program order, and does what stands here only for a program whose tiles find no room in that order. Constants are then
filled in where they are first wanted; and where a tile cannot be placed, the operations that end the life of another,
and whatever they depend on, are carried out first. Tiles of many sizes may leave gaps too small for the next one though
there are bytes enough: then the order is made by counting bytes, some of them kept for what ends lives, and the places
are found afterwards. The order of any two operations that depend on each other stays, so results are the same to the
bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from formats.isa import Memset
from neurontools.builder.allocate import Life, Policy, Span, tightest
from neurontools.builder.chip import Chip
from neurontools.builder.dependencies import predecessors, stands
from neurontools.builder.trace import Allocation, ComputeOp, Op, Space, Trace, views_of

__all__ = ["hoist_last_uses", "ordered_by_bytes", "renumbered", "sink_fills"]

# Parts of SBUF, ours: what stays free altogether, for gaps (less is tried first), and what only those operations may
# use that end lives.
_SPARE = (64, 32)
_RESERVE = 16


def sink_fills(trace: Trace, lives: Sequence[Life]) -> Trace:
    """Return the trace with each constant that begins the life of a tile in front of the tile's next use.

    Such an operation needs nothing, so it may go as far, but past nothing that stands. Those that others wait for by
    `Trace.after` stay.
    """
    fills = {
        life.first: life.allocation.id
        for life in lives
        if life.allocation.address is None and _only_fills(trace.ops[life.first])
    }
    for numbers in trace.after.values():
        for number in numbers:
            fills.pop(number, None)
    waiting: dict[int, int] = {}  # by tile
    order: list[int] = []
    for number, op in enumerate(trace.ops):
        if number in fills:
            waiting[fills[number]] = number
            continue
        if waiting:
            wanted = list(waiting) if stands(op) else [view.allocation.id for view in views_of(op)]
            order += sorted({waiting.pop(tile) for tile in wanted if tile in waiting})
        order.append(number)
    order += waiting.values()
    return renumbered(trace, order)


def _only_fills(op: Op) -> bool:
    return isinstance(op, ComputeOp) and op.instruction is Memset and len(op.operands) == 1


def hoist_last_uses(trace: Trace, lives: Sequence[Life], chip: Chip) -> tuple[Trace, dict[int, tuple[int, int]]] | None:
    """Return the trace in an order in which its tiles fit, with their places in it; None where none is found.

    `lives` are those of the trace as it stands.
    """
    if not _fit_alone(lives, chip):
        return None
    scheduler = _Scheduler(trace, lives, chip)
    return (scheduler.traced(), scheduler.places) if scheduler.run() else None


def ordered_by_bytes(trace: Trace, lives: Sequence[Life], chip: Chip) -> Iterator[Trace]:
    """Return orders in which the tiles that live in SBUF at any moment are no more bytes than it has.

    Whether there is a place for each is for the caller to find out. `lives` are those of the trace as it stands. None
    where the kernel has placed tiles in SBUF itself.
    """
    if any(life.allocation.address is not None and life.allocation.space is Space.SBUF for life in lives):
        return
    if not _fit_alone(lives, chip):
        return
    capacity = chip.sbuf_end - chip.sbuf_first
    for part in _SPARE:
        scheduler = _Scheduler(trace, lives, chip)
        scheduler.room = _Counted(scheduler.room.policies, scheduler.room.fixed, capacity - capacity // part)
        scheduler.reserve = capacity // _RESERVE
        if scheduler.run():
            yield scheduler.traced()


def _fit_alone(lives: Sequence[Life], chip: Chip) -> bool:
    """Return whether each tile has a place beside those of the kernel: where not, no order has one either."""
    fixed = _fixed(life.allocation for life in lives)
    sizes = {(one.allocation.space, max(one.allocation.partition_bytes, 1)) for one in lives
             if one.allocation.address is None}  # fmt: skip
    return all(tightest(space, chip)(size, fixed[space]) is not None for space, size in sizes)


def _fixed(tiles: Iterable[Allocation]) -> dict[Space, list[Span]]:
    """Return the bytes at addresses of the kernel, by memory."""
    fixed: dict[Space, set[Span]] = {Space.SBUF: set(), Space.PSUM: set()}
    for one in tiles:
        if one.address is not None:
            fixed[one.space].add(Span(one.address[1], one.address[1] + max(one.partition_bytes, 1)))
    return {space: sorted(spans) for space, spans in fixed.items()}


class _Room:
    """Places of the tiles that live at one moment; tiles at addresses of the kernel keep theirs all the time."""

    def __init__(self, policies: dict[Space, Policy], fixed: dict[Space, list[Span]]) -> None:
        self.policies, self.fixed = policies, fixed
        self.live: dict[Space, dict[int, Span]] = {space: {} for space in policies}

    def copy(self) -> _Room:
        other = _Room(self.policies, self.fixed)
        other.live = {space: dict(spans) for space, spans in self.live.items()}
        return other

    def place(self, tile: Allocation, keep: int = 0) -> int | None:
        """Find and take a place for a tile; return its first byte. Of bytes that are counted, `keep` stay free."""
        size = max(tile.partition_bytes, 1)
        taken = sorted([*self.fixed[tile.space], *self.live[tile.space].values()])
        at = self.policies[tile.space](size, taken)
        if at is not None:
            self.live[tile.space][tile.id] = Span(at, at + size)
        return at

    def used(self, space: Space) -> int:
        """Return the bytes that live tiles take."""
        return sum(span.high - span.low for span in self.live[space].values())


class _Counted(_Room):
    """Bytes of SBUF that live tiles take, with no places yet; PSUM has places."""

    def __init__(self, policies: dict[Space, Policy], fixed: dict[Space, list[Span]], capacity: int) -> None:
        super().__init__(policies, fixed)
        self.capacity = capacity

    def copy(self) -> _Counted:
        other = _Counted(self.policies, self.fixed, self.capacity)
        other.live = {space: dict(spans) for space, spans in self.live.items()}
        return other

    def place(self, tile: Allocation, keep: int = 0) -> int | None:
        """Count a tile; return 0 where there is room for it."""
        if tile.space is not Space.SBUF:
            return super().place(tile)
        size = max(tile.partition_bytes, 1)
        if self.used(Space.SBUF) + size + keep > self.capacity:
            return None
        self.live[Space.SBUF][tile.id] = Span(0, size)
        return 0


class _Scheduler:
    """Carries out operations one after the other, as far as the places of their tiles are concerned."""

    def __init__(self, trace: Trace, lives: Sequence[Life], chip: Chip) -> None:
        self.trace, self.chip = trace, chip
        self.before = predecessors(trace)
        self.tiles = {life.allocation.id: life.allocation for life in lives}
        self.uses: dict[int, list[int]] = defaultdict(list)
        self.touched: list[list[int]] = []
        ends: dict[int, list[int]] = defaultdict(list)
        for life in lives:  # a tile older than a loop lives to the edges of it, which may not touch it
            for edge in (life.first, life.last):
                ends[edge].append(life.allocation.id)
        for number, op in enumerate(trace.ops):
            here = dict.fromkeys(view.allocation.id for view in views_of(op) if view.allocation.id in self.tiles)
            here.update(dict.fromkeys(ends.get(number, ())))
            self.touched.append(list(here))
            for tile in here:
                self.uses[tile].append(number)
        fixed = _fixed(self.tiles.values())
        self.room = _Room({space: tightest(space, chip) for space in fixed}, fixed)
        self.left = {tile: len(numbers) for tile, numbers in self.uses.items()}
        self.places: dict[int, tuple[int, int]] = {
            one.id: one.address for one in self.tiles.values() if one.address is not None
        }
        self.done = bytearray(len(trace.ops))
        self.order: list[int] = []
        self.reserve = 0

    def run(self) -> bool:
        """Carry out all operations; return whether there was room for all."""
        ops = self.trace.ops
        edges = [number for number, op in enumerate(ops) if stands(op)]
        edges.append(len(ops))
        edges.reverse()
        for number in range(len(ops)):
            while edges[-1] < number:
                edges.pop()
            while not self.done[number]:
                full = self._carry_out([number], keep=self.reserve)
                if full is None or self._make_room(number, full, edges[-1]):
                    continue
                if not self.reserve or self._carry_out([number]) is not None:
                    return False
        return True

    def traced(self) -> Trace:
        """Return the trace in the order in which operations were carried out."""
        return renumbered(self.trace, self.order)

    def _carry_out(self, numbers: Sequence[int], relieve: Space | None = None, keep: int = 0) -> Space | None:
        """Carry out operations; where that needs room, return the memory that has none, with nothing changed.

        With `relieve` it counts as well as no room where the live tiles of that memory do not get smaller.
        """
        room = self.room.copy() if relieve else self.room
        left: dict[int, int] = {}
        places: dict[int, tuple[int, int]] = {}
        for number in numbers:
            new: list[Allocation] = []
            for tile in self.touched[number]:
                allocation = self.tiles[tile]
                if allocation.address is not None:
                    continue
                if tile not in room.live[allocation.space]:
                    at = room.place(allocation, keep)
                    if at is None:
                        for one in new:  # of the one operation, where nothing has to be relieved
                            del room.live[one.space][one.id]
                        return allocation.space
                    new.append(allocation)
                    places[tile] = 0, at
            for tile in self.touched[number]:
                left[tile] = left.get(tile, self.left[tile]) - 1
                if not left[tile]:
                    room.live[self.tiles[tile].space].pop(tile, None)
        if relieve is not None and room.used(relieve) >= self.room.used(relieve):
            return relieve
        self.room = room
        self.left.update(left)
        self.places.update(places)
        self.order += numbers
        for number in numbers:
            self.done[number] = 1
        return None

    def _make_room(self, number: int, space: Space, edge: int) -> bool:
        """Carry out what ends the life of one tile of a memory before an operation that needs room there."""
        wanted = set(self.touched[number])
        live = [tile for tile in self.room.live[space] if tile not in wanted and self.uses[tile][-1] < edge]
        # The tile that the program gives up first is the one that moves the least.
        for tile in sorted(live, key=lambda one: (self.uses[one][-1], one)):
            ahead = self._all_before(tile, number)
            if ahead is not None and self._carry_out(ahead, space) is None:
                return True
        return False

    def _all_before(self, tile: int, number: int) -> list[int] | None:
        """Return what remains of the life of a tile, with all it depends on; None where `number` is a part of that."""
        found: set[int] = set()
        pending = [one for one in self.uses[tile] if not self.done[one]]
        while pending:
            one = pending.pop()
            if one == number:
                return None
            if one not in found:
                found.add(one)
                pending += [before for before in self.before[one] if not self.done[before]]
        return sorted(found)


def renumbered(trace: Trace, order: Sequence[int]) -> Trace:
    """Return the trace with its operations in another order; what stands still keeps its number."""
    place = {number: at for at, number in enumerate(order)}
    other = Trace(trace.target, trace.program_id, trace.num_programs)
    other.visits, other.spills = trace.visits, trace.spills
    other.allocations, other.inputs, other.outputs = trace.allocations, trace.inputs, trace.outputs
    other.results = trace.results
    other.ops = [trace.ops[number] for number in order]
    other.after = {place[number]: {place[one] for one in ones} for number, ones in trace.after.items()}
    return other
