"""DMA words: the queue trigger of gen2, the direct 2-D copy of gen3 and its loaded form. Source: isa.md 8, 9."""

from __future__ import annotations

from typing import Any

from formats.dtypes import Dtype
from formats.isa.field import Enumeration, Integer, Text
from formats.isa.instruction import Instruction
from formats.isa.operand import Access, DmaAccess, DmaAddressField, DmaPatternField
from formats.isa.syntax import SPELLINGS, Bare, Formatter, Item, Key, Literal, Omitter, Tokens, parse_dtype
from formats.isa.syntax_operands import DmaAddressItem, DmaPatternItem

__all__ = ["DmaDirect2d", "PseudoDmaDirect2d", "PseudoDmaTrigger"]


class PseudoDmaTrigger(Instruction):
    """Start the DMA block that the engine's JSON lists under this queue and id."""

    __slots__ = ()
    NAME = "PSEUDO_DMA_TRIGGER"
    OPCODE = 0xC1
    ENGINES = ("Pool", "SP", "Activation", "PE", "DVE")
    CITE = "isa.md 8 (c1)"
    queue = Text(12, 36, "name of the queue")
    block_id = Integer(48, 4, "id of the block in the engine's JSON")
    SYNTAX = (Bare("queue"), Key("block_id"))


class _Direct2d(Instruction):
    """What the pseudo word and its loaded form share."""

    __slots__ = ()
    ENGINES = ("Pool", "SP", "Activation")
    GENERATIONS = ("gen3", "gen4")
    CITE = "isa.md 8 (d4, b8)"
    unknown_12 = Integer(12, 1, "unknown; 0", provenance="inferred")
    semaphore = Integer(13, 1, "semaphore raised on completion")
    semaphore_increment = Integer(14, 1, "increment, one per ring", default=16)
    src = DmaAddressField(16, "source address")
    src_pattern = DmaPatternField(24, "source steps and counts", unit="bytes")
    src_element_size = Integer(36, 2, "contiguous bytes of the source", unit="bytes")
    dst = DmaAddressField(40, "destination address")
    dst_pattern = DmaPatternField(48, "destination steps and counts", unit="bytes")
    dst_element_size = Integer(60, 2, "contiguous bytes of the destination", unit="bytes")
    src_dtype = Enumeration(62, Dtype, "element type of the source")
    dst_dtype = Enumeration(63, Dtype, "element type of the destination; another type casts")

    @property
    def reads(self) -> tuple[Access | DmaAccess, ...]:
        return (DmaAccess("src", self.src, self.src_pattern, self.src_element_size, self.src_dtype),)

    @property
    def writes(self) -> tuple[Access | DmaAccess, ...]:
        return (DmaAccess("dst", self.dst, self.dst_pattern, self.dst_element_size, self.dst_dtype),)


class _CastTypes(Item):
    """`in_dtype=… out_dtype=…` where the two differ; equal types are not printed."""

    def covers(self, cls: type[Instruction]) -> tuple[str, ...]:
        return ("src_dtype", "dst_dtype")

    def form(self, cls: type[Instruction]) -> str:
        return "[in_dtype=DTYPE out_dtype=DTYPE]"

    def bind(self, cls: type[Instruction]) -> Formatter:
        def text(raw: bytes) -> str:
            a, b = raw[62], raw[63]
            return "" if a == b else f"in_dtype={SPELLINGS[a]} out_dtype={SPELLINGS[b]}"
        return text

    def omits(self, cls: type[Instruction]) -> Omitter | None:
        names = self.covers(cls)
        return lambda raw: names if raw[62] == raw[63] != 0 else ()

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        for key, field in (("in_dtype", "src_dtype"), ("out_dtype", "dst_dtype")):
            text = tokens.take(key)
            if text is not None:
                values[field] = parse_dtype(text, key)


def _syntax(*, hex_table: bool) -> tuple[Item, ...]:
    return (Key("semaphore"), Key("semaphore_increment", "sem_increment"), Key("src_element_size", "src_elem_size"),
            Key("dst_element_size", "dst_elem_size"), DmaPatternItem("src_pattern"), DmaPatternItem("dst_pattern"),
            DmaAddressItem("src", hex_table=hex_table), DmaAddressItem("dst", hex_table=hex_table), _CastTypes())


class PseudoDmaDirect2d(_Direct2d):
    """Copy two dimensions of contiguous runs between memories, addresses by variable or table."""

    __slots__ = ()
    NAME = "PSEUDO_DMA_DIRECT2D"
    OPCODE = 0xD4
    SYNTAX = (Literal("dge_op=DIRECT2D"), *_syntax(hex_table=False))


class DmaDirect2d(_Direct2d):
    """Copy two dimensions of contiguous runs between memories: the loaded form, variables resolved."""

    __slots__ = ()
    NAME = "DMA_DIRECT2D"
    OPCODE = 0xB8
    SYNTAX = (*_syntax(hex_table=True), Literal("compute_op=NONE"))
