"""Shapes of operations that begin and end apart: what a start gives holds operands and results until it is done."""

from __future__ import annotations

from formats.hlo.infer import MismatchError, body_takes, need, rule
from formats.hlo.module import Instruction
from formats.hlo.shapes import PrimitiveType, Shape, tuple_of

__all__: list[str] = []


def _parts(shape: Shape, least: int, what: str) -> tuple[Shape, ...]:
    if not shape.is_tuple or len(shape.tuple_shapes) < least:
        raise MismatchError(f"{what} is no tuple of operands and results: {str(shape)[:60]}")
    return tuple(shape.tuple_shapes)


def _together(shapes: list[Shape]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_of(*shapes)


@rule("all-reduce-start")
def _reduce_start(instruction: Instruction, shapes: list[Shape]) -> Shape:
    return tuple_of(*shapes) if instruction.shape.is_tuple else shapes[0]


@rule("all-gather-start", "collective-permute-start")
def _start(instruction: Instruction, shapes: list[Shape]) -> Shape:
    """Return what is stated, once it begins with the operands and has results of their types."""
    parts = _parts(instruction.shape, 2, "what it gives")
    given = _together(shapes)
    need(parts[0] == given, f"gives {str(parts[0])[:60]} for the operands {str(given)[:60]}")
    if instruction.opcode == "collective-permute-start":
        need(parts[1] == given, f"gives {str(parts[1])[:60]} as the result of {str(given)[:60]}")
        need(all(one == Shape(PrimitiveType.U32) for one in parts[2:]), "has contexts that are no u32[]")
        return instruction.shape
    results = parts[1].tuple_shapes if len(shapes) > 1 else (parts[1],)
    need(len(results) == len(shapes) and len(instruction.dimensions) == 1, "gives other results than operands")
    along, ranks = instruction.dimensions[0], {len(group) for group in instruction.replica_groups}
    need(len(ranks) <= 1, "groups of different sizes")
    for shape, result in zip(shapes, results, strict=True):
        need(0 <= along < shape.rank, "along a dimension that is not there")
        sizes = list(shape.dimensions)
        if ranks:
            sizes[along] *= min(ranks)
        elif result.rank == shape.rank:
            sizes[along] = result.dimensions[along]
        need(result == shape.with_dimensions(tuple(sizes)), f"gives {result} of {shape}")
    return instruction.shape


@rule("all-reduce-done", "all-gather-done", "collective-permute-done")
def _done(instruction: Instruction, shapes: list[Shape]) -> Shape:
    start = instruction.opcode.removesuffix("done") + "start"
    need(instruction.operands[0].opcode == start, f"ends what is no {start}")
    return shapes[0] if start == "all-reduce-start" else _parts(shapes[0], 2, "its operand")[1]


@rule("copy-start")
def _copy_start(instruction: Instruction, shapes: list[Shape]) -> Shape:
    parts = _parts(instruction.shape, 3, "what it gives")
    need(len(shapes) == 1 and parts[0] == parts[1] == shapes[0], "gives other shapes than its operand")
    return instruction.shape


@rule("copy-done")
def _copy_done(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(instruction.operands[0].opcode == "copy-start", "ends what is no copy-start")
    return _parts(shapes[0], 3, "its operand")[0]


@rule("async-start")
def _async_start(instruction: Instruction, shapes: list[Shape]) -> Shape:
    """Return what is stated, once it has the operands of the computation that runs apart, and its result."""
    need(len(instruction.called) == 1, "calls other than one computation")
    body_takes(instruction.to_apply, shapes, "called computation")
    parts = _parts(instruction.shape, 2, "what it gives")
    need(parts[0] == tuple_of(*shapes), "gives other operands than it takes")
    need(parts[1] == instruction.to_apply.root.shape, "gives another result than its computation")
    return instruction.shape


@rule("async-update", "async-done")
def _async_end(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(len(shapes) == 1 and instruction.operands[0].opcode in ("async-start", "async-update"),
         "goes on with what is no async-start")  # fmt: skip
    return shapes[0] if instruction.opcode == "async-update" else _parts(shapes[0], 2, "its operand")[1]
