"""Shapes of results from shapes of operands: the rules that a module has to keep (compiler.md 3.2)."""

from __future__ import annotations

from collections.abc import Callable

from formats.hlo.module import Computation, Instruction
from formats.hlo.shapes import PrimitiveType, Shape, tuple_of

__all__ = ["MismatchError", "RULES", "inferred", "need"]  # noqa: RUF022 (the table stands with its use)


class MismatchError(Exception):
    """Say which rule of shapes an instruction breaks."""


Rule = Callable[[Instruction, list[Shape]], Shape | None]
RULES: dict[str, Rule] = {}
_PRED, _S32 = PrimitiveType.PRED, PrimitiveType.S32
_PARTS = {PrimitiveType.C64: PrimitiveType.F32, PrimitiveType.C128: PrimitiveType.F64}


def need(kept: bool, what: str) -> None:
    """Raise MismatchError where a rule is not kept."""
    if not kept:
        raise MismatchError(what)


def inferred(instruction: Instruction) -> Shape | None:
    """Return the shape that the operands give; None where the instruction alone says it."""
    rule = RULES.get(instruction.opcode)
    if rule is None:
        return None
    shapes = [each.shape for each in instruction.operands]
    return rule(instruction, shapes)


def _rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = function
        return function

    return enter


def _arrays(shapes: list[Shape]) -> None:
    need(all(shape.is_array for shape in shapes), "operands must be arrays")


def _alike(shapes: list[Shape], *, types: bool = True) -> None:
    _arrays(shapes)
    first = shapes[0]
    for shape in shapes[1:]:
        need(shape.dimensions == first.dimensions, f"operands have different dimensions: {first} and {shape}")
        need(not types or shape.element_type is first.element_type, f"operands have different types: {first}, {shape}")


def _axes(dims: tuple[int, ...], rank: int, what: str) -> None:
    need(all(0 <= dim < rank for dim in dims), f"{what} {list(dims)[:8]} are not within {rank} dimensions")
    need(len(set(dims)) == len(dims), f"{what} {list(dims)[:8]} name a dimension twice")


@_rule("negate", "sign", "floor", "ceil", "round-nearest-afz", "round-nearest-even", "not", "popcnt",
       "count-leading-zeros", "reduce-precision", "exponential", "exponential-minus-one", "log", "log-plus-one",
       "logistic", "erf", "sqrt", "rsqrt", "cbrt", "sine", "cosine", "tan", "tanh", "sinh", "cosh", "asin", "acos",
       "asinh", "acosh", "atanh")  # fmt: skip
