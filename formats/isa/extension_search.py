"""Extension words of the Vector engine that search for eight values, and that gather statistics.

The instructions are documented (hardware.md 5.2, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.extension import _Wide
from formats.isa.field import Enumeration, Float32
from formats.isa.instruction import EXTENSION_OPCODE
from formats.isa.operand import Pattern
from formats.isa.syntax import Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["BnAggregate", "BnStats", "FindIndex8", "MatchReplace8", "Max8"]


class _Whole(_Wide):
    """A word whose result depends on all elements of a partition."""

    __slots__ = ()
    ENGINES = ("DVE",)
    CUTS = False


class Max8(_Whole):
    """Write the eight largest elements of each partition in descending order."""

    __slots__ = ()
    NAME = "MAX8"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 64, 128
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))


class _Values(_Whole):
    """A search for eight values."""

    __slots__ = ()
    values_dtype = Enumeration(19, Dtype, "element type of the values", provenance="ours")
    values = Pattern(120, 5, "the eight values", role="read", dtype="values_dtype", partitions="channels", wide=True,
                     provenance="ours")


class FindIndex8(_Values):
    """Write the first place of each of eight values; all ones where there is none."""

    __slots__ = ()
    NAME = "FIND_INDEX8"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 65, 192
    SYNTAX = (PatternItem("src"), PatternItem("values"), PatternItem("dst"), Key("channels"))


class MatchReplace8(_Values):
    """Replace the first element that equals each of eight values, the last value first; write the places too."""

    __slots__ = ()
    NAME = "MATCH_REPLACE8"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 66, 256
    indices_dtype = Enumeration(20, Dtype, "element type of the places", provenance="ours")
    immediate = Float32(24, "what replaces the elements", provenance="ours")
    indices = Pattern(164, 5, "places", role="write", dtype="indices_dtype", partitions="channels", wide=True,
                      provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("values"), Key("immediate", "imm", style="float"), PatternItem("dst"),
              PatternItem("indices", optional=True), Key("channels"))


class BnStats(_Whole):
    """Write count, mean and count times variance of the even elements, then of the odd ones."""

    __slots__ = ()
    NAME = "BN_STATS"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 67, 128
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))


class BnAggregate(_Whole):
    """Write mean and variance of everything that triples of count, mean and count times variance describe."""

    __slots__ = ()
    NAME = "BN_AGGREGATE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 68, 128
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))
