"""DMA words: the queue trigger of gen2, the direct 2-D copy of gen3 and its loaded form. Source: isa.md 8, 9."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from formats.dtypes import DTYPES, Dtype
from formats.isa.declared import Declared
from formats.isa.field import Enumeration, Integer, Text
from formats.isa.instruction import Instruction
from formats.isa.operand import Access, DmaAccess, DmaAddress, DmaAddressField, DmaPattern, DmaPatternField
from formats.isa.rule import KNOWN_DTYPES, Context, Finding, Rule
from formats.isa.signals import HEADER_SLOT, Raise
from formats.isa.syntax import SPELLINGS, Bare, Formatter, Item, Key, Literal, Omitter, Tokens, parse_dtype
from formats.isa.syntax_operands import DmaAddressItem, DmaPatternItem
from formats.neuron_core import DMA_ENGINES, PARTITIONS, SBUF_PARTITION_STRIDE

__all__ = ["DmaDirect2d", "PseudoDmaDirect2d", "PseudoDmaTrigger"]


def _queue_name(word: PseudoDmaTrigger, context: Context) -> Iterator[Finding]:
    if not word.queue or not word.queue.isprintable() or "\\" in word.queue:
        yield "queue", f"{word.queue!r} is no name"


class PseudoDmaTrigger(Instruction):
    """Start the DMA block that the engine's JSON lists under this queue and id."""

    __slots__ = ()
    BESIDE = True
    NAME = "PSEUDO_DMA_TRIGGER"
    OPCODE = 0xC1
    ENGINES = ("Pool", "SP", "Activation", "PE", "DVE")
    CITE = "isa.md 8 (c1)"
    CARRIED_OUT = "a DMA word: the loader turns it into a doorbell, emulator.dma moves the data"
    queue = Text(12, 36, "name of the queue")
    block_id = Integer(48, 4, "id of the block in the engine's JSON")
    SYNTAX = (Bare("queue"), Key("block_id"))
    RULES = (Rule("The queue has a name.", "observed", "isa.md 8 (c1)", _queue_name),)


# SBUF as DMA sees it: its partitions at multiples of the stride, which is at least what a partition holds.
ON_CHIP_BYTES = PARTITIONS * SBUF_PARTITION_STRIDE


def _dma_sides(word: _Direct2d) -> Iterator[tuple[str, DmaAddress, DmaPattern, int, int]]:
    yield "src", word.src, word.src_pattern, word.src_element_size, word.src_dtype
    yield "dst", word.dst, word.dst_pattern, word.dst_element_size, word.dst_dtype


