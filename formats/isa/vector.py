"""Words of the Vector engine (DVE), some of them legal on Pool and ACT too. Source: isa.md 7."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import Passes
from formats.isa.enums import AluOp, ReduceDims
from formats.isa.field import BitFlag, Enumeration, Immediate, Integer, Nibble
from formats.isa.instruction import Instruction
from formats.isa.operand import Pattern, Pointer
from formats.isa.rule import Context, Finding, Rule, same_elements
from formats.isa.syntax import Item, Key, Names
from formats.isa.syntax_operands import Immediates, PatternItem
from formats.neuron_core import PARTITIONS

__all__ = ["Cast", "Copy", "Memset", "Reciprocal", "TensorReduce", "TensorScalar", "TensorTensor"]


def _reduced(word: TensorReduce, context: Context) -> Iterator[Finding]:
    # X = 2 folds one dimension, XYZW = 5 four (isa.md 5)
    folded = int(word.dims) - 1
    if 1 <= folded <= 4:
        kept, written = prod(word.src.counts[folded:]), prod(word.dst.counts)
        if kept != written:
            yield "dst", f"{kept} elements are kept of src, {written} are written"


def _same_dtype(word: Copy, context: Context) -> Iterator[Finding]:
    if word.src_dtype != word.dst_dtype:
        yield "dst_dtype", "COPY moves raw bits: both element types are one"


def _memset_count(word: Memset, context: Context) -> Iterator[Finding]:
    if word.count != prod(word.dst.counts):
        yield "count", f"{word.count} differs from the {prod(word.dst.counts)} elements of dst"


class TensorTensor(Instruction):
    """Combine two tiles element by element; on Pool 32-bit integers are exact."""

    __slots__ = ()
    NAME = "TENSOR_TENSOR"
    OPCODE = 0x41
    ENGINES = ("DVE", "Pool")
    CITE = "isa.md 7 (41)"
    OVERWRITES = True
    src0_dtype = Nibble(12, Dtype, "element type of the first input", high=False, provenance="inferred")
    src1_dtype = Nibble(12, Dtype, "element type of the second input", high=True, provenance="inferred")
    dst_dtype = Enumeration(13, Dtype, "element type of the output", provenance="inferred")
    op = Enumeration(14, AluOp, "operator", provenance="inferred")
    channels = Integer(15, 1, "partitions", unit="partitions", default=PARTITIONS, provenance="inferred")
    src0 = Pattern(16, 3, "first input", role="read", dtype="src0_dtype", partitions="channels")
    src1 = Pattern(32, 3, "second input", role="read", dtype="src1_dtype", partitions="channels")
    dst = Pattern(48, 3, "output", role="write", dtype="dst_dtype", partitions="channels")
    SYNTAX = (Key("op"), PatternItem("src0"), PatternItem("src1"), PatternItem("dst"), Key("channels"))
    RULES = (same_elements("src0", "src1", "dst"),)


class TensorScalar(Instruction):
    """Apply (x op0 a) op1 b with numbers or one value per partition."""

    __slots__ = ()
    NAME = "TENSOR_SCALAR"
    OPCODE = 0x43
    ENGINES = ("DVE", "Pool", "Activation")
    CITE = "isa.md 7 (43)"
    OVERWRITES = True
    immediate0_is_pointer = BitFlag(35, 0, "operand 0 is a pointer", provenance="inferred")
    immediate1_is_pointer = BitFlag(35, 1, "operand 1 is a pointer", provenance="inferred")
    # Bits 0 and 1 are the real word's. What NKI can say beyond them has to stand somewhere: the bits above are ours.
    reverse0 = BitFlag(35, 2, "operand 0 stands on the left of op0", provenance="ours", cite="ours")
    reverse1 = BitFlag(35, 3, "operand 1 stands on the left of op1", provenance="ours", cite="ours")
    immediate0_is_integer = BitFlag(35, 4, "operand 0 holds 32 integer bits", provenance="ours", cite="ours")
    immediate1_is_integer = BitFlag(35, 5, "operand 1 holds 32 integer bits", provenance="ours", cite="ours")
    src = Pattern(16, 3, "input", role="read", dtype="src_dtype", partitions="channels")
    src_dtype = Enumeration(32, Dtype, "element type of the input", provenance="inferred")
    dst_dtype = Enumeration(33, Dtype, "element type of the output", provenance="inferred")
    channels = Integer(34, 1, "partitions", unit="partitions", default=PARTITIONS, provenance="inferred")
    op0 = Enumeration(36, AluOp, "first operator", provenance="inferred")
    op1 = Enumeration(37, AluOp, "second operator", provenance="inferred")
    immediate0 = Immediate(40, "operand 0 as a number", integer=immediate0_is_integer)
    immediate0_pointer = Pointer(
        40,
        "operand 0, one value per partition",
        dtype=Dtype.FLOAT32,
        partitions="channels",
        flag=immediate0_is_pointer,
        alias=True,
    )
    immediate1 = Immediate(44, "operand 1 as a number", integer=immediate1_is_integer, provenance="inferred")
    immediate1_pointer = Pointer(
        44,
        "operand 1, one value per partition",
        dtype=Dtype.FLOAT32,
        partitions="channels",
        flag=immediate1_is_pointer,
        alias=True,
    )
    dst = Pattern(48, 3, "output", role="write", dtype="dst_dtype", partitions="channels")
    SYNTAX = (
        Names("ops", "op0", "op1"),
        Immediates(("immediate0", "immediate0_pointer"), ("immediate1", "immediate1_pointer")),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
        Key("reverse0", optional=True),
        Key("reverse1", optional=True),
    )
    RULES = (same_elements("src", "dst"),)


class _OneInput(Instruction):
    """The shape that reduce, copy, cast and reciprocal share."""

    __slots__ = ()
    CITE = "isa.md 7 (42, 46, 47, 48)"
    src = Pattern(12, 4, "input", role="read", dtype="src_dtype", partitions="channels")
    src_dtype = Enumeration(32, Dtype, "element type of the input")
    dst_dtype = Enumeration(33, Dtype, "element type of the output")
    channels = Integer(34, 1, "partitions", unit="partitions", default=PARTITIONS, provenance="inferred")
    dst = Pattern(44, 4, "output", role="write", dtype="dst_dtype", partitions="channels")
    SYNTAX: ClassVar[tuple[Item, ...]] = (PatternItem("src"), PatternItem("dst"), Key("channels"))
    RULES: ClassVar[tuple[Rule, ...]] = (same_elements("src", "dst"),)


class TensorReduce(_OneInput):
    """Fold the innermost dimensions with an operator, left to right in fp32."""

    __slots__ = ()
    NAME = "TENSOR_REDUCE"
    OPCODE = 0x42
    ENGINES = ("DVE",)
    negate = Integer(35, 1, "change the sign of the result", known=range(2))
    op = Enumeration(36, AluOp, "operator")
    dims = Enumeration(37, ReduceDims, "dimensions folded", default=ReduceDims.X)
    SYNTAX = (Key("op"), Key("dims", "dim"), Key("negate", "negated", optional=True), *_OneInput.SYNTAX)
    RULES = (Rule("dst has the elements that are kept.", "observed", "isa.md 7 (42)", _reduced),)


class Copy(_OneInput):
    """Move raw bits; both sides have one element type."""

    __slots__ = ()
    NAME = "COPY"
    OPCODE = 0x46
    ENGINES = ("DVE", "Activation", "Pool")
    OVERWRITES = True
    RULES = (*_OneInput.RULES, Rule("Both sides have one element type.", "observed", "isa.md 7 (46)", _same_dtype))


class Cast(_OneInput):
    """Convert between element types through fp32."""

    __slots__ = ()
    NAME = "CAST"
    OPCODE = 0x47
    ENGINES = ("DVE", "Activation", "Pool")
    OVERWRITES = True


class Reciprocal(_OneInput):
    """Compute 1/x in fp32."""

    __slots__ = ()
    NAME = "RECIPROCAL"
    OPCODE = 0x48
    ENGINES = ("DVE",)
    OVERWRITES = True
    COST = Passes(figure="reciprocal_passes")


class Memset(Instruction):
    """Fill a tile with one value; where real words keep a value other than 0 is unknown."""

    __slots__ = ()
    NAME = "MEMSET"
    OPCODE = 0x49
    ENGINES = ("DVE", "Pool")
    CITE = "isa.md 7 (49)"
    OVERWRITES = True
    count = Integer(28, 4, "elements per partition", unit="elements", provenance="inferred")
    dtype = Enumeration(32, Dtype, "element type", provenance="inferred")
    channels = Integer(34, 1, "partitions", unit="partitions", default=PARTITIONS, provenance="inferred")
    # Every public MEMSET writes 0, so no byte of it can be told to be the value (isa.md 7): this place is ours.
    value_is_integer = BitFlag(35, 0, "the value holds 32 integer bits", provenance="ours", cite="ours")
    value = Immediate(36, "the value", integer=value_is_integer, provenance="ours", cite="ours")
    dst = Pattern(44, 4, "output", role="write", dtype="dtype", partitions="channels")
    SYNTAX = (Key("value", style="scalar", optional=True), PatternItem("dst"), Key("count"), Key("channels"))
    RULES = (Rule("count is the number of elements of dst.", "observed", "isa.md 7 (49)", _memset_count),)
