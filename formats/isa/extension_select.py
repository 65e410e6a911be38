"""Extension words of the Vector engine that choose or scale elements and fold them into its accumulator registers.

The instructions are documented (hardware.md 5.1, 5.2, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import Dataflow, EngineState, Passes
from formats.isa.enums import AluOp, ReduceCommand
from formats.isa.extension import TileWord
from formats.isa.field import BitFlag, Enumeration, Float32, Immediate, Integer
from formats.isa.operand import Pointer, Tile
from formats.isa.rule import Rule, comparison, has_elements, same_elements_documented
from formats.isa.syntax import Key
from formats.isa.syntax_operands import Immediates, PatternItem, PointerItem

__all__ = [
    "CopyPredicated",
    "Exponential",
    "RangeSelect",
    "SelectReduce",
    "TensorScalarCumulative",
    "TensorScalarReduce",
]

# The least finite fp32 number, the only fill that a range select takes.
_FP32_MIN = -3.4028235e38


class CopyPredicated(TileWord):
    """Overwrite elements where the predicate is not zero (zero when reversed), with a tile or a number."""

    __slots__ = ()
    NAME = "COPY_PREDICATED"
    CODE, SIZE = 48, 192
    ENGINES = ("DVE",)
    CUTS = False
    DATAFLOW = Dataflow.CHOICE
    predicate_dtype = Enumeration(19, Dtype, "element type of the predicate")
    reverse = BitFlag(20, 0, "copy where the predicate is zero")
    value_is_integer = BitFlag(20, 1, "the value holds integer bits")
    value = Immediate(24, "what is copied where there is no input tile", integer=value_is_integer)
    dst = Tile(32, "output", role="readwrite", dtype="dst_dtype")
    predicate = Tile(120, "predicate", role="read", dtype="predicate_dtype")
    SYNTAX = (
        PatternItem("src", optional=True),
        Key("value", style="scalar"),
        PatternItem("predicate"),
        PatternItem("dst"),
        Key("channels"),
        Key("reverse", optional=True),
    )
    RULES = (same_elements_documented("src", "predicate", "dst"),)


_ONE = has_elements("reduce_res", 1, "One register a partition is stored.")


class Accumulating(TileWord):
    """An element-wise word that folds its results, in fp32, into one register per partition."""

    __slots__ = ()
    ENGINES = ("DVE",)
    CUTS = False
    STATE = EngineState.ACCUMULATORS
    reduce_command = Enumeration(21, ReduceCommand, "what happens to the accumulator registers")
    reduce_op = Enumeration(22, AluOp, "operator of the fold", default=AluOp.ADD)
    reduce_res_dtype = Enumeration(23, Dtype, "element type of the registers as stored")
    initial_is_pointer = BitFlag(24, 0, "the initial value is a pointer")
    initial_is_integer = BitFlag(24, 1, "the initial value holds integer bits")
    immediate0_is_pointer = BitFlag(24, 2, "the operand is a pointer")
    immediate0_is_integer = BitFlag(24, 3, "the operand holds integer bits")
    initial = Immediate(28, "initial value of the registers", integer=initial_is_integer)
    initial_pointer = Pointer(
        28,
        "initial value, one per partition",
        dtype=Dtype.FLOAT32,
        partitions="channels",
        flag=initial_is_pointer,
        alias=True,
    )
    # Output and input of an element-wise word stand at 32 and 76; the operand is the first free place behind this tile.
    reduce_res = Tile(120, "where the registers are stored", role="write", dtype="reduce_res_dtype")
    immediate0_dtype = Enumeration(25, Dtype, "element type of the operand behind its pointer", default=Dtype.FLOAT32)
    immediate0 = Immediate(164, "operand, a number", integer=immediate0_is_integer)
    immediate0_pointer = Pointer(
        164,
        "operand, one per partition",
        dtype="immediate0_dtype",
        partitions="channels",
        flag=immediate0_is_pointer,
        alias=True,
    )
    RULES: ClassVar[tuple[Rule, ...]] = (same_elements_documented("src", "dst"), _ONE)


_NUMBERS = (Immediates(("immediate0", "immediate0_pointer"), ("initial", "initial_pointer")), Key("immediate0_dtype"))
_FOLD = (Key("channels"), Key("reduce_command"), Key("reduce_op"), PatternItem("reduce_res", optional=True))


class TensorScalarReduce(Accumulating):
    """Apply src op0 operand, and fold the results."""

    __slots__ = ()
    NAME = "TENSOR_SCALAR_REDUCE"
    CODE, SIZE = 49, 192
    op0 = Enumeration(19, AluOp, "operator with the operand")
    negate = BitFlag(24, 4, "change the sign of what is stored of the registers")
    SYNTAX = (Key("op0"), *_NUMBERS, PatternItem("src"), PatternItem("dst"), *_FOLD, Key("negate", optional=True))


class TensorScalarCumulative(Accumulating):
    """Apply register = (src op0 operand) op register along each partition, and write every register value."""

    __slots__ = ()
    NAME = "TENSOR_SCALAR_CUMULATIVE"
    CODE, SIZE = 50, 192
    DATAFLOW = Dataflow.EARLIER
    COST = Passes()
    op0 = Enumeration(19, AluOp, "operator with the operand")
    SYNTAX = (Key("op0"), *_NUMBERS, PatternItem("src"), PatternItem("dst"), *_FOLD)


class Exponential(Accumulating):
    """Compute exp(src - operand), and sum the results."""

    __slots__ = ()
    NAME = "EXPONENTIAL"
    CODE, SIZE = 51, 192
    GENERATIONS = ("gen4",)
    COST = Passes("src", (), "exponential")
    SYNTAX = (*_NUMBERS, PatternItem("src"), PatternItem("dst"), *_FOLD)


class SelectReduce(Accumulating):
    """Choose src where the predicate is not zero (zero when reversed), else the operand; fold what was chosen."""

    __slots__ = ()
    NAME = "SELECT_REDUCE"
    CODE, SIZE = 52, 256
    DATAFLOW = Dataflow.CHOICE
    predicate_dtype = Enumeration(19, Dtype, "element type of the predicate")
    reverse = BitFlag(24, 4, "choose src where the predicate is zero")
    predicate = Tile(168, "predicate", role="read", dtype="predicate_dtype")
    SYNTAX = (
        PatternItem("predicate"),
        *_NUMBERS,
        PatternItem("src"),
        PatternItem("dst"),
        *_FOLD,
        Key("reverse", optional=True),
    )
    RULES = (same_elements_documented("src", "predicate", "dst"), _ONE)


class RangeSelect(Accumulating):
    """Keep src where the place of an element compares with two bounds, write `fill` elsewhere; fold the results."""

    __slots__ = ()
    NAME = "RANGE_SELECT"
    CODE, SIZE = 53, 192
    GENERATIONS = ("gen3", "gen4")
    COST = Passes()
    FILL = "fill"
    op0 = Enumeration(19, AluOp, "comparison of the place with bound 0")
    op1 = Enumeration(20, AluOp, "comparison of the place with bound 1")
    start = Integer(168, 4, "place of the first element", signed=True)
    fill = Float32(172, "value outside of the range", default=_FP32_MIN)
    bound0_pointer = Pointer(176, "first bound, one per partition", dtype=Dtype.FLOAT32, partitions="channels")
    bound1_pointer = Pointer(180, "second bound, one per partition", dtype=Dtype.FLOAT32, partitions="channels")
    SYNTAX = (
        Key("op0"),
        Key("op1"),
        PointerItem("bound0_pointer", "bound0"),
        PointerItem("bound1_pointer", "bound1"),
        Key("start"),
        Key("fill", style="float"),
        *_NUMBERS,
        PatternItem("src"),
        PatternItem("dst"),
        *_FOLD,
    )
    RULES = (*Accumulating.RULES, comparison("op0", "op1"))
