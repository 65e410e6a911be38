"""Rules of the extension words for gathers, selections, searches, random numbers and gen4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from formats.isa.enums import AluOp
from formats.isa.extension_gen4 import Activate2, MatMulMx, QuantizeMx
from formats.isa.extension_gpsimd import (
    AffineSelect,
    Iota,
    LocalGather,
    NGather,
    NonzeroWithCount,
    SequenceBounds,
    TensorPartitionReduce,
    TopK,
)
from formats.isa.extension_indirection import IndirectRead, IndirectWrite
from formats.isa.extension_random import Dropout
from formats.isa.extension_register import RegisterLoad
from formats.isa.extension_search import BnAggregate, BnStats, FindIndex8, MatchReplace8, Max8
from formats.isa.extension_select import (
    CopyPredicated,
    Exponential,
    RangeSelect,
    SelectReduce,
    TensorScalarCumulative,
    TensorScalarReduce,
)
from formats.isa.instruction import Instruction
from formats.isa.operand import PSUM_BASE
from formats.isa.rule import Context, Finding, Rule

__all__ = ["EXTENSION_RULES"]

_COMPARISONS = (AluOp.EQUAL, AluOp.NOT_EQUAL, AluOp.GREATER, AluOp.GREATER_EQUAL, AluOp.LESS, AluOp.LESS_EQUAL)
Count = int | Callable[[Any], int]


def _elements(word: Instruction, name: str) -> int:
    return prod(word.FIELDS[name].read(word.raw).counts)


def _same(*operands: str) -> Rule:
    """Return the rule that those operands in use have equally many elements in each partition."""
    def run(word: Instruction, context: Context) -> Iterator[Finding]:
        counts = {name: _elements(word, name) for name in operands if word.OPERANDS[name].enabled(word.raw)}
        if len(set(counts.values())) > 1:
            yield operands[-1], "elements differ: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    return Rule(f"{', '.join(operands[:-1])} and {operands[-1]} have equally many elements.", "documented",
                "nki.isa pages", run)


def _holds(name: str, wanted: Count, doc: str) -> Rule:
    """Return the rule that an operand in use has so many elements in each partition."""
    def run(word: Instruction, context: Context) -> Iterator[Finding]:
        count = wanted if isinstance(wanted, int) else wanted(word)
        if word.OPERANDS[name].enabled(word.raw) and _elements(word, name) != count:
            yield name, f"{_elements(word, name)} elements, not {count}"
    return Rule(doc, "documented", "nki.isa pages", run)


def _walk(word: Iota | AffineSelect) -> int:
    return int(word.count0 * word.count1 * word.count2 * word.count3)


def _comparison(*names: str) -> Rule:
    def run(word: Instruction, context: Context) -> Iterator[Finding]:
        for name in names:
            if word.FIELDS[name].read(word.raw) not in _COMPARISONS:
                yield name, "the operator is no comparison"
    return Rule("Operators are comparisons.", "documented", "nki.isa pages", run)


def _groups(of: int) -> Rule:
    def run(word: Instruction, context: Context) -> Iterator[Finding]:
        channels = word.FIELDS["channels"].read(word.raw)
        if channels % of or not channels:
            yield "channels", f"{channels} is no multiple of {of}"
    return Rule(f"Partitions are a multiple of {of}.", "documented", "nki.isa pages", run)


def _shared(word: Any, context: Context) -> Iterator[Finding]:
    channels, group = int(word.channels), int(word.group)
    if group not in (16, 32) or channels % group or not channels:
        yield "group", f"{channels} partitions in groups of {group}"
    elif _elements(word, "indices") * group < _elements(word, word.COUNTED):
        yield "indices", f"{_elements(word, 'indices') * group} in a group, not {_elements(word, word.COUNTED)}"


_SHARED = Rule("Partitions are groups of 16 or 32, whose indices suffice.", "documented", "nki.language pages", _shared)


def _psum(word: MatMulMx, context: Context) -> Iterator[Finding]:
    if word.dst.address < PSUM_BASE:
        yield "dst", f"{word.dst.address:#x} is not in PSUM"


def _triples(word: BnAggregate, context: Context) -> Iterator[Finding]:
    if _elements(word, "src") % 3:
        yield "src", f"{_elements(word, 'src')} elements are no triples"


def _one_partition(word: RegisterLoad, context: Context) -> Iterator[Finding]:
    if word.channels != 1:
        yield "channels", f"{word.channels} partitions, not 1"


_DST = "dst has the elements that the word makes."
_WALKED = _holds("dst", _walk, "The walk has the elements of dst.")
_EIGHT = _holds("dst", 8, "dst has eight elements.")
_VALUES = _holds("values", 8, "There are eight values.")
_ONE = _holds("reduce_res", 1, "One register a partition is stored.")

EXTENSION_RULES: dict[type[Instruction], tuple[Rule, ...]] = {
    Iota: (_WALKED,),
    AffineSelect: (_same("src", "dst"), _WALKED, _comparison("op")),
    NGather: (_same("indices", "dst"),),
    LocalGather: (_groups(16), _holds("dst", lambda word: int(word.valid * word.run), _DST)),
    NonzeroWithCount: (_holds("dst", lambda word: _elements(word, "src") + 1, _DST),),
    SequenceBounds: (_holds("dst", lambda word: 2 * _elements(word, "src"), _DST),),
    TopK: (_groups(16), _same("indices", "dst")),
    TensorPartitionReduce: (_same("src", "dst"),),
    CopyPredicated: (_same("src", "predicate", "dst"),),
    SelectReduce: (_same("src", "predicate", "dst"), _ONE),
    RangeSelect: (_same("src", "dst"), _ONE, _comparison("op0", "op1")),
    TensorScalarReduce: (_same("src", "dst"), _ONE),
    TensorScalarCumulative: (_same("src", "dst"), _ONE),
    Exponential: (_same("src", "dst"), _ONE),
    Max8: (_EIGHT,),
    FindIndex8: (_EIGHT, _VALUES),
    MatchReplace8: (_same("src", "dst"), _VALUES, _holds("indices", 8, "Eight places are stored.")),
    BnStats: (_holds("dst", 6, "dst has six elements."),),
    BnAggregate: (_holds("dst", 2, "dst has two elements."), Rule("src holds triples.", "documented", "nki.isa pages",
                                                                  _triples)),
    Dropout: (_same("src", "dst"),),
    QuantizeMx: (_groups(32), _same("scale", "dst"), _holds("src", lambda word: 4 * _elements(word, "dst"), _DST)),
    MatMulMx: (_groups(32), _same("src", "src_scale", "dst"), _same("stationary", "stationary_scale"),
               Rule("dst is in PSUM.", "documented", "nki.isa pages", _psum)),
    Activate2: (_same("src", "dst"),),
    IndirectRead: (_SHARED,),
    IndirectWrite: (_SHARED, _same("src", "predicate")),
    RegisterLoad: (_holds("src", 1, "src has one element."),
                   Rule("One partition is read.", "ours", "ours", _one_partition)),
}
