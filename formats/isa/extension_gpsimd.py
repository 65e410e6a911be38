"""Extension words of the GpSimd engine: patterns of integers, gathers, searches for non-zeros and segments, top values.

The instructions are documented (hardware.md 5.2, 5.4, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import KEPT, Dataflow, Passes
from formats.isa.enums import AluOp
from formats.isa.extension import ExtensionWord, TileWord
from formats.isa.field import BitFlag, Enumeration, Float32, Integer
from formats.isa.operand import Tile
from formats.isa.rule import comparison, elements, groups, has_elements, same_elements_documented
from formats.isa.syntax import Item, Key
from formats.isa.syntax_operands import PatternItem
from formats.neuron_core import PARTITIONS

__all__ = [
    "AffineSelect",
    "Iota",
    "LocalGather",
    "NGather",
    "NonzeroWithCount",
    "SequenceBounds",
    "TensorPartitionReduce",
    "TopK",
]


def _walk(word: Iota | AffineSelect) -> int:
    return int(word.count0 * word.count1 * word.count2 * word.count3)


_WALKED = has_elements("dst", _walk, "The walk has the elements of dst.")
_MADE = "dst has the elements that the word makes."


class _Affine(ExtensionWord):
    """A walk of integers: offset + partition * multiplier + the sum of index * step over four dimensions."""

    __slots__ = ()
    CUTS = False
    offset = Integer(120, 4, "first value", signed=True)
    channel_multiplier = Integer(124, 4, "added once per partition", signed=True)
    step0 = Integer(128, 4, "step of the innermost dimension", signed=True)
    step1 = Integer(132, 4, "step of the second dimension", signed=True)
    step2 = Integer(136, 4, "step of the third dimension", signed=True)
    step3 = Integer(140, 4, "step of the outermost dimension", signed=True)
    count0 = Integer(144, 4, "count of the innermost dimension", default=1)
    count1 = Integer(148, 4, "count of the second dimension", default=1)
    count2 = Integer(152, 4, "count of the third dimension", default=1)
    count3 = Integer(156, 4, "count of the outermost dimension", default=1)
    WALK: ClassVar[tuple[Item, ...]] = (
        Key("offset"),
        Key("channel_multiplier"),
        *(Key(f"step{i}") for i in range(4)),
        *(Key(f"count{i}") for i in range(4)),
    )


class Iota(_Affine):
    """Write an affine walk of 32-bit integers."""

    __slots__ = ()
    NAME = "IOTA"
    CODE, SIZE = 32, 192
    ENGINES = ("Pool",)
    COST = Passes("dst", ("dst",))
    channels = Integer(16, 1, "partitions", unit="partitions", default=PARTITIONS)
    dst_dtype = Enumeration(17, Dtype, "element type of the output")
    dst = Tile(32, "output", role="write", dtype="dst_dtype")
    SYNTAX = (*_Affine.WALK, PatternItem("dst"), Key("channels"))
    RULES = (_WALKED,)


class AffineSelect(_Affine, TileWord):
    """Keep src where an affine walk compares with 0, write a number elsewhere."""

    __slots__ = ()
    NAME = "AFFINE_SELECT"
    CODE, SIZE = 33, 192
    ENGINES = ("Pool",)
    COST = Passes()
    FILL = "on_false"
    op = Enumeration(19, AluOp, "comparison of the walk with 0", default=AluOp.EQUAL)
    on_false = Float32(160, "value where the comparison fails")
    SYNTAX = (
        Key("op"),
        *_Affine.WALK,
        Key("on_false", style="float"),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
    )
    RULES = (same_elements_documented("src", "dst"), _WALKED, comparison("op"))


# A GpSimd core owns 16 neighbouring partitions, and the gathers share indices inside them (hardware.md 5.4).
class _Gather(TileWord):
    """What both gathers share: a tile of indices."""

    __slots__ = ()
    CUTS = False
    ENGINES = ("Pool",)
    indices_dtype = Enumeration(19, Dtype, "element type of the indices")
    indices = Tile(120, "indices", role="read", dtype="indices_dtype")


class NGather(_Gather):
    """Gather elements of each partition by indices of the same partition."""

    __slots__ = ()
    NAME = "N_GATHER"
    CODE, SIZE = 34, 192
    DATAFLOW = Dataflow.PARTITION
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("dst"), Key("channels"))
    RULES = (same_elements_documented("indices", "dst"),)


class LocalGather(_Gather):
    """Gather runs of elements by the indices of each group of 16 partitions, partition by partition."""

    __slots__ = ()
    NAME = "LOCAL_GATHER"
    CODE, SIZE = 35, 192
    DATAFLOW = Dataflow.LOOKUP
    run = Integer(20, 1, "neighbouring elements per index", default=1)
    valid = Integer(24, 4, "indices in use per group")
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("dst"), Key("channels"), Key("run"), Key("valid"))
    RULES = (groups(16), has_elements("dst", lambda word: int(word.valid * word.run), _MADE))


class NonzeroWithCount(TileWord):
    """Write the places of non-zero elements, padding, and their number, in every 16th partition only."""

    __slots__ = ()
    NAME = "NONZERO_WITH_COUNT"
    CODE, SIZE = 36, 128
    ENGINES = ("Pool",)
    GENERATIONS = ("gen3", "gen4")
    CUTS = False
    DATAFLOW = Dataflow.PARTITION
    COST = Passes()
    # Of the 16 partitions of a GpSimd core it works in the first only (hardware.md 5.4).
    LANES: ClassVar[tuple[int, ...]] = (0, *(KEPT,) * 15)
    dst = Tile(32, "output", role="write", dtype="dst_dtype", lanes=LANES)
    src = Tile(76, "input", role="read", dtype="src_dtype", lanes=LANES)
    index_offset = Integer(20, 4, "added to every index", signed=True)
    padding = Integer(24, 4, "value of places that stay unused", signed=True)
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"), Key("index_offset"), Key("padding"))
    RULES = (has_elements("dst", lambda word: elements(word, "src") + 1, _MADE),)


class SequenceBounds(TileWord):
    """Write where the segment of each element begins, then where it ends (exclusive); segment 0 is padding."""

    __slots__ = ()
    NAME = "SEQUENCE_BOUNDS"
    CODE, SIZE = 37, 128
    ENGINES = ("Pool",)
    CUTS = False
    DATAFLOW = Dataflow.PARTITION
    COST = Passes()
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))
    RULES = (has_elements("dst", lambda word: 2 * elements(word, "src"), _MADE),)


class TopK(TileWord):
    """Write the largest values of each group of 16 partitions in ascending order, and their places."""

    __slots__ = ()
    NAME = "TOP_K"
    CODE, SIZE = 38, 192
    ENGINES = ("Pool",)
    CUTS = False
    DATAFLOW = Dataflow.GROUP
    indices_dtype = Enumeration(19, Dtype, "element type of the places")
    count = Integer(24, 4, "elements in use per group", unit="elements")
    indices = Tile(120, "places", role="write", dtype="indices_dtype")
    SYNTAX = (PatternItem("src"), PatternItem("dst"), PatternItem("indices"), Key("channels"), Key("count"))
    RULES = (groups(16), same_elements_documented("indices", "dst"))


class TensorPartitionReduce(TileWord):
    """Fold all partitions into one."""

    __slots__ = ()
    NAME = "TENSOR_PARTITION_REDUCE"
    CODE, SIZE = 39, 128
    ENGINES = ("Pool",)
    CUTS = False
    DATAFLOW = Dataflow.ALL
    COST = Passes()
    dst_channels = Integer(19, 1, "partitions of the output", unit="partitions", default=1)
    op = Enumeration(20, AluOp, "operator", default=AluOp.ADD)
    average = BitFlag(21, 0, "divide the sum by the number of partitions")
    dst = Tile(32, "output", role="write", dtype="dst_dtype", partitions="dst_channels")
    SYNTAX = (
        Key("op"),
        Key("average", optional=True),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
        Key("dst_channels"),
    )
    RULES = (same_elements_documented("src", "dst"),)
