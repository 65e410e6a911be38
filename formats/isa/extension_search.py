"""Extension words of the Vector engine that search for eight values, and that gather statistics.

The instructions are documented (hardware.md 5.2, the nki.isa pages); every bit here is ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.dtypes import Dtype
from formats.isa.behaviour import Dataflow, Passes
from formats.isa.extension import TileWord
from formats.isa.field import Enumeration, Float32
from formats.isa.operand import Tile
from formats.isa.rule import Context, Finding, Rule, elements, has_elements, same_elements_documented
from formats.isa.syntax import Key
from formats.isa.syntax_operands import PatternItem

__all__ = ["BnAggregate", "BnStats", "FindIndex8", "MatchReplace8", "Max8"]


class _Whole(TileWord):
    """A word whose result depends on all elements of a partition."""

    __slots__ = ()
    ENGINES = ("DVE",)
    CUTS = False
    DATAFLOW = Dataflow.PARTITION


_EIGHT = has_elements("dst", 8, "dst has eight elements.")
_VALUES = has_elements("values", 8, "There are eight values.")


def _triples(word: BnAggregate, context: Context) -> Iterator[Finding]:
    if elements(word, "src") % 3:
        yield "src", f"{elements(word, 'src')} elements are no triples"


class Max8(_Whole):
    """Write the eight largest elements of each partition in descending order."""

    __slots__ = ()
    NAME = "MAX8"
    CODE, SIZE = 64, 128
    COST = Passes()
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))
    RULES = (_EIGHT,)


class _Values(_Whole):
    """A search for eight values."""

    __slots__ = ()
    values_dtype = Enumeration(19, Dtype, "element type of the values")
    values = Tile(120, "the eight values", role="read", dtype="values_dtype")


class FindIndex8(_Values):
    """Write the first place of each of eight values; all ones where there is none."""

    __slots__ = ()
    NAME = "FIND_INDEX8"
    CODE, SIZE = 65, 192
    COST = Passes()
    SYNTAX = (PatternItem("src"), PatternItem("values"), PatternItem("dst"), Key("channels"))
    RULES = (_EIGHT, _VALUES)


class MatchReplace8(_Values):
    """Replace the first element that equals each of eight values, the last value first; write the places too."""

    __slots__ = ()
    NAME = "MATCH_REPLACE8"
    CODE, SIZE = 66, 256
    COST = Passes()
    indices_dtype = Enumeration(20, Dtype, "element type of the places")
    immediate = Float32(24, "what replaces the elements")
    indices = Tile(164, "places", role="write", dtype="indices_dtype")
    SYNTAX = (
        PatternItem("src"),
        PatternItem("values"),
        Key("immediate", "imm", style="float"),
        PatternItem("dst"),
        PatternItem("indices", optional=True),
        Key("channels"),
    )
    RULES = (same_elements_documented("src", "dst"), _VALUES, has_elements("indices", 8, "Eight places are stored."))


class BnStats(_Whole):
    """Write count, mean and count times variance of the even elements, then of the odd ones."""

    __slots__ = ()
    NAME = "BN_STATS"
    CODE, SIZE = 67, 128
    COST = Passes()
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))
    RULES = (has_elements("dst", 6, "dst has six elements."),)


class BnAggregate(_Whole):
    """Write mean and variance of everything that triples of count, mean and count times variance describe."""

    __slots__ = ()
    NAME = "BN_AGGREGATE"
    CODE, SIZE = 68, 128
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"))
    RULES = (
        has_elements("dst", 2, "dst has two elements."),
        Rule("src holds triples.", "documented", "nki.isa pages", _triples),
    )