def _unary(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    kind = shapes[0].element_type
    if instruction.opcode in ("not", "popcnt", "count-leading-zeros"):
        need(kind.is_integral or kind is _PRED, f"{instruction.opcode} of {kind.text}")
    elif instruction.opcode not in ("negate", "sign"):
        need(kind.is_float or kind.is_complex, f"{instruction.opcode} of {kind.text}")
    if instruction.opcode == "reduce-precision":
        need(instruction.exponent_bits >= 1 and instruction.mantissa_bits >= 0, "too few bits of exponent")
    return shapes[0]


@_rule("abs", "real", "imag")
def _part(_: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    return shapes[0].with_type(_PARTS.get(shapes[0].element_type, shapes[0].element_type))


@_rule("is-finite")
def _is_finite(_: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    need(shapes[0].element_type.is_float, f"is-finite of {shapes[0].element_type.text}")
    return shapes[0].with_type(_PRED)


@_rule("copy", "opt-barrier", "add-dependency")
def _same(instruction: Instruction, shapes: list[Shape]) -> Shape:
    return tuple_of(*shapes) if instruction.opcode == "opt-barrier" and len(shapes) > 1 else shapes[0]


@_rule("convert")
def _convert(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays([*shapes, instruction.shape])
    return shapes[0].with_type(instruction.shape.element_type)


@_rule("bitcast-convert")
def _bitcast_convert(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays([*shapes, instruction.shape])
    before, after = shapes[0].element_type.bits, instruction.shape.element_type.bits
    dimensions = shapes[0].dimensions
    if before > after:
        dimensions = (*dimensions, before // after)
    elif after > before:
        need(bool(dimensions) and dimensions[-1] * before == after, "the last dimension does not fill an element")
        dimensions = dimensions[:-1]
    return Shape(instruction.shape.element_type, dimensions)


@_rule("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
       "shift-right-logical", "shift-right-arithmetic", "power", "atan2")  # fmt: skip
def _binary(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _alike(shapes)
    kind = shapes[0].element_type
    if instruction.opcode in ("and", "or", "xor"):
        need(kind.is_integral or kind is _PRED, f"{instruction.opcode} of {kind.text}")
    elif instruction.opcode.startswith("shift"):
        need(kind.is_integral, f"{instruction.opcode} of {kind.text}")
    elif instruction.opcode in ("subtract", "divide", "remainder", "power", "atan2"):
        need(kind is not _PRED, f"{instruction.opcode} of pred")
    return shapes[0]


@_rule("stochastic-convert")
def _stochastic(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _alike(shapes, types=False)
    values, random = shapes[0].element_type, shapes[1].element_type
    need(values.is_float and random.is_integral and random.bits == values.bits, f"{values.text} by {random.text}")
    return shapes[0].with_type(instruction.shape.element_type)


@_rule("compare")
def _compare(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _alike(shapes)
    need(instruction.comparison_direction in ("EQ", "NE", "GE", "GT", "LE", "LT"), "no such direction of comparison")
    need(instruction.comparison_type in ("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"), "no such comparison")
    return shapes[0].with_type(_PRED)


@_rule("complex")
def _complex(_: Instruction, shapes: list[Shape]) -> Shape:
    _alike(shapes)
    whole = {part: kind for kind, part in _PARTS.items()}.get(shapes[0].element_type)
    if whole is None:
        raise MismatchError(f"complex numbers of {shapes[0].element_type.text}")
    return shapes[0].with_type(whole)


@_rule("select")
def _select(_: Instruction, shapes: list[Shape]) -> Shape:
    need(shapes[0].element_type is _PRED, "the first operand of select is no predicate")
    need(shapes[1] == shapes[2], f"select between {shapes[1]} and {shapes[2]}")
    need(shapes[0].is_scalar or shapes[0].dimensions == shapes[1].dimensions, "predicate of other dimensions")
    return shapes[1]


@_rule("clamp")
def _clamp(_: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    need(len({shape.element_type for shape in shapes}) == 1, "clamp of different types")
    need(all(s.is_scalar or s.dimensions == shapes[1].dimensions for s in shapes), "bounds of other dimensions")
    return shapes[1]


@_rule("broadcast")
def _broadcast(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    result, dims = instruction.shape, instruction.dimensions
    need(len(dims) == shapes[0].rank, "broadcast names other dimensions than its operand has")
    _axes(dims, result.rank, "dimensions")
    need(all(result.dimensions[d] == size for d, size in zip(dims, shapes[0].dimensions, strict=True)),
         f"{shapes[0]} does not fit into {result} along {list(dims)}")  # fmt: skip
    return result.with_type(shapes[0].element_type)


@_rule("reshape", "bitcast")
def _reshape(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays([*shapes, instruction.shape])
    before, after = shapes[0], instruction.shape
    if instruction.opcode == "bitcast":
        need(before.nbytes == after.nbytes, f"bitcast of {before} to {after}")
        return after
    need(before.size == after.size, f"reshape of {before.size} elements to {after.size}")
    return after.with_type(before.element_type)


@_rule("transpose")
def _transpose(instruction: Instruction, shapes: list[Shape]) -> Shape:
    dims = instruction.dimensions
    need(sorted(dims) == list(range(shapes[0].rank)), f"transpose by {list(dims)[:8]} is no permutation")
    return shapes[0].with_dimensions(tuple(shapes[0].dimensions[dim] for dim in dims))


@_rule("reverse")
def _reverse(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _axes(instruction.dimensions, shapes[0].rank, "dimensions")
    return shapes[0]


@_rule("iota")
def _iota(instruction: Instruction, _: list[Shape]) -> Shape:
    need(len(instruction.dimensions) == 1 and 0 <= instruction.dimensions[0] < instruction.shape.rank,
         "iota along a dimension that is not there")  # fmt: skip
    return instruction.shape


@_rule("constant")
def _constant(instruction: Instruction, _: list[Shape]) -> Shape:
    need(instruction.literal is not None, "a constant without its elements")
    return instruction.value().shape


@_rule("concatenate")
def _concatenate(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    need(len(instruction.dimensions) == 1, "concatenate along other than one dimension")
    _axes(instruction.dimensions, shapes[0].rank, "dimensions")
    along = instruction.dimensions[0]
    first = shapes[0]
    for shape in shapes[1:]:
        same = shape.rank == first.rank and shape.element_type is first.element_type and all(
            a == b or dim == along for dim, (a, b) in enumerate(zip(shape.dimensions, first.dimensions, strict=True))
        )  # fmt: skip
        need(same, f"concatenate of {first} and {shape} along {along}")
    total = sum(shape.dimensions[along] for shape in shapes)
    return first.with_dimensions((*first.dimensions[:along], total, *first.dimensions[along + 1 :]))


@_rule("slice")
def _slice(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    need(len(instruction.slices) == shapes[0].rank, "slice of other dimensions than its operand has")
    sizes = []
    for part, size in zip(instruction.slices, shapes[0].dimensions, strict=True):
        need(0 <= part.start <= part.limit <= size and part.stride > 0,
             f"slice [{part.start}:{part.limit}:{part.stride}] of {size} elements")  # fmt: skip
        sizes.append(-(-(part.limit - part.start) // part.stride))
    return shapes[0].with_dimensions(tuple(sizes))


def _starts(indices: list[Shape], rank: int) -> None:
    one = len(indices) == 1 and indices[0].dimensions == (rank,)
    need(one or (len(indices) == rank and all(shape.is_scalar for shape in indices)), "other starts than dimensions")
    need(all(shape.element_type.is_integral for shape in indices), "starts are no integers")


@_rule("dynamic-slice")
def _dynamic_slice(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    sizes = instruction.dynamic_slice_sizes
    _starts(shapes[1:], shapes[0].rank)
    need(len(sizes) == shapes[0].rank and all(0 <= a <= b for a, b in zip(sizes, shapes[0].dimensions, strict=True)),
         f"sizes {list(sizes)[:8]} of a dynamic slice of {shapes[0]}")  # fmt: skip
    return shapes[0].with_dimensions(sizes)


@_rule("dynamic-update-slice")
def _dynamic_update_slice(_: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    _starts(shapes[2:], shapes[0].rank)
    whole, part = shapes[0], shapes[1]
    need(part.element_type is whole.element_type and part.rank == whole.rank
         and all(a <= b for a, b in zip(part.dimensions, whole.dimensions, strict=True)),
         f"{part} does not fit into {whole}")  # fmt: skip
    return whole


@_rule("pad")
def _pad(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _arrays(shapes)
    need(shapes[1].is_scalar and shapes[1].element_type is shapes[0].element_type, "padding of another type")
    need(len(instruction.padding) == shapes[0].rank, "padding of other dimensions than the operand has")
    sizes = []
    for size, p in zip(shapes[0].dimensions, instruction.padding, strict=True):
        need(p.interior_padding >= 0, "negative padding between elements")
        inner = (size - 1) * (p.interior_padding + 1) + 1 if size else 0
        total = inner + p.edge_padding_low + p.edge_padding_high
        need(total >= 0, "padding takes away more than there is")
        sizes.append(total)
    return shapes[0].with_dimensions(tuple(sizes))


@_rule("after-all")
def _token(_: Instruction, __: list[Shape]) -> Shape:
    return Shape(PrimitiveType.TOKEN)


@_rule("tuple")
def _tuple(_: Instruction, shapes: list[Shape]) -> Shape:
    return tuple_of(*shapes)


@_rule("get-tuple-element")
def _element(instruction: Instruction, shapes: list[Shape]) -> Shape:
    need(shapes[0].is_tuple and 0 <= instruction.tuple_index < len(shapes[0].tuple_shapes),
         f"there is no element {instruction.tuple_index} of {str(shapes[0])[:60]}")  # fmt: skip
    return shapes[0].tuple_shapes[instruction.tuple_index]


@_rule("get-dimension-size")
def _dimension_size(instruction: Instruction, shapes: list[Shape]) -> Shape:
    _axes(instruction.dimensions, shapes[0].rank, "dimensions")
    need(len(instruction.dimensions) == 1, "the size of other than one dimension")
    return Shape(_S32)


def body_takes(body: Computation, parameters: list[Shape], what: str) -> None:
    """Refuse a called computation whose parameters are others."""
    found = [each.shape for each in body.parameters]
    shown = ", ".join(map(str, parameters))[:80]
    need(found == parameters, f"{what} %{body.name} does not take ({shown})")


@_rule("call", "fusion")
def _call(instruction: Instruction, shapes: list[Shape]) -> Shape:
    body_takes(instruction.to_apply, shapes, "called computation")
    return instruction.to_apply.root.shape


@_rule("while")
def _while(instruction: Instruction, shapes: list[Shape]) -> Shape:
    body_takes(instruction.condition, shapes, "condition")
    body_takes(instruction.body, shapes, "body")
    need(instruction.condition.root.shape == Shape(_PRED), "the condition of a loop is no predicate")
    need(instruction.body.root.shape == shapes[0], "the body of a loop gives another shape than it takes")
    return shapes[0]


@_rule("conditional")
def _conditional(instruction: Instruction, shapes: list[Shape]) -> Shape:
    branches = instruction.called
    need(bool(branches) and len(shapes) == len(branches) + 1, "other operands than branches")
    chosen = shapes[0]
    need(chosen.is_scalar and (chosen.element_type is _S32 or (chosen.element_type is _PRED and len(branches) == 2)),
         f"a branch chosen by {chosen}")  # fmt: skip
    for branch, shape in zip(branches, shapes[1:], strict=True):
        body_takes(branch, [shape], "branch")
        need(branch.root.shape == branches[0].root.shape, "branches give different shapes")
    return branches[0].root.shape
