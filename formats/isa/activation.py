"""Words of the Scalar engine (ACT): activate, table load. Source: isa.md 7."""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.behaviour import Duration
from formats.isa.enums import AccumulatorCommand, ActivationFunction
from formats.isa.field import Enumeration, Float32, Integer, Nibble
from formats.isa.instruction import Instruction
from formats.isa.operand import Pattern, Pointer
from formats.isa.rule import same_elements
from formats.isa.syntax import Bare, Key
from formats.isa.syntax_operands import PatternItem, PointerItem
from formats.neuron_core import PARTITIONS

__all__ = ["ActTableLoad", "Activate"]

# Functions that every set of the compiler holds. Source: act_info.json of public NEFFs (formats.md 3.8).
EVERY_SET = frozenset(
    {
        "abs",
        "copy",
        "derivative_identity",
        "derivative_leaky_relu",
        "derivative_relu",
        "identity",
        "is_finite",
        "leaky_relu",
        "memset_zero",
        "parametric_relu",
        "relu",
        "sign",
        "square",
    }
)


class Activate(Instruction):
    """Apply func(in * scale + bias) to every element."""

    __slots__ = ()
    NAME = "ACTIVATE"
    OPCODE = 0x21
    ENGINES = ("Activation",)
    CITE = "isa.md 7 (21)"
    OVERWRITES = True
    # Bytes 12 and 15 are both 1 where gen2 applies `copy`, else both 0 (isa.md 7): one of them is read as the flag
    # that a pointer operand needs, the other only kept.
    no_bias = Integer(12, 1, "1 where no bias operand is used", provenance="inferred", known=range(2))
    unknown_15 = Integer(15, 1, "unknown; same values as byte 12", provenance="inferred")
    src = Pattern(16, 3, "input", role="read", dtype="src_dtype", partitions="channels")
    src_dtype = Nibble(32, Dtype, "element type of the input", high=False)
    bias_dtype = Nibble(32, Dtype, "element type of the bias", high=True, default=Dtype.FLOAT32, provenance="inferred")
    dst_dtype = Nibble(33, Dtype, "element type of the output", high=False)
    accumulator_command = Nibble(
        33, AccumulatorCommand, "what happens to the accumulator registers", high=True, provenance="inferred"
    )
    channels = Integer(34, 1, "partitions", unit="partitions", default=PARTITIONS, provenance="inferred")
    function = Enumeration(35, ActivationFunction, "function id, bound through the file's function table")
    scale = Float32(36, "multiplies the input", default=1.0, provenance="inferred")
    bias_pointer = Pointer(
        40, "bias, one value per partition", dtype="bias_dtype", partitions="channels", flag=no_bias, inverted=True
    )
    immediate = Float32(44, "second number of the function", provenance="inferred")
    dst = Pattern(48, 3, "output", role="write", dtype="dst_dtype", partitions="channels")
    SYNTAX = (
        Bare("function"),
        PointerItem("bias_pointer", "bias_ptr"),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
        Key("scale", style="float"),
        Key("immediate", "imm", style="float"),
        Key("accumulator_command", "accumulator_cmd"),
    )
    RULES = (same_elements("src", "dst"),)


class ActTableLoad(Instruction):
    """Load a set of activation function tables."""

    __slots__ = ()
    NAME = "ACT_TABLE_LOAD"
    OPCODE = 0x23
    ENGINES = ("Activation",)
    CITE = "isa.md 7 (23)"
    COST = Duration("table_load")
    table_select = Integer(12, 4, "index into activation_function_sets of Activation.json", provenance="inferred")
    SYNTAX = (Key("table_select", "table_sel"),)
