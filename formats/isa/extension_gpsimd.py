"""Extension words of the GpSimd engine: patterns of integers, gathers, searches for non-zeros and segments, top values.

The instructions are documented (hardware.md 5.2, 5.4, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.enums import AluOp
from formats.isa.extension import _Extension, _Wide
from formats.isa.field import BitFlag, Enumeration, Float32, Integer
from formats.isa.instruction import EXTENSION_OPCODE
from formats.isa.operand import Pattern
from formats.isa.syntax import Item, Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["AffineSelect", "Iota", "LocalGather", "NGather", "NonzeroWithCount", "SequenceBounds",
           "TensorPartitionReduce", "TopK"]


class _Affine(_Extension):
    """A walk of integers: offset + partition * multiplier + the sum of index * step over four dimensions."""

    __slots__ = ()
    CUTS = False
    offset = Integer(120, 4, "first value", signed=True, provenance="ours")
    channel_multiplier = Integer(124, 4, "added once per partition", signed=True, provenance="ours")
    step0 = Integer(128, 4, "step of the innermost dimension", signed=True, provenance="ours")
    step1 = Integer(132, 4, "step of the second dimension", signed=True, provenance="ours")
    step2 = Integer(136, 4, "step of the third dimension", signed=True, provenance="ours")
    step3 = Integer(140, 4, "step of the outermost dimension", signed=True, provenance="ours")
    count0 = Integer(144, 4, "count of the innermost dimension", default=1, provenance="ours")
    count1 = Integer(148, 4, "count of the second dimension", default=1, provenance="ours")
    count2 = Integer(152, 4, "count of the third dimension", default=1, provenance="ours")
    count3 = Integer(156, 4, "count of the outermost dimension", default=1, provenance="ours")
    WALK: ClassVar[tuple[Item, ...]] = (
        Key("offset"), Key("channel_multiplier"), *(Key(f"step{i}") for i in range(4)),
        *(Key(f"count{i}") for i in range(4)))


class Iota(_Affine):
    """Write an affine walk of 32-bit integers."""

    __slots__ = ()
    NAME = "IOTA"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 32, 192
    ENGINES = ("Pool",)
    channels = Integer(16, 1, "partitions", unit="partitions", default=128, provenance="ours")
    dst_dtype = Enumeration(17, Dtype, "element type of the output", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="channels", wide=True, provenance="ours")
    SYNTAX = (*_Affine.WALK, PatternItem("dst"), Key("channels"))


class AffineSelect(_Affine, _Wide):
    """Keep src where an affine walk compares with 0, write a number elsewhere."""

    __slots__ = ()
    NAME = "AFFINE_SELECT"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 33, 192
    ENGINES = ("Pool",)
    op = Enumeration(19, AluOp, "comparison of the walk with 0", default=AluOp.EQUAL, provenance="ours")
    on_false = Float32(160, "value where the comparison fails", provenance="ours")
    SYNTAX = (Key("op"), *_Affine.WALK, Key("on_false", style="float"), PatternItem("src"), PatternItem("dst"),
              Key("channels"))


class _Gather(_Wide):
    """What both gathers share: a tile of indices."""

    __slots__ = ()
    CUTS = False
    ENGINES = ("Pool",)
    indices_dtype = Enumeration(19, Dtype, "element type of the indices", provenance="ours")
    indices = Pattern(120, 5, "indices", role="read", dtype="indices_dtype", partitions="channels", wide=True,
                      provenance="ours")


class NGather(_Gather):
    """Gather elements of each partition by indices of the same partition."""

    __slots__ = ()
    NAME = "N_GATHER"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 34, 192
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("dst"), Key("channels"))


class LocalGather(_Gather):
    """Gather runs of elements by the indices of each group of 16 partitions, partition by partition."""

    __slots__ = ()
    NAME = "LOCAL_GATHER"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 35, 192
    run = Integer(20, 1, "neighbouring elements per index", default=1, provenance="ours")
    valid = Integer(24, 4, "indices in use per group", provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("dst"), Key("channels"), Key("run"), Key("valid"))


class NonzeroWithCount(_Wide):
    """Write the places of non-zero elements, padding, and their number, in every 16th partition only."""

    __slots__ = ()
    NAME = "NONZERO_WITH_COUNT"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 36, 128
    ENGINES = ("Pool",)
    GENERATIONS = ("gen3", "gen4")
    CUTS = False
    index_offset = Integer(20, 4, "added to every index", signed=True, provenance="ours")
    padding = Integer(24, 4, "value of places that stay unused", signed=True, provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"), Key("index_offset"), Key("padding"))


class SequenceBounds(_Wide):
    """Write where the segment of each element begins, then where it ends (exclusive); segment 0 is padding."""

    __slots__ = ()
    NAME = "SEQUENCE_BOUNDS"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 37, 128
    ENGINES = ("Pool",)
    CUTS = False
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))


class TopK(_Wide):
    """Write the largest values of each group of 16 partitions in ascending order, and their places."""

    __slots__ = ()
    NAME = "TOP_K"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 38, 192
    ENGINES = ("Pool",)
    CUTS = False
    indices_dtype = Enumeration(19, Dtype, "element type of the places", provenance="ours")
    count = Integer(24, 4, "elements in use per group", unit="elements", provenance="ours")
    indices = Pattern(120, 5, "places", role="write", dtype="indices_dtype", partitions="channels", wide=True,
                      provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("dst"), PatternItem("indices"), Key("channels"), Key("count"))


class TensorPartitionReduce(_Wide):
    """Fold all partitions into one."""

    __slots__ = ()
    NAME = "TENSOR_PARTITION_REDUCE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 39, 128
    ENGINES = ("Pool",)
    CUTS = False
    dst_channels = Integer(19, 1, "partitions of the output", unit="partitions", default=1, provenance="ours")
    op = Enumeration(20, AluOp, "operator", default=AluOp.ADD, provenance="ours")
    average = BitFlag(21, 0, "divide the sum by the number of partitions", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="dst_channels", wide=True,
                  provenance="ours")
    SYNTAX = (Key("op"), Key("average", optional=True), PatternItem("src"), PatternItem("dst"), Key("channels"),
              Key("dst_channels"))
