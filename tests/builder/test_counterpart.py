"""The second program of a launch, taken from the first: the same file as if it had been worked out by itself."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from formats import isa
from formats.dtypes import Dtype
from neurontools.builder import build, built
from neurontools.builder.counterpart import are_counterparts
from neurontools.builder.trace import (
    BarrierOp,
    ComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Place,
    SendRecvOp,
    Trace,
)

from .maker import Maker

SHIFT = 256  # rows of each tensor that a program leaves to the other


def program(seed: int, number: int, target: str, shift: int) -> Trace:
    """Return one program of a random launch: what both do is decided by the seed alone, and where by the shift."""
    draw, made = random.Random(seed), Maker(target, number, 2)
    rows = number * shift
    source = made.input("source", (1024, 64))
    numbers = made.input("numbers", (128, 4), Dtype.INT32)
    out = made.hbm("out", (1024, 64), kind="output")
    made.trace.outputs.append(out)
    scratch = made.hbm("scratch", (1024, 64), kind=draw.choice(["private", "shared"]))
    tiles = [made.sbuf((128, 64)) for _ in range(6)]
    sums, index = made.psum((64, 64)), made.sbuf((128, 4), Dtype.INT32)
    made.dma(index, numbers)
    for tile in tiles:
        made.dma(tile, made.view(source, slice(rows, rows + 128)))
    for step in range(draw.randrange(3, 25)):
        one, two, three = (draw.choice(tiles) for _ in range(3))
        first = rows + draw.choice((0, 64, 128))
        there = made.view(draw.choice((out, scratch, scratch)), slice(first, first + 128))
        half = draw.choice((slice(0, 32), slice(16, 64), slice(None)))
        kind = draw.randrange(14)
        if kind < 3:
            made.add(one, two, three, draw.choice(["DVE", "Pool"]))
        elif kind == 3:
            made.memset(made.view(one, slice(None), half), draw.choice((0.0, -0.0, 1.0)))
        elif kind == 4:
            made.compute(isa.Activate, "Activation", {"src": two, "dst": one}, function=draw.choice(["exp", "tanh"]))
        elif kind == 5:
            made.matmul(sums, two, three, draw.choice((None, None, True, False)))
            made.copy(made.view(one, slice(0, 64)), sums)
        elif kind < 8:
            made.dma(there, one, draw.choice((None, "SP")))
        elif kind < 10:
            made.dma(one, there)
        elif kind == 10:  # in descriptors
            made.dma(made.view(there.allocation, slice(first, first + 64)), made.view(one, slice(0, 64)), None, True)
        elif kind == 11:
            made.barrier()
        elif kind == 12 and target != "trn1":
            made.exchange(one, two)
        elif target != "trn1":
            scatter = draw.random() < 0.5
            sides = (there, made.view(one)) if scatter else (made.view(one), there)
            made.trace.ops.append(IndirectDmaOp(*sides, made.view(index, slice(None), slice(step % 4, step % 4 + 1)),
                                                256, 128, None, ("kernel.py", step), scatter=scatter))  # fmt: skip
        if draw.random() < 0.1:
            made.trace.ops[-1].name = f"named{step}"
    if target != "trn1" and draw.random() < 0.2:
        condition = made.view(index, slice(0, 1), slice(0, 1))
        made.trace.ops.insert(8, LoopOp(condition, draw.random() < 0.5, ("kernel.py", 8)))
        made.trace.ops.append(LoopEndOp(("kernel.py", 9)))
    made.dma(made.view(out, slice(rows, rows + 128)), tiles[0])
    if draw.random() < 0.2:
        made.trace.after = {len(made.trace.ops) - 1: {7}}
    return made.trace


def files(traces: list[Trace], monkeypatch: pytest.MonkeyPatch) -> tuple[bool, bool]:
    """Return whether the second program was taken from the first, and whether both ways give the same file."""
    taken = []

    def asked(*given: object) -> bool:
        taken.append(are_counterparts(*given))  # type: ignore[arg-type]
        return taken[-1]

    with monkeypatch.context() as patched:
        patched.setattr(built, "are_counterparts", asked)
        made = build(traces, "kernel")
        patched.setattr(built, "are_counterparts", lambda *given: False)
        plain = build(traces, "kernel")
    return taken == [True], (made.to_bytes(), made.report) == (plain.to_bytes(), plain.report)


@pytest.mark.parametrize("target", ["trn2", "trn1"])
def test_a_program_at_other_rows_is_taken_from_the_first(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        traces = [program(seed, number, target, SHIFT) for number in range(2)]
        assert files(traces, monkeypatch) == (True, True), seed


def _first(trace: Trace, kind: type) -> int | None:
    return next((number for number, op in enumerate(trace.ops) if type(op) is kind), None)


def _other_engine(trace: Trace) -> None:
    number = next(number for number, op in enumerate(trace.ops) if type(op) is DmaOp)
    trace.ops[number].engine = "Activation"  # type: ignore[union-attr]


def _other_tile(trace: Trace) -> None:
    for op in trace.ops:
        if type(op) is ComputeOp and op.instruction is isa.Memset:
            view = op.operands["dst"]
            op.operands["dst"] = view._replace(offset=view.offset ^ 64, dims=((1, 16),))


def _other_number(trace: Trace) -> None:
    for op in trace.ops:
        if type(op) is ComputeOp and "value" in op.fields:
            op.fields["value"] = -0.0 if repr(op.fields["value"]) == "0.0" else 3.0


def _other_type(trace: Trace) -> None:
    for op in trace.ops:
        if type(op) is ComputeOp and "value" in op.fields:
            op.fields["value"] = int(op.fields["value"])  # type: ignore[call-overload]


def _other_row(trace: Trace) -> None:
    stores = [op for op in trace.ops if type(op) is DmaOp and op.dst.allocation.name == "out"]
    stores[-1].dst = stores[-1].dst._replace(offset=stores[-1].dst.offset + 64 * 4 * 32)


def _other_line(trace: Trace) -> None:
    trace.ops[-1].source = Place("kernel.py", 1000)


def _other_name(trace: Trace) -> None:
    trace.ops[-1].name = "another"


def _one_more(trace: Trace) -> None:
    trace.ops.insert(len(trace.ops) - 1, trace.ops[-1])


def _other_product(trace: Trace) -> None:
    number = _first(trace, MatmulOp)
    if number is not None:
        trace.ops[number].accumulate = not trace.ops[number].accumulate  # type: ignore[union-attr]


def _other_order(trace: Trace) -> None:
    trace.after = {len(trace.ops) - 1: {8}}


@pytest.mark.parametrize(
    "change",
    [_other_engine, _other_tile, _other_number, _other_type, _other_row, _other_line, _other_name, _one_more,
     _other_product, _other_order],
)  # fmt: skip
def test_whatever_differs_besides_gives_the_file_of_two_programs(
    change: Callable[[Trace], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0
    for seed in range(15):
        traces = [program(seed, number, "trn2", SHIFT) for number in range(2)]
        if any(type(op) is SendRecvOp for op in traces[1].ops) and change is _one_more:
            continue
        change(traces[1])
        taken, same = files(traces, monkeypatch)
        refused += not taken
        assert same, seed
    assert refused


def test_barriers_about_a_tile_have_it_in_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for number in range(2):
        made = Maker("trn2", number, 2)
        out, tile = made.output("y", (256, 64)), made.sbuf((128, 64))
        made.memset(tile, 1.0)
        for turn in range(2):
            data = made.view(tile) if turn == number else None
            made.trace.ops.append(BarrierOp(("kernel.py", 2), "Pool", data))
            made.memset(made.view(tile, slice(0, 64)), 2.0, "Pool" if turn else "DVE")
        made.dma(made.view(out, slice(128 * number, 128 * number + 128)), tile)
        traces.append(made.trace)
    assert files(traces, monkeypatch) == (False, True)


def test_accesses_that_are_differently_far_apart_are_put_in_order_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that one program stores and loads again are others in the other one."""
    traces = []
    for number in range(2):
        made = Maker("trn2", number, 2)
        source, out, scratch = (made.input("x", (512, 64)), made.output("y", (512, 64)), made.hbm("s", (512, 64)))
        one, two = made.sbuf((128, 64)), made.sbuf((128, 64))
        made.dma(one, made.view(source, slice(128 * number, 128 * number + 128)))
        made.dma(made.view(scratch, slice(0, 128)), one)
        made.dma(two, made.view(scratch, slice(128 * number, 128 * number + 128)))
        made.dma(made.view(out, slice(128 * number, 128 * number + 128)), two)
        traces.append(made.trace)
    assert files(traces, monkeypatch) == (False, True)
