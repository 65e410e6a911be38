"""Extension word of DMA by index: gather, scatter and dynamic start addresses. Every bit here is ours.

NKI names the operations (hardware.md 5.5, `dma_copy` with an offset from SBUF); how descriptors are made from indices
on the device is not public.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import prod
from typing import Any, Unpack

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa.declared import Declared
from formats.isa.dma import EQUAL_SIDES
from formats.isa.extension import ExtensionWord
from formats.isa.field import BitFlag, Enumeration, Facts, Field, Integer, Json
from formats.isa.operand import DmaAddressField, DmaPattern, Tile
from formats.isa.rule import Context, Finding, Rule
from formats.isa.signals import HEADER_SLOT, Raise
from formats.isa.syntax import Formatter, Item, Key, Tokens
from formats.isa.syntax_operands import DmaAddressItem, PatternItem
from formats.neuron_core import DMA_ENGINES

__all__ = ["DmaIndirect"]

_DIMS = 4
# Digits are counted because int() refuses thousands of them with an error that is not ours.
_TEXT = re.compile(r"\[(-?\d{1,12}(?:,-?\d{1,12})*)\]\[(\d{1,12}(?:,\d{1,12})*)\]", re.ASCII)


class WidePattern(Field[DmaPattern]):
    """Four steps (bytes) and four counts of one side, innermost first; a dimension that is not used has count 1."""

    kind = "dma pattern"

    def __init__(self, offset: int, doc: str, **facts: Unpack[Facts]) -> None:
        facts.setdefault("default", DmaPattern((0,) * _DIMS, (0,) * _DIMS))  # type: ignore[arg-type]
        super().__init__(offset, 8 * _DIMS, doc, **facts)
        self.struct = struct.Struct(f"<{_DIMS}i{_DIMS}I")

    def read(self, raw: bytes) -> DmaPattern:
        values = self.struct.unpack_from(raw, self.offset)
        return DmaPattern(values[:_DIMS], values[_DIMS:])

    def render(self, value: DmaPattern) -> Json:
        return {"steps": list(value.steps), "counts": list(value.counts)}

    def write(self, word: bytearray, value: Any) -> None:
        try:
            steps, counts = value
            self.struct.pack_into(word, self.offset, *steps, *counts)
        except (TypeError, ValueError, struct.error):
            raise self.refuse(f"{_DIMS} steps and {_DIMS} counts of 32 bits", value) from None


class WidePatternItem(Item):
    """`key=[steps][counts]`."""

    def __init__(self, field: str) -> None:
        self.field = field

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return (self.field,)

    def form(self, cls: type[Declared]) -> str:
        return f"{self.field}=[STEP,...][COUNT,...]"

    def bind(self, cls: type[Declared]) -> Formatter:
        read, prefix = cls.FIELDS[self.field].read, self.field

        def text(raw: bytes) -> str:
            steps, counts = read(raw)
            return f"{prefix}=[{','.join(map(str, steps))}][{','.join(map(str, counts))}]"

        return text

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        word = tokens.need(self.field)
        match = _TEXT.fullmatch(word)
        steps, counts = (tuple(map(int, part.split(","))) for part in match.groups()) if match else ((), ())
        if len(steps) != _DIMS or len(counts) != _DIMS:
            raise FormatError(
                "not a DMA pattern", field=self.field, expected=f"[{_DIMS} steps][{_DIMS} counts]", got=repr(word)
            )
        values[self.field] = DmaPattern(steps, counts)  # type: ignore[arg-type]


def _enough_indices(word: DmaIndirect, context: Context) -> Iterator[Finding]:
    there = word.channels * prod(word.index.counts)
    if not 1 <= word.rows <= there:
        yield "rows", f"{word.rows} rows and {there} indices"


class DmaIndirect(ExtensionWord):
    """Copy runs by DMA where one side lies at indices that the engine reads from SBUF when it starts the transfer.

    Row r of the indirect side begins at its address plus index r times `index_step` bytes, row r of the other side at
    its address plus r times `row_step`; inside a row both follow their patterns. Indices are counted down the
    partitions of the index tile first, then along its free dimension. A run that leaves the variable is a fault, or is
    left out with `skip`; `accumulate` adds to what the destination holds, in fp32.
    """

    __slots__ = ()
    NAME = "DMA_INDIRECT"
    CODE, SIZE = 16, 192
    ENGINES = ("Pool", "SP", "Activation")
    CARRIED_OUT = "a DMA word: emulator.dma reads its indices and moves the data"
    DECIDES = True
    semaphore = Integer(16, 1, "semaphore raised on completion")
    semaphore_increment = Integer(17, 1, "increment, one per ring", default=DMA_ENGINES)
    src_dtype = Enumeration(18, Dtype, "element type of the source")
    dst_dtype = Enumeration(19, Dtype, "element type of the destination; another type casts")
    index_dtype = Enumeration(20, Dtype, "element type of the indices", default=Dtype.INT32)
    channels = Integer(21, 1, "partitions of the index tile", unit="partitions", default=1)
    scatter = BitFlag(22, 0, "the destination is indirect, not the source")
    skip = BitFlag(22, 1, "leave out runs that are out of bounds")
    accumulate = BitFlag(22, 2, "add to the destination")
    rows = Integer(24, 4, "rows, one index each", default=1)
    index_step = Integer(28, 4, "bytes that one index counts", unit="bytes", signed=True)
    src = DmaAddressField(32, "source address")
    dst = DmaAddressField(40, "destination address")
    src_element_size = Integer(48, 4, "contiguous bytes of the source", unit="bytes")
    dst_element_size = Integer(52, 4, "contiguous bytes of the destination", unit="bytes")
    row_step = Integer(56, 4, "bytes from row to row of the other side", unit="bytes", signed=True)
    index = Tile(64, "indices", role="read", dtype="index_dtype")
    src_pattern = WidePattern(112, "source steps and counts inside a row", unit="bytes")
    dst_pattern = WidePattern(144, "destination steps and counts inside a row", unit="bytes")
    SYNC = (HEADER_SLOT, Raise("semaphore", "semaphore_increment"))
    SYNTAX = (
        Key("semaphore"),
        Key("semaphore_increment", "sem_increment"),
        Key("scatter", optional=True),
        Key("skip", optional=True),
        Key("accumulate", optional=True),
        Key("rows"),
        Key("index_step"),
        Key("row_step"),
        PatternItem("index"),
        Key("channels"),
        Key("src_element_size", "src_elem_size"),
        Key("dst_element_size", "dst_elem_size"),
        WidePatternItem("src_pattern"),
        WidePatternItem("dst_pattern"),
        DmaAddressItem("src", hex_table=False),
        DmaAddressItem("dst", hex_table=False),
        Key("src_dtype"),
        Key("dst_dtype"),
    )
    RULES = (EQUAL_SIDES, Rule("There is an index for each row.", "ours", "ours", _enough_indices))
