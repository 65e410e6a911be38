"""Extension words of gen4 for tensor indirection: columns of a tile at places that a tile of indices holds.

A group of partitions (16, or 32 for the Tensor engine) shares its indices: number i lies in partition i % group of the
group, column i // group. Documented (`NkiTensor.indirect`); every bit here is ours. On the device the operand of an
instruction carries the indices itself; here a read stands before the instruction, or a write behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import Dataflow, Passes
from formats.isa.extension import TileWord
from formats.isa.field import BitFlag, Enumeration, Integer
from formats.isa.operand import Tile
from formats.isa.rule import Context, Finding, Rule, elements, same_elements_documented
from formats.isa.syntax import Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["IndirectRead", "IndirectWrite"]


def _shared(word: IndirectRead | IndirectWrite, context: Context) -> Iterator[Finding]:
    channels, group = int(word.channels), int(word.group)
    if group not in (16, 32) or channels % group or not channels:
        yield "group", f"{channels} partitions in groups of {group}"
    elif elements(word, "indices") * group < elements(word, word.COUNTED):
        yield "indices", f"{elements(word, 'indices') * group} in a group, not {elements(word, word.COUNTED)}"


class Indirection(TileWord):
    """What both directions share: the indices, and how many partitions share them."""

    __slots__ = ()
    ENGINES = ("DVE", "Activation", "Pool")
    GENERATIONS = ("gen4",)
    CUTS = False
    indices_dtype = Enumeration(19, Dtype, "element type of the indices")
    group = Integer(20, 1, "partitions that share indices", unit="partitions", default=16)
    indices = Tile(120, "indices", role="read", dtype="indices_dtype")
    COUNTED: ClassVar[str]
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("Partitions are groups of 16 or 32, whose indices suffice.", "documented", "nki.language pages", _shared),
    )


class IndirectRead(Indirection):
    """Gather columns: element i of a partition is the element of src that index i of its group names."""

    __slots__ = ()
    NAME, COUNTED = "INDIRECT_READ", "dst"
    CODE, SIZE = 99, 192
    COST = Passes("dst", ("dst", "indices"))
    DATAFLOW = Dataflow.GATHER
    SYNTAX = (PatternItem("src"), PatternItem("indices"), PatternItem("dst"), Key("channels"), Key("group"))


class IndirectWrite(Indirection):
    """Scatter columns: element i of src goes to, or is added to, the element of dst that index i of its group names."""

    __slots__ = ()
    NAME, COUNTED = "INDIRECT_WRITE", "src"
    CODE, SIZE = 100, 256
    COST = Passes("src", ("src", "indices"))
    DATAFLOW = Dataflow.SCATTER
    accumulate = BitFlag(21, 0, "add in fp32 instead of overwriting")
    reverse = BitFlag(21, 1, "write where the predicate is zero")
    predicate_dtype = Enumeration(22, Dtype, "element type of the predicate")
    dst = Tile(32, "output, of which other columns stay", role="readwrite", dtype="dst_dtype")
    predicate = Tile(164, "what is written, everything without it", role="read", dtype="predicate_dtype")
    SYNTAX = (
        PatternItem("src"),
        PatternItem("indices"),
        PatternItem("predicate", optional=True),
        PatternItem("dst"),
        Key("channels"),
        Key("group"),
        Key("accumulate", optional=True),
        Key("reverse", optional=True),
    )
    RULES = (*Indirection.RULES, same_elements_documented("src", "predicate"))
