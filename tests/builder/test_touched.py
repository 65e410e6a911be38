"""What one pass over the operations tells is what looking at each of them tells: lives of tiles, facts of a trace."""

from __future__ import annotations

import random

import pytest

from formats.dtypes import Dtype
from formats.isa import Activate, Copy
from formats.targets import resolve_target
from neurontools.builder.tiles import lives_of, loops_of
from neurontools.builder.trace import (
    Allocation,
    ComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Op,
    SendRecvOp,
    Space,
    Trace,
    View,
    touched_by,
    views_of,
)
from neurontools.builder.trace_facts import facts_of

HERE = ("kernel.py", 1)


def program(seed: int) -> Trace:
    draw, trace = random.Random(seed), Trace(resolve_target("trn2"))
    for number in range(12):
        space = draw.choice([Space.SBUF, Space.SBUF, Space.PSUM, Space.HBM])
        trace.allocations.append(Allocation(number, space, f"t{number}", Dtype.FLOAT32, (128, 8), born=number))

    def view(*spaces: Space) -> View:
        fitting = [one for one in trace.allocations if one.space in spaces] or trace.allocations
        return View(draw.choice(fitting), Dtype.FLOAT32, 0, 128, 0, ((1, 8),))

    chip, depth = (Space.SBUF, Space.PSUM), 0
    for number in range(draw.randrange(30)):
        place = ("kernel.py", number)
        kind = draw.randrange(9)
        op: Op
        if kind < 2:
            op = ComputeOp(Copy, draw.choice(["DVE", "Pool"]), {"src": view(*chip), "dst": view(*chip)}, {}, place)
        elif kind == 2:
            fields: dict[str, object] = {"function": draw.choice(["exp", "copy"])}
            op = ComputeOp(Activate, "Activation", {"src": view(*chip), "dst": view(*chip)}, fields, place)
        elif kind == 3:
            op = MatmulOp(view(*chip), view(*chip), view(*chip), None, False, place)
        elif kind == 4:
            op = IndirectDmaOp(view(*Space), view(*Space), view(Space.SBUF), 0, 4, None, place)
        elif kind == 5:
            op = SendRecvOp(view(Space.SBUF), view(Space.SBUF), 0, place)
        elif kind == 6 and depth:
            op, depth = LoopEndOp(place), depth - 1
        elif kind == 7:
            op, depth = LoopOp(view(Space.SBUF), False, place), depth + 1
        else:
            op = DmaOp(view(*Space), view(*Space), None, False, place)
        trace.ops.append(op)
    trace.ops += [LoopEndOp(HERE) for _ in range(depth)]
    return trace


@pytest.mark.parametrize("seed", range(60))
def test_lives_and_facts_are_those_of_each_operation(seed: int) -> None:
    trace = program(seed)
    uses: dict[Allocation, list[int]] = {}
    for number, op in enumerate(trace.ops):
        for view in views_of(op):
            uses.setdefault(view.allocation, []).append(number)
    expected = []
    for tile, numbers in uses.items():
        if tile.space is not Space.HBM:
            first, last = numbers[0], numbers[-1]
            for begin, end in loops_of(trace):
                if tile.born <= begin and first <= end and last >= begin:
                    first, last = min(first, begin), max(last, end)
            expected.append((tile, first, last, trace.ops[numbers[0]].source))
    for touched in (None, touched_by(trace.ops)):
        trace.touched = touched
        assert [tuple(life) for life in lives_of(trace)] == expected
        facts = facts_of(trace)
        moves = [op for op in trace.ops if isinstance(op, DmaOp | IndirectDmaOp)]
        computing = [op for op in trace.ops if isinstance(op, ComputeOp)]
        assert facts.written == {op.dst.allocation.id for op in moves}
        assert facts.used == {one.id for one in uses if one.space is Space.HBM}
        assert facts.engines == {op.engine for op in computing}
        assert facts.functions == [op.fields["function"] for op in computing if op.fields]
        assert facts.landings == [op.dst for op in trace.ops if isinstance(op, SendRecvOp)]
        for loop in facts.loops:
            end = dict(loops_of(trace))[loop.number]
            inside = [op for op in trace.ops[loop.number : end] if isinstance(op, ComputeOp) and op.fields]
            assert loop.stop - loop.start == len(inside) > 0


def test_what_a_tracer_found_is_not_taken_for_other_operations() -> None:
    trace = program(3)
    trace.touched = touched_by(trace.ops)
    trace.ops.append(DmaOp(views_of(trace.ops[0])[0], views_of(trace.ops[0])[0], None, False, HERE))
    assert len(trace.what_is_touched().ends) == len(trace.ops)
