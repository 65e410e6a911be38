"""Extension words that only gen4 has: MX quantization and multiplication, the second activation.

The instructions are documented (hardware.md 5.1 to 5.3, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.behaviour import KEPT, Dataflow, EngineState, Passes
from formats.isa.enums import ActivationFunction, AluOp, ReduceCommand
from formats.isa.extension import TileWord
from formats.isa.field import BitFlag, Enumeration, Immediate, Integer
from formats.isa.operand import Pointer, Tile
from formats.isa.rule import elements, groups, has_elements, in_psum, same_elements_documented
from formats.isa.syntax import Bare, Key
from formats.isa.syntax_operands import Immediates, PatternItem
from formats.neuron_core import PARTITIONS

__all__ = ["Activate2", "MatMulMx", "QuantizeMx"]


# Partitions of the scales of 32 partitions of MX data (hardware.md 3.3).
SCALE_LANES = (0, 1, 2, 3, *(KEPT,) * 28)


class QuantizeMx(TileWord):
    """Quantize groups of 8 partitions by 4 elements to 8-bit floats with one scale each.

    Scales of 32 partitions lie in the first four of them.
    """

    __slots__ = ()
    NAME = "QUANTIZE_MX"
    CODE, SIZE = 96, 192
    ENGINES = ("DVE",)
    GENERATIONS = ("gen4",)
    CUTS = False
    COST = Passes("src", (), "quantize_mx")
    scale_dtype = Enumeration(19, Dtype, "element type of the scales")
    # 128 partitions of data are four groups of 32; the scales of the last lie in partitions 96 to 99
    scale_channels = Integer(20, 1, "partitions that the scales span", unit="partitions", default=100)
    scale = Tile(120, "scales", role="write", dtype="scale_dtype", partitions="scale_channels", lanes=SCALE_LANES)
    SYNTAX = (PatternItem("src"), PatternItem("dst"), PatternItem("scale"), Key("channels"), Key("scale_channels"))
    RULES = (
        groups(32),
        same_elements_documented("scale", "dst"),
        has_elements("src", lambda word: 4 * elements(word, "dst"), "dst has the elements that the word makes."),
    )


class MatMulMx(TileWord):
    """Multiply two tiles of packed elements with scales, and write or add to PSUM."""

    __slots__ = ()
    NAME = "MATMUL_MX"
    CODE, SIZE = 97, 256
    ENGINES = ("PE",)
    GENERATIONS = ("gen4",)
    CUTS = False
    DATAFLOW = Dataflow.ALL
    stationary_dtype = Enumeration(19, Dtype, "element type of the stationary tile")
    src_scale_dtype = Enumeration(20, Dtype, "element type of the moving scales")
    weight_scale_dtype = Enumeration(21, Dtype, "element type of the stationary scales")
    scale_channels = Integer(22, 1, "partitions that the scales span", unit="partitions", default=100)
    dst_channels = Integer(23, 1, "partitions of the output", unit="partitions", default=PARTITIONS)
    accumulate = BitFlag(24, 0, "add to PSUM instead of overwriting it")
    dst = Tile(32, "output", role="write", dtype="dst_dtype", partitions="dst_channels")
    stationary = Tile(120, "stationary tile", role="read", dtype="stationary_dtype")
    src_scale = Tile(
        164, "moving scales", role="read", dtype="src_scale_dtype", partitions="scale_channels", lanes=SCALE_LANES
    )
    stationary_scale = Tile(
        208,
        "stationary scales",
        role="read",
        dtype="weight_scale_dtype",
        partitions="scale_channels",
        lanes=SCALE_LANES,
    )
    SYNTAX = (
        PatternItem("stationary"),
        PatternItem("stationary_scale"),
        PatternItem("src"),
        PatternItem("src_scale"),
        PatternItem("dst"),
        Key("channels"),
        Key("dst_channels"),
        Key("scale_channels"),
        Key("accumulate", optional=True),
    )
    RULES = (
        groups(32),
        same_elements_documented("src", "src_scale", "dst"),
        same_elements_documented("stationary", "stationary_scale"),
        in_psum("nki.isa pages"),
    )

    @property
    def adds(self) -> bool:
        return bool(self.accumulate)


class Activate2(TileWord):
    """Apply func((src op0 a) op1 b), and fold the results into the accumulator registers."""

    __slots__ = ()
    NAME = "ACTIVATE2"
    CODE, SIZE = 98, 128
    ENGINES = ("Activation",)
    GENERATIONS = ("gen4",)
    CUTS = False
    STATE = EngineState.OPTIONAL
    function = Enumeration(19, ActivationFunction, "function id, bound through the file's function table")
    reduce_command = Enumeration(20, ReduceCommand, "what happens to the accumulator registers")
    reduce_op = Enumeration(21, AluOp, "operator of the fold", default=AluOp.ADD)
    op0 = Enumeration(22, AluOp, "first operator")
    op1 = Enumeration(23, AluOp, "second operator")
    immediate0_is_pointer = BitFlag(24, 0, "operand 0 is a pointer")
    immediate1_is_pointer = BitFlag(24, 1, "operand 1 is a pointer")
    parameter_is_pointer = BitFlag(24, 2, "the parameter is a pointer")
    immediate0_is_integer = BitFlag(24, 3, "operand 0 holds integer bits")
    immediate1_is_integer = BitFlag(24, 4, "operand 1 holds integer bits")
    parameter_is_integer = BitFlag(24, 5, "the parameter holds integer bits")
    reverse0 = BitFlag(24, 6, "operand 0 stands on the left of op0")
    reverse1 = BitFlag(24, 7, "operand 1 stands on the left of op1")
    immediate_dtype = Enumeration(25, Dtype, "element type behind both pointers", default=Dtype.FLOAT32)
    immediate0 = Immediate(28, "operand 0 as a number", integer=immediate0_is_integer)
    immediate0_pointer = Pointer(
        28,
        "operand 0, one per partition",
        dtype="immediate_dtype",
        partitions="channels",
        flag=immediate0_is_pointer,
        alias=True,
    )
    immediate1 = Immediate(120, "operand 1 as a number", integer=immediate1_is_integer)
    immediate1_pointer = Pointer(
        120,
        "operand 1, one per partition",
        dtype="immediate_dtype",
        partitions="channels",
        flag=immediate1_is_pointer,
        alias=True,
    )
    parameter = Immediate(124, "parameter of the function, as a number", integer=parameter_is_integer)
    parameter_pointer = Pointer(
        124,
        "parameter of the function, one per partition",
        dtype=Dtype.FLOAT32,
        partitions="channels",
        flag=parameter_is_pointer,
        alias=True,
    )
    SYNTAX = (
        Bare("function"),
        Key("op0"),
        Key("op1"),
        Immediates(
            ("immediate0", "immediate0_pointer"),
            ("immediate1", "immediate1_pointer"),
            ("parameter", "parameter_pointer"),
        ),
        Key("immediate_dtype"),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
        Key("reduce_command"),
        Key("reduce_op"),
        Key("reverse0", optional=True),
        Key("reverse1", optional=True),
    )
    RULES = (same_elements_documented("src", "dst"),)
