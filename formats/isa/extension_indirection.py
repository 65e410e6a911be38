"""Extension words of gen4 for tensor indirection: columns of a tile at places that a tile of indices holds.

A group of partitions (16, or 32 for the Tensor engine) shares its indices: number i lies in partition i % group of the
group, column i // group. Documented (`NkiTensor.indirect`); every bit here is ours. On the device the operand of an
instruction carries the indices itself; here a read stands before the instruction, or a write behind it.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.extension import _Wide
from formats.isa.field import BitFlag, Enumeration, Integer
from formats.isa.instruction import EXTENSION_OPCODE
from formats.isa.operand import Pattern
from formats.isa.syntax import Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["IndirectRead", "IndirectWrite"]


class _Indirection(_Wide):
    """What both directions share: the indices, and how many partitions share them."""

    __slots__ = ()
    ENGINES = ("DVE", "Activation", "Pool")
    GENERATIONS = ("gen4",)
    CUTS = False
    indices_dtype = Enumeration(19, Dtype, "element type of the indices", provenance="ours")
    group = Integer(20, 1, "partitions that share indices", unit="partitions", default=16, provenance="ours")
    indices = Pattern(120, 5, "indices", role="read", dtype="indices_dtype", partitions="channels", wide=True,
                      provenance="ours")


class IndirectRead(_Indirection):
    """Gather columns: element i of a partition is the element of src that index i of its group names."""

    __slots__ = ()
    NAME, COUNTED = "INDIRECT_READ", "dst"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 99, 192
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("dst"), Key("channels"), Key("group"))


class IndirectWrite(_Indirection):
    """Scatter columns: element i of src goes to, or is added to, the element of dst that index i of its group names."""

    __slots__ = ()
    NAME, COUNTED = "INDIRECT_WRITE", "src"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 100, 256
    accumulate = BitFlag(21, 0, "add in fp32 instead of overwriting", provenance="ours")
    reverse = BitFlag(21, 1, "write where the predicate is zero", provenance="ours")
    predicate_dtype = Enumeration(22, Dtype, "element type of the predicate", provenance="ours")
    dst = Pattern(32, 5, "output, of which other columns stay", role="readwrite", dtype="dst_dtype",
                  partitions="channels", wide=True, provenance="ours")
    predicate = Pattern(164, 5, "what is written, everything without it", role="read", dtype="predicate_dtype",
                        partitions="channels", wide=True, provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("predicate", optional=True), PatternItem("dst"),
              Key("channels"), Key("group"), Key("accumulate", optional=True), Key("reverse", optional=True))
