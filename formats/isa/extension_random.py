"""Extension words of the random number generators of Vector and GpSimd.

The instructions are documented (hardware.md 5.2, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.extension import _Extension, _Wide
from formats.isa.field import BitFlag, Enumeration, Immediate, Integer
from formats.isa.instruction import EXTENSION_OPCODE
from formats.isa.operand import Pattern, Pointer
from formats.isa.syntax import Item, Key
from formats.isa.syntax_operands import Immediates, PatternItem

__all__ = ["Dropout", "Rand2", "RandGetState", "RandSetState", "Rng", "SetRngSeed"]


class _Output(_Extension):
    """A word with an output only."""

    __slots__ = ()
    ENGINES: ClassVar[tuple[str, ...]] = ("DVE", "Pool")
    CUTS = False
    channels = Integer(16, 1, "partitions", unit="partitions", default=128, provenance="ours")
    dst_dtype = Enumeration(17, Dtype, "element type of the output", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="channels", wide=True, provenance="ours")
    SYNTAX: ClassVar[tuple[Item, ...]] = (PatternItem("dst"), Key("channels"))


class _Input(_Extension):
    """A word with an input only."""

    __slots__ = ()
    CUTS = False
    channels = Integer(16, 1, "partitions", unit="partitions", default=128, provenance="ours")
    src_dtype = Enumeration(18, Dtype, "element type of the input", provenance="ours")
    src = Pattern(32, 5, "input", role="read", dtype="src_dtype", partitions="channels", wide=True, provenance="ours")
    SYNTAX = (PatternItem("src"), Key("channels"))


class Rng(_Output):
    """Write random bits, the low ones where an element holds fewer than 32."""

    __slots__ = ()
    NAME = "RNG"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 80, 128


class RandGetState(_Output):
    """Write the generator state of each lane."""

    __slots__ = ()
    NAME = "RAND_GET_STATE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 81, 128
    GENERATIONS = ("gen3", "gen4")


class RandSetState(_Input):
    """Set the generator state of each lane."""

    __slots__ = ()
    NAME = "RAND_SET_STATE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 82, 128
    ENGINES = ("DVE", "Pool")
    GENERATIONS = ("gen3", "gen4")


class SetRngSeed(_Input):
    """Derive the generator states of all lanes from one number."""

    __slots__ = ()
    NAME = "SET_RNG_SEED"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 83, 128
    ENGINES = ("DVE",)


class Rand2(_Output):
    """Write numbers distributed evenly between two bounds."""

    __slots__ = ()
    NAME = "RAND2"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 84, 128
    ENGINES = ("DVE",)
    GENERATIONS = ("gen4",)
    low_is_pointer = BitFlag(20, 0, "the lower bound is a pointer", provenance="ours")
    high_is_pointer = BitFlag(20, 1, "the upper bound is a pointer", provenance="ours")
    low_is_integer = BitFlag(20, 2, "the lower bound holds integer bits", provenance="ours")
    high_is_integer = BitFlag(20, 3, "the upper bound holds integer bits", provenance="ours")
    low = Immediate(24, "lower bound", integer=low_is_integer, provenance="ours")
    low_pointer = Pointer(24, "lower bound, one per partition", dtype=Dtype.FLOAT32, partitions="channels",
                          flag=low_is_pointer, alias=True, provenance="ours")
    high = Immediate(28, "upper bound", integer=high_is_integer, provenance="ours")
    high_pointer = Pointer(28, "upper bound, one per partition", dtype=Dtype.FLOAT32, partitions="channels",
                           flag=high_is_pointer, alias=True, provenance="ours")
    SYNTAX = (Immediates(("low", "low_pointer"), ("high", "high_pointer")), PatternItem("dst"), Key("channels"))


class Dropout(_Wide):
    """Write 0 with a given probability, else the input."""

    __slots__ = ()
    NAME = "DROPOUT"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 85, 128
    ENGINES = ("DVE",)
    CUTS = False
    probability_is_pointer = BitFlag(20, 0, "the probability is a pointer", provenance="ours")
    probability_is_integer = BitFlag(20, 1, "the probability holds integer bits", provenance="ours")
    probability_dtype = Enumeration(21, Dtype, "element type of the probability behind its pointer",
                                    default=Dtype.FLOAT32, provenance="ours")
    probability = Immediate(24, "probability of 0", integer=probability_is_integer, provenance="ours")
    probability_pointer = Pointer(24, "probability, one per partition", dtype="probability_dtype",
                                  partitions="channels", flag=probability_is_pointer, alias=True, provenance="ours")
    SYNTAX = (Immediates(("probability", "probability_pointer")), Key("probability_dtype"), PatternItem("src"),
              PatternItem("dst"), Key("channels"))
