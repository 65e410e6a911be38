"""Values written where a kernel assigns them: `tile[part] = nl.exp(x)` is one instruction, as AWS's compiler makes it.

Python computes a value before it is assigned, so the front end has it in a tile of its own, and a copy behind it. Where
nobody else can see that tile, what computes the value may as well write it where it is assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from formats import isa
from formats.regions import shape_of
from neurontools.builder.areas import Area, overlap
from neurontools.builder.dependencies import accesses_of
from neurontools.builder.dims import Dims
from neurontools.builder.trace import ComputeOp, DmaOp, MatmulOp, Op, Space, Trace, View

__all__ = ["write_where_assigned"]

# How many operations of a value are looked at, itself a sequence of them (a softmax): bounds the work a copy.
_LONGEST = 64
# Words that write an element only after they have read what it is computed from, at the same place.
_BY_ELEMENT = (
    isa.Activate,
    isa.Cast,
    isa.Copy,
    isa.Reciprocal,
    isa.ScalarTensorTensor,
    isa.TensorScalar,
    isa.TensorTensor,
)


def write_where_assigned(trace: Trace, copies: Sequence[Op]) -> None:
    """Leave out those of the copies that stand for assignments which the operations before them can do without.

    The tile of the value has to be one that no variable holds, whole and in one piece in both places, and read by the
    copy alone; what is assigned to must not be touched in between but by an operation that works element by element on
    the very same elements. Results stay the same to the bit.
    """
    if not copies:
        return
    wanted = {id(op) for op in copies}
    ordered = {*trace.after, *(one for ones in trace.after.values() for one in ones)}
    found = {
        op.operands["src"].allocation.id: number
        for number, op in enumerate(trace.ops)
        if id(op) in wanted
        and isinstance(op, ComputeOp)
        and _moves_in_one_piece(op)
        and number not in ordered
        and _is_of_one_statement(trace.ops[number - 1], op)
    }
    if not found:
        return
    touched: dict[int, list[int]] = {tile: [] for tile in found}
    for number, op in enumerate(trace.ops):
        for tile in {view.allocation.id for view, _ in accesses_of(op)}.intersection(found):
            touched[tile].append(number)
    gone: set[int] = set()
    for tile, number in found.items():
        copy = trace.ops[number]
        assert isinstance(copy, ComputeOp)
        dst, users = copy.operands["dst"], touched[tile]
        if len(users) > 1 and users[-1] == number and _may_move(trace.ops, users, tile, dst):
            for user in users[:-1]:
                _rename(trace.ops[user], tile, dst)
            gone.add(number)
            if dst.allocation.id in touched:  # itself a value that is assigned on
                others = {*touched[dst.allocation.id], *users[:-1]} - {number}
                touched[dst.allocation.id] = sorted(others)
    if gone:
        _leave_out(trace, gone)


def _moves_in_one_piece(copy: ComputeOp) -> bool:
    """Return whether a copy takes all of a tile in SBUF to bytes that lie as those of it do."""
    if copy.instruction is not isa.Copy:  # another element type rounds
        return False
    src, dst = copy.operands["src"], copy.operands["dst"]
    tile = src.allocation
    if not tile.space is dst.allocation.space is Space.SBUF or tile.kind != "tile" or tile.address is not None:
        return False
    whole = src.partition == src.offset == 0 and src.partitions == tile.partitions
    size = tile.partition_bytes // src.dtype.size
    return whole and tile is not dst.allocation and _is_run(src.dims, size) and _is_run(dst.dims, size)


def _is_of_one_statement(before: Op, copy: ComputeOp) -> bool:
    """Return whether what is assigned was made by the statement that assigns it: no variable holds it.

    A statement of several lines makes it on a later one; then the tile goes by the name of what is assigned to.
    """
    src, dst = (copy.operands[name].allocation for name in ("src", "dst"))
    return before.source[:2] == copy.source[:2] or src.name.startswith((f"{dst.name}_", f"{src.space.value}_"))


def _is_run(dims: Dims, size: int) -> bool:
    """Return whether dimensions are so many elements, one behind the other."""
    step = 1
    for stride, count in reversed(dims):
        if count != 1 and stride != step:
            return False
        step *= count
    return step == size


def _may_move(ops: Sequence[Op], users: Sequence[int], tile: int, dst: View) -> bool:
    """Return whether the operations on a tile, all but the last of `users`, may work on the bytes of `dst` instead."""
    begin, copy = users[0], users[-1]
    if copy - begin > _LONGEST or not all(isinstance(op, ComputeOp | DmaOp | MatmulOp) for op in ops[begin:copy]):
        return False
    value = set(users)
    if dst.allocation.born > begin or (dst.partition and not all(_writes_rows(ops[user], tile) for user in users[:-1])):
        return False
    for number in range(begin, copy):
        op = ops[number]
        for view, _ in accesses_of(op):
            other = view.allocation
            if dst.allocation.address is not None and other.address is not None and other is not dst.allocation:
                return False  # tiles at addresses may share bytes
            if other is dst.allocation and not (
                number in value and (_is_apart(view, dst) or (len(users) == 2 and _is_by_element(op, view, dst)))
            ):
                return False
    return True


def _writes_rows(op: Op, tile: int) -> bool:
    """Return whether an operation touches a tile by writing to all of its partitions: any may then begin elsewhere."""
    mine = [(view, write) for view, write in accesses_of(op) if view.allocation.id == tile]
    return all(write and view.partition == 0 and view.partitions == view.allocation.partitions for view, write in mine)


def _is_apart(view: View, dst: View) -> bool:
    first, second = (
        Area(one.partition, one.partition + one.partitions, one.offset, shape_of(one.dims, one.dtype.size))
        for one in (view, dst)
    )
    return not overlap(first, second)


def _is_by_element(op: Op, view: View, dst: View) -> bool:
    """Return whether an operation reads just what is assigned to, each element for the same one of its result."""
    if not isinstance(op, ComputeOp) or op.instruction not in _BY_ELEMENT or view.dtype is not dst.dtype:
        return False
    place = view.partition, view.partitions, view.offset
    written = op.operands["dst"]
    return (
        place == (dst.partition, dst.partitions, dst.offset)
        and view.elements == dst.elements == written.elements
        and _is_run(view.dims, view.elements // view.partitions)
        and _is_run(written.dims, written.elements // written.partitions)
        and not op.fields.get("reduce_command")
    )


def _rename(op: Op, tile: int, dst: View) -> None:
    """Have an operation work on the bytes of `dst` where it worked on a tile."""

    def there(view: View) -> View:
        if view.allocation.id != tile:
            return view
        return view._replace(
            allocation=dst.allocation, partition=view.partition + dst.partition, offset=view.offset + dst.offset
        )

    if isinstance(op, ComputeOp):
        op.operands = {name: there(view) for name, view in op.operands.items()}
    elif isinstance(op, DmaOp):
        op.dst, op.src = there(op.dst), there(op.src)
    elif isinstance(op, MatmulOp):
        op.stationary, op.moving = there(op.stationary), there(op.moving)


def _leave_out(trace: Trace, gone: set[int]) -> None:
    """Take operations out of a trace that neither wait for others nor are waited for."""
    numbers = list(accumulate((old not in gone for old in range(len(trace.ops))), initial=0))  # by old number
    trace.ops[:] = [op for number, op in enumerate(trace.ops) if number not in gone]
    trace.touched = None
    for one in trace.allocations:
        one.born = numbers[one.born]
    trace.after = {numbers[number]: {numbers[one] for one in ones} for number, ones in trace.after.items()}
