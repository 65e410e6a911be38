"""Extension word of collectives: several ranks exchange data. Every bit here is ours.

The runtime turns the compiler's PSEUDO_TRIGGER_COLLECTIVE_2 into writes to CC-cores when it loads a program
(collectives.md 2); neither encoding is public.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from formats.dtypes import Dtype
from formats.isa.enums import AluOp, CollectiveKind
from formats.isa.extension import ExtensionWord
from formats.isa.extension_dma import WidePattern, WidePatternItem
from formats.isa.field import BitFlag, Enumeration, Integer
from formats.isa.operand import DmaAddressField
from formats.isa.rule import KNOWN_DTYPES, Context, Finding, Rule
from formats.isa.signals import HEADER_SLOT, Raise
from formats.isa.syntax import Key
from formats.isa.syntax_operands import DmaAddressItem
from formats.neuron_core import DMA_ENGINES

__all__ = ["Collective"]

# Four CC-cores a logical core of two, each with a stream (collectives.md 2); which operators reduce (collectives.md 1).
STREAMS = 4
_REDUCES = (AluOp.ADD, AluOp.MIN, AluOp.MAX)


def _whole_elements(word: Collective, context: Context) -> Iterator[Finding]:
    size = KNOWN_DTYPES.get(word.dtype, 0)
    if not size:
        yield "dtype", f"element type {int(word.dtype):#x} is not known"
        return
    for side, run, counts in (
        ("src", word.src_element_size, word.src_pattern.counts),
        ("dst", word.dst_element_size, word.dst_pattern.counts),
    ):
        if not run or run % size or not prod(counts):
            yield f"{side}_element_size", f"{prod(counts)} runs of {run} bytes are no elements of {size}"


def _has_groups(word: Collective, context: Context) -> Iterator[Finding]:
    if not word.groups_rows or not word.groups_columns:
        yield "groups_rows", f"a table of {word.groups_rows} x {word.groups_columns} ranks"
    if word.kind == CollectiveKind.PERMUTE and word.groups_columns != 2:
        yield "groups_columns", f"{word.groups_columns} ranks in a pair"


def _stream(word: Collective, context: Context) -> Iterator[Finding]:
    if word.stream >= STREAMS:
        yield "stream", f"{word.stream}, and there are {STREAMS}"


def _reduction(word: Collective, context: Context) -> Iterator[Finding]:
    if word.kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER) and word.reduce not in _REDUCES:
        yield "reduce", f"no reduction by {AluOp(word.reduce).name if word.reduce in set(AluOp) else int(word.reduce)}"


class Collective(ExtensionWord):
    """Give one collective of this rank to a stream of CC-cores; a semaphore says when this rank is through.

    `groups` are `groups_rows` replica groups of `groups_columns` 32-bit ranks, or of PERMUTE pairs of source and
    target; the rank takes part in the one that names it. Elements are counted in the order in which the patterns walk
    them, the dimension along which ranks follow one another outermost. `counts` is the table of a V form: rows of
    32-bit numbers, one for each rank of the group: elements sent, where they begin, elements received, where they go.
    RANK gives the number of this rank, RANK_IN_TURN that of the rank whose data turn `turn` of a ring works on.
    """

    __slots__ = ()
    NAME = "COLLECTIVE"
    CODE, SIZE = 18, 192
    ENGINES = ("Pool", "SP", "Activation")
    CARRIED_OUT = "a DMA word: CC-cores move the data (emulator.machine.ranks)"
    semaphore = Integer(16, 1, "semaphore raised when this rank is through")
    semaphore_increment = Integer(17, 1, "increment", default=DMA_ENGINES)
    dtype = Enumeration(18, Dtype, "element type", default=Dtype.FLOAT32)
    kind = Enumeration(19, CollectiveKind, "what is done", default=CollectiveKind.ALL_REDUCE)
    reduce = Enumeration(20, AluOp, "reduction", default=AluOp.ADD)
    stream = Integer(21, 1, "stream of CC-cores: collectives of one stream go one after the other")
    keeps_counts = BitFlag(22, 0, "received counts of a V form are known: they are not written back")
    has_places = BitFlag(22, 1, "a V form says where received elements go; else each rank has an equal slot")
    channel = Integer(23, 1, "channel of a ring")
    turn = Integer(24, 4, "turn of a ring")
    src = DmaAddressField(32, "source address")
    dst = DmaAddressField(40, "destination address")
    src_element_size = Integer(48, 4, "contiguous bytes of the source", unit="bytes")
    dst_element_size = Integer(52, 4, "contiguous bytes of the destination", unit="bytes")
    groups = DmaAddressField(56, "table of replica groups")
    groups_rows = Integer(64, 4, "replica groups, or pairs", default=1)
    groups_columns = Integer(68, 4, "ranks in each", default=1)
    counts = DmaAddressField(72, "table of a V form")
    src_pattern = WidePattern(112, "source steps and counts", unit="bytes")
    dst_pattern = WidePattern(144, "destination steps and counts", unit="bytes")
    SYNC = (HEADER_SLOT, Raise("semaphore", "semaphore_increment"))
    SYNTAX = (
        Key("semaphore"),
        Key("semaphore_increment", "sem_increment"),
        Key("kind"),
        Key("reduce"),
        Key("stream"),
        Key("channel"),
        Key("turn"),
        Key("keeps_counts", optional=True),
        Key("has_places", optional=True),
        Key("groups_rows"),
        Key("groups_columns"),
        Key("src_element_size", "src_elem_size"),
        Key("dst_element_size", "dst_elem_size"),
        WidePatternItem("src_pattern"),
        WidePatternItem("dst_pattern"),
        DmaAddressItem("src", hex_table=False),
        DmaAddressItem("dst", hex_table=False),
        DmaAddressItem("groups", hex_table=False),
        DmaAddressItem("counts", hex_table=False),
        Key("dtype"),
    )
    RULES = (
        Rule("Both sides hold whole elements of a known type.", "ours", "ours", _whole_elements),
        Rule("There is a group, and pairs have two ranks.", "ours", "ours", _has_groups),
        Rule("There are four streams.", "documented", "collectives.md 2", _stream),
        Rule("Reductions add, or take the least or the greatest.", "documented", "collectives.md 1", _reduction),
    )
