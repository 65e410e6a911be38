"""Extension words of the random number generators of Vector and GpSimd.

The instructions are documented (hardware.md 5.2, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import Dataflow, EngineState, Passes
from formats.isa.extension import ExtensionWord, TileWord
from formats.isa.field import BitFlag, Enumeration, Immediate, Integer
from formats.isa.operand import Pointer, Tile
from formats.isa.rule import same_elements_documented
from formats.isa.syntax import Item, Key
from formats.isa.syntax_operands import Immediates, PatternItem
from formats.neuron_core import PARTITIONS

__all__ = ["Dropout", "Rand2", "RandGetState", "RandSetState", "Rng", "SetRngSeed"]


class _Output(ExtensionWord):
    """A word with an output only."""

    __slots__ = ()
    ENGINES: ClassVar[tuple[str, ...]] = ("DVE", "Pool")
    CUTS = False
    STATE = EngineState.GENERATOR
    channels = Integer(16, 1, "partitions", unit="partitions", default=PARTITIONS)
    dst_dtype = Enumeration(17, Dtype, "element type of the output")
    dst = Tile(32, "output", role="write", dtype="dst_dtype")
    SYNTAX: ClassVar[tuple[Item, ...]] = (PatternItem("dst"), Key("channels"))


class _Input(ExtensionWord):
    """A word with an input only."""

    __slots__ = ()
    CUTS = False
    STATE = EngineState.GENERATOR
    channels = Integer(16, 1, "partitions", unit="partitions", default=PARTITIONS)
    src_dtype = Enumeration(18, Dtype, "element type of the input")
    src = Tile(32, "input", role="read", dtype="src_dtype")
    SYNTAX = (PatternItem("src"), Key("channels"))


class Rng(_Output):
    """Write random bits, the low ones where an element holds fewer than 32."""

    __slots__ = ()
    NAME = "RNG"
    CODE, SIZE = 80, 128
    COST = Passes("dst", ("dst",))


class RandGetState(_Output):
    """Write the generator state of each lane."""

    __slots__ = ()
    NAME = "RAND_GET_STATE"
    CODE, SIZE = 81, 128
    GENERATIONS = ("gen3", "gen4")


class RandSetState(_Input):
    """Set the generator state of each lane."""

    __slots__ = ()
    NAME = "RAND_SET_STATE"
    CODE, SIZE = 82, 128
    ENGINES = ("DVE", "Pool")
    GENERATIONS = ("gen3", "gen4")


class SetRngSeed(_Input):
    """Derive the generator states of all lanes from one number."""

    __slots__ = ()
    NAME = "SET_RNG_SEED"
    CODE, SIZE = 83, 128
    ENGINES = ("DVE",)
    DATAFLOW = Dataflow.ALL


class Rand2(_Output):
    """Write numbers distributed evenly between two bounds."""

    __slots__ = ()
    NAME = "RAND2"
    CODE, SIZE = 84, 128
    ENGINES = ("DVE",)
    GENERATIONS = ("gen4",)
    COST = Passes("dst", (), "rand2")
    low_is_pointer = BitFlag(20, 0, "the lower bound is a pointer")
    high_is_pointer = BitFlag(20, 1, "the upper bound is a pointer")
    low_is_integer = BitFlag(20, 2, "the lower bound holds integer bits")
    high_is_integer = BitFlag(20, 3, "the upper bound holds integer bits")
    low = Immediate(24, "lower bound", integer=low_is_integer)
    low_pointer = Pointer(
        24,
        "lower bound, one per partition",
        dtype=Dtype.FLOAT32,
        partitions="channels",
        flag=low_is_pointer,
        alias=True,
    )
    high = Immediate(28, "upper bound", integer=high_is_integer)
    high_pointer = Pointer(
        28,
        "upper bound, one per partition",
        dtype=Dtype.FLOAT32,
        partitions="channels",
        flag=high_is_pointer,
        alias=True,
    )
    SYNTAX = (Immediates(("low", "low_pointer"), ("high", "high_pointer")), PatternItem("dst"), Key("channels"))


class Dropout(TileWord):
    """Write 0 with a given probability, else the input."""

    __slots__ = ()
    NAME = "DROPOUT"
    CODE, SIZE = 85, 128
    ENGINES = ("DVE",)
    CUTS = False
    COST = Passes()
    STATE = EngineState.GENERATOR
    probability_is_pointer = BitFlag(20, 0, "the probability is a pointer")
    probability_is_integer = BitFlag(20, 1, "the probability holds integer bits")
    probability_dtype = Enumeration(
        21, Dtype, "element type of the probability behind its pointer", default=Dtype.FLOAT32
    )
    probability = Immediate(24, "probability of 0", integer=probability_is_integer)
    probability_pointer = Pointer(
        24,
        "probability, one per partition",
        dtype="probability_dtype",
        partitions="channels",
        flag=probability_is_pointer,
        alias=True,
    )
    SYNTAX = (
        Immediates(("probability", "probability_pointer")),
        Key("probability_dtype"),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
    )
    RULES = (same_elements_documented("src", "dst"),)
