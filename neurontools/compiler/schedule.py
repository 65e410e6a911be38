"""Pass `schedule`: loads of what is there already move in front of a load that waits for a result.

Loads go through one queue in the program's order, so that one which waits for a result holds up the weights behind it.
Those are moved up to it, as far as there is room for their tiles. Nothing else changes its place, so values are the
same to the bit.
"""

from __future__ import annotations

from neurontools.builder.trace import BarrierOp, DmaOp, LoopEndOp, LoopOp, Op, Space, Trace, views_of

__all__ = ["hoist_loads"]

_AHEAD = 400  # operations that a load may move over
_ROOM = 64 << 10  # bytes of a partition for tiles that were loaded early
_FENCES = (LoopOp, LoopEndOp, BarrierOp)


def hoist_loads(trace: Trace) -> int:
    """Move loads of inputs and constants in front of loads that wait; return how many were moved."""
    moves = _moves(trace)
    if not moves:
        return 0
    leaving = {number for numbers in moves.values() for number in numbers}
    order: list[int] = []
    for number in range(len(trace.ops)):
        order += moves.get(number, ())
        if number not in leaving:
            order.append(number)
    place = {number: new for new, number in enumerate(order)}
    place[len(order)] = len(order)
    trace.ops = [trace.ops[number] for number in order]
    trace.after = {place[number]: {place[one] for one in ones} for number, ones in trace.after.items()}
    for one in trace.allocations:
        if one.space is not Space.HBM:
            one.born = place[min(one.born, len(order))]
    for new in map(place.__getitem__, leaving):
        op = trace.ops[new]
        assert isinstance(op, DmaOp)  # `_moves` has seen to that
        op.dst.allocation.born = min(op.dst.allocation.born, new)
    return len(leaving)


def _moves(trace: Trace) -> dict[int, list[int]]:
    """Return the loads that move, by the number of the operation that they move in front of."""
    written: set[int] = set()  # tensors, by the program itself
    touched: set[int] = set()  # tiles
    moves: dict[int, list[int]] = {}
    early: list[tuple[int, int]] = []  # loads that move, and their bytes, while their tiles may be in use
    waiting, room = -1, _ROOM
    for number, op in enumerate(trace.ops):
        while early and early[0][0] < number - _AHEAD:
            room += early.pop(0)[1]
        if waiting >= 0 and number - waiting > _AHEAD:
            waiting = -1
        if isinstance(op, _FENCES):
            waiting = -1
        elif isinstance(op, DmaOp) and op.src.allocation.space is Space.HBM is not op.dst.allocation.space:
            size = op.dst.allocation.partition_bytes
            if op.src.allocation.id in written:
                waiting = number if waiting < 0 else waiting
            elif waiting >= 0 and op.dst.allocation.id not in touched and size <= room and number not in trace.after:
                moves.setdefault(waiting, []).append(number)
                early.append((number, size))
                room -= size
        touched.update(_tiles(op))
        written.update(view.allocation.id for view in views_of(op) if view.allocation.space is Space.HBM
                       and view is not getattr(op, "src", None))  # fmt: skip
    return moves


def _tiles(op: Op) -> list[int]:
    return [view.allocation.id for view in views_of(op) if view.allocation.space is not Space.HBM]
