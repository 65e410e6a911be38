"""Extension words that only gen4 has: MX quantization and multiplication, the second activation.

The instructions are documented (hardware.md 5.1 to 5.3, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.enums import ActivationFunction, AluOp, ReduceCommand
from formats.isa.extension import _Wide
from formats.isa.field import BitFlag, Enumeration, Immediate, Integer
from formats.isa.instruction import EXTENSION_OPCODE
from formats.isa.operand import Pattern, Pointer
from formats.isa.syntax import Bare, Key
from formats.isa.syntax_operands import Immediates, PatternItem

__all__ = ["Activate2", "MatMulMx", "QuantizeMx"]


class QuantizeMx(_Wide):
    """Quantize groups of 8 partitions by 4 elements to 8-bit floats with one scale each.

    Scales of 32 partitions lie in the first four of them.
    """

    __slots__ = ()
    NAME = "QUANTIZE_MX"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 96, 192
    ENGINES = ("DVE",)
    GENERATIONS = ("gen4",)
    CUTS = False
    scale_dtype = Enumeration(19, Dtype, "element type of the scales", provenance="ours")
    scale_channels = Integer(20, 1, "partitions that the scales span", unit="partitions", default=100,
                             provenance="ours")
    scale = Pattern(120, 5, "scales", role="write", dtype="scale_dtype", partitions="scale_channels", wide=True,
                    provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("dst"), PatternItem("scale"), Key("channels"), Key("scale_channels"))


class MatMulMx(_Wide):
    """Multiply two tiles of packed elements with scales, and write or add to PSUM."""

    __slots__ = ()
    NAME = "MATMUL_MX"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 97, 256
    ENGINES = ("PE",)
    GENERATIONS = ("gen4",)
    CUTS = False
    stationary_dtype = Enumeration(19, Dtype, "element type of the stationary tile", provenance="ours")
    src_scale_dtype = Enumeration(20, Dtype, "element type of the moving scales", provenance="ours")
    weight_scale_dtype = Enumeration(21, Dtype, "element type of the stationary scales", provenance="ours")
    scale_channels = Integer(22, 1, "partitions that the scales span", unit="partitions", default=100,
                             provenance="ours")
    dst_channels = Integer(23, 1, "partitions of the output", unit="partitions", default=128, provenance="ours")
    accumulate = BitFlag(24, 0, "add to PSUM instead of overwriting it", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="dst_channels", wide=True,
                  provenance="ours")
    stationary = Pattern(120, 5, "stationary tile", role="read", dtype="stationary_dtype", partitions="channels",
                         wide=True, provenance="ours")
    src_scale = Pattern(164, 5, "moving scales", role="read", dtype="src_scale_dtype", partitions="scale_channels",
                        wide=True, provenance="ours")
    stationary_scale = Pattern(208, 5, "stationary scales", role="read", dtype="weight_scale_dtype",
                               partitions="scale_channels", wide=True, provenance="ours")
    SYNTAX = (PatternItem("stationary"), PatternItem("stationary_scale"), PatternItem("src"), PatternItem("src_scale"),
              PatternItem("dst"), Key("channels"), Key("dst_channels"), Key("scale_channels"),
              Key("accumulate", optional=True))


class Activate2(_Wide):
    """Apply func((src op0 a) op1 b), and fold the results into the accumulator registers."""

    __slots__ = ()
    NAME = "ACTIVATE2"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 98, 128
    ENGINES = ("Activation",)
    GENERATIONS = ("gen4",)
    CUTS = False
    function = Enumeration(19, ActivationFunction, "function id, bound through the file's function table",
                           provenance="ours")
    reduce_command = Enumeration(20, ReduceCommand, "what happens to the accumulator registers", provenance="ours")
    reduce_op = Enumeration(21, AluOp, "operator of the fold", default=AluOp.ADD, provenance="ours")
    op0 = Enumeration(22, AluOp, "first operator", provenance="ours")
    op1 = Enumeration(23, AluOp, "second operator", provenance="ours")
    immediate0_is_pointer = BitFlag(24, 0, "operand 0 is a pointer", provenance="ours")
    immediate1_is_pointer = BitFlag(24, 1, "operand 1 is a pointer", provenance="ours")
    parameter_is_pointer = BitFlag(24, 2, "the parameter is a pointer", provenance="ours")
    immediate0_is_integer = BitFlag(24, 3, "operand 0 holds integer bits", provenance="ours")
    immediate1_is_integer = BitFlag(24, 4, "operand 1 holds integer bits", provenance="ours")
    parameter_is_integer = BitFlag(24, 5, "the parameter holds integer bits", provenance="ours")
    reverse0 = BitFlag(24, 6, "operand 0 stands on the left of op0", provenance="ours")
    reverse1 = BitFlag(24, 7, "operand 1 stands on the left of op1", provenance="ours")
    immediate_dtype = Enumeration(25, Dtype, "element type behind both pointers", default=Dtype.FLOAT32,
                                  provenance="ours")
    immediate0 = Immediate(28, "operand 0 as a number", integer=immediate0_is_integer, provenance="ours")
    immediate0_pointer = Pointer(28, "operand 0, one per partition", dtype="immediate_dtype", partitions="channels",
                                 flag=immediate0_is_pointer, alias=True, provenance="ours")
    immediate1 = Immediate(120, "operand 1 as a number", integer=immediate1_is_integer, provenance="ours")
    immediate1_pointer = Pointer(120, "operand 1, one per partition", dtype="immediate_dtype", partitions="channels",
                                 flag=immediate1_is_pointer, alias=True, provenance="ours")
    parameter = Immediate(124, "parameter of the function, as a number", integer=parameter_is_integer,
                          provenance="ours")
    parameter_pointer = Pointer(124, "parameter of the function, one per partition", dtype=Dtype.FLOAT32,
                                partitions="channels", flag=parameter_is_pointer, alias=True, provenance="ours")
    SYNTAX = (Bare("function"), Key("op0"), Key("op1"),
              Immediates(("immediate0", "immediate0_pointer"), ("immediate1", "immediate1_pointer"),
                         ("parameter", "parameter_pointer")), Key("immediate_dtype"),
              PatternItem("src"), PatternItem("dst"), Key("channels"), Key("reduce_command"), Key("reduce_op"),
              Key("reverse0", optional=True), Key("reverse1", optional=True))