def _dma_elements(word: _Direct2d, context: Context) -> Iterator[Finding]:
    totals = []
    for side, _, pattern, size, dtype in _dma_sides(word):
        if dtype not in KNOWN_DTYPES:
            yield f"{side}_dtype", f"element type {int(dtype):#x} is not known"
        elif not size or size % KNOWN_DTYPES[dtype]:
            yield f"{side}_element_size", f"{size} bytes are not whole elements of {DTYPES[Dtype(dtype)].spelling}"
        elif not all(pattern.counts):
            yield f"{side}_pattern", f"a dimension of zero elements in {list(pattern.counts)}"
        else:
            totals.append(prod(pattern.counts) * size // KNOWN_DTYPES[dtype])
    if len(totals) == 2 and totals[0] != totals[1]:
        yield "dst_pattern", f"{totals[0]} elements are read, {totals[1]} are written"


def _dma_memory(word: _Direct2d, context: Context) -> Iterator[Finding]:
    for side, address, pattern, size, _ in _dma_sides(word):
        # variable 0 is `SB`, on-chip memory (isa.md 8); how long any other is only def.json knows
        if address.form == "variable" and address.index == 0:
            moves = [step * (count - 1) for step, count in zip(*pattern, strict=True) if count]
            low = address.offset + sum(m for m in moves if m < 0)
            high = address.offset + sum(m for m in moves if m > 0) + size
            if low < 0 or high > ON_CHIP_BYTES:
                yield side, f"offsets {low:#x} to {high:#x} leave on-chip memory"


EQUAL_SIDES = Rule(
    "Both sides have known element types and equally many whole elements.", "observed", "isa.md 8", _dma_elements
)


class _Direct2d(Instruction):
    """What the pseudo word and its loaded form share."""

    __slots__ = ()
    ENGINES = ("Pool", "SP", "Activation")
    GENERATIONS = ("gen3", "gen4")
    CITE = "isa.md 8 (d4, b8)"
    unknown_12 = Integer(12, 1, "unknown; 0", provenance="inferred")
    semaphore = Integer(13, 1, "semaphore raised on completion")
    semaphore_increment = Integer(14, 1, "increment, one per ring", default=DMA_ENGINES)
    src = DmaAddressField(16, "source address")
    src_pattern = DmaPatternField(24, "source steps and counts", unit="bytes")
    src_element_size = Integer(36, 2, "contiguous bytes of the source", unit="bytes")
    dst = DmaAddressField(40, "destination address")
    dst_pattern = DmaPatternField(48, "destination steps and counts", unit="bytes")
    dst_element_size = Integer(60, 2, "contiguous bytes of the destination", unit="bytes")
    src_dtype = Enumeration(62, Dtype, "element type of the source")
    dst_dtype = Enumeration(63, Dtype, "element type of the destination; another type casts")
    SYNC = (HEADER_SLOT, Raise("semaphore", "semaphore_increment"))
    RULES = (
        EQUAL_SIDES,
        Rule("On-chip addresses stay inside the 128 partitions.", "observed", "isa.md 4, 8", _dma_memory),
    )

    @property
    def reads(self) -> tuple[Access | DmaAccess, ...]:
        return (DmaAccess("src", self.src, self.src_pattern, self.src_element_size, self.src_dtype),)

    @property
    def writes(self) -> tuple[Access | DmaAccess, ...]:
        return (DmaAccess("dst", self.dst, self.dst_pattern, self.dst_element_size, self.dst_dtype),)


class _CastTypes(Item):
    """`in_dtype=… out_dtype=…` where the two differ; equal types are not printed."""

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return ("src_dtype", "dst_dtype")

    def form(self, cls: type[Declared]) -> str:
        return "[in_dtype=DTYPE out_dtype=DTYPE]"

    def bind(self, cls: type[Declared]) -> Formatter:
        def text(raw: bytes) -> str:
            a, b = raw[62], raw[63]
            return "" if a == b else f"in_dtype={SPELLINGS[a]} out_dtype={SPELLINGS[b]}"

        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        names = self.covers(cls)
        # two zeros are the default, which reads back without being printed
        return lambda raw: names if raw[62] == raw[63] != 0 else ()

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        for key, field in (("in_dtype", "src_dtype"), ("out_dtype", "dst_dtype")):
            text = tokens.take(key)
            if text is not None:
                values[field] = parse_dtype(text, key)


def _syntax(*, hex_table: bool) -> tuple[Item, ...]:
    return (
        Key("semaphore"),
        Key("semaphore_increment", "sem_increment"),
        Key("src_element_size", "src_elem_size"),
        Key("dst_element_size", "dst_elem_size"),
        DmaPatternItem("src_pattern"),
        DmaPatternItem("dst_pattern"),
        DmaAddressItem("src", hex_table=hex_table),
        DmaAddressItem("dst", hex_table=hex_table),
        _CastTypes(),
    )


class PseudoDmaDirect2d(_Direct2d):
    """Copy two dimensions of contiguous runs between memories, addresses by variable or table."""

    __slots__ = ()
    BESIDE = True
    NAME = "PSEUDO_DMA_DIRECT2D"
    OPCODE = 0xD4
    CARRIED_OUT = "a DMA word: the loader resolves it, emulator.dma moves the data"
    SYNTAX = (Literal("dge_op=DIRECT2D"), *_syntax(hex_table=False))


class DmaDirect2d(_Direct2d):
    """Copy two dimensions of contiguous runs between memories: the loaded form, variables resolved."""

    __slots__ = ()
    BESIDE = True
    NAME = "DMA_DIRECT2D"
    OPCODE = 0xB8
    CARRIED_OUT = "a DMA word: emulator.dma moves the data"
    SYNTAX = (*_syntax(hex_table=True), Literal("compute_op=NONE"))
