"""Extension word of DMA by index: gather, scatter and dynamic start addresses. Every bit here is ours.

NKI names the operations (hardware.md 5.5, `dma_copy` with an offset from SBUF); how descriptors are made from indices
on the device is not public.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa.extension import _Extension
from formats.isa.field import BitFlag, Enumeration, Field, Integer
from formats.isa.instruction import EXTENSION_OPCODE
from formats.isa.operand import DmaAddressField, DmaPattern, Pattern
from formats.isa.syntax import Formatter, Item, Key, Tokens
from formats.isa.syntax_operands import DmaAddressItem, PatternItem

if TYPE_CHECKING:
    from formats.isa.instruction import Instruction

__all__ = ["DmaIndirect"]

_DIMS = 4
_TEXT = re.compile(r"\[(-?\d+(?:,-?\d+)*)\]\[(\d+(?:,\d+)*)\]")


class WidePattern(Field[DmaPattern]):
    """Four steps (bytes) and four counts of one side, innermost first; a dimension that is not used has count 1."""

    kind = "dma pattern"

    def __init__(self, offset: int, doc: str, **facts: Any) -> None:
        super().__init__(offset, 8 * _DIMS, doc, **{"default": DmaPattern((0,) * _DIMS, (0,) * _DIMS), **facts})  # type: ignore[arg-type]
        self.struct = struct.Struct(f"<{_DIMS}i{_DIMS}I")

    def read(self, raw: bytes) -> DmaPattern:
        values = self.struct.unpack_from(raw, self.offset)
        return DmaPattern(values[:_DIMS], values[_DIMS:])

    def render(self, value: DmaPattern) -> Any:
        return {"steps": list(value.steps), "counts": list(value.counts)}

    def write(self, word: bytearray, value: Any) -> None:
        try:
            steps, counts = value
            self.struct.pack_into(word, self.offset, *steps, *counts)
        except (TypeError, ValueError, struct.error):
            raise self.refuse(f"{_DIMS} steps and {_DIMS} counts of 32 bits", value) from None


class _WidePatternItem(Item):
    """`key=[steps][counts]`."""

    def __init__(self, field: str) -> None:
        self.field = field

    def covers(self, cls: type[Instruction]) -> tuple[str, ...]:
        return (self.field,)

    def form(self, cls: type[Instruction]) -> str:
        return f"{self.field}=[STEP,...][COUNT,...]"

    def bind(self, cls: type[Instruction]) -> Formatter:
        read, prefix = cls.FIELDS[self.field].read, self.field

        def text(raw: bytes) -> str:
            steps, counts = read(raw)
            return f"{prefix}=[{','.join(map(str, steps))}][{','.join(map(str, counts))}]"

        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        word = tokens.need(self.field)
        match = _TEXT.fullmatch(word)
        steps, counts = (tuple(map(int, part.split(","))) for part in match.groups()) if match else ((), ())
        if len(steps) != _DIMS or len(counts) != _DIMS:
            raise FormatError("not a DMA pattern", field=self.field, expected=f"[{_DIMS} steps][{_DIMS} counts]",
                              got=repr(word))
        values[self.field] = DmaPattern(steps, counts)  # type: ignore[arg-type]


class DmaIndirect(_Extension):
    """Copy runs by DMA where one side lies at indices that the engine reads from SBUF when it starts the transfer.

    Row r of the indirect side begins at its address plus index r times `index_step` bytes, row r of the other side at
    its address plus r times `row_step`; inside a row both follow their patterns. Indices are counted down the
    partitions of the index tile first, then along its free dimension. A run that leaves the variable is a fault, or is
    left out with `skip`; `accumulate` adds to what the destination holds, in fp32.
    """

    __slots__ = ()
    NAME = "DMA_INDIRECT"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 16, 192
    ENGINES = ("Pool", "SP", "Activation")
    semaphore = Integer(16, 1, "semaphore raised on completion", provenance="ours")
    semaphore_increment = Integer(17, 1, "increment, one per ring", default=16, provenance="ours")
    src_dtype = Enumeration(18, Dtype, "element type of the source", provenance="ours")
    dst_dtype = Enumeration(19, Dtype, "element type of the destination; another type casts", provenance="ours")
    index_dtype = Enumeration(20, Dtype, "element type of the indices", default=Dtype.INT32, provenance="ours")
    channels = Integer(21, 1, "partitions of the index tile", unit="partitions", default=1, provenance="ours")
    scatter = BitFlag(22, 0, "the destination is indirect, not the source", provenance="ours")
    skip = BitFlag(22, 1, "leave out runs that are out of bounds", provenance="ours")
    accumulate = BitFlag(22, 2, "add to the destination", provenance="ours")
    rows = Integer(24, 4, "rows, one index each", default=1, provenance="ours")
    index_step = Integer(28, 4, "bytes that one index counts", unit="bytes", signed=True, provenance="ours")
    src = DmaAddressField(32, "source address", provenance="ours")
    dst = DmaAddressField(40, "destination address", provenance="ours")
    src_element_size = Integer(48, 4, "contiguous bytes of the source", unit="bytes", provenance="ours")
    dst_element_size = Integer(52, 4, "contiguous bytes of the destination", unit="bytes", provenance="ours")
    row_step = Integer(56, 4, "bytes from row to row of the other side", unit="bytes", signed=True, provenance="ours")
    index = Pattern(64, 5, "indices", role="read", dtype="index_dtype", partitions="channels", wide=True,
                    provenance="ours")
    src_pattern = WidePattern(112, "source steps and counts inside a row", unit="bytes", provenance="ours")
    dst_pattern = WidePattern(144, "destination steps and counts inside a row", unit="bytes", provenance="ours")
    SYNTAX = (Key("semaphore"), Key("semaphore_increment", "sem_increment"), Key("scatter", optional=True),
              Key("skip", optional=True), Key("accumulate", optional=True), Key("rows"), Key("index_step"),
              Key("row_step"), PatternItem("index"), Key("channels"), Key("src_element_size", "src_elem_size"),
              Key("dst_element_size", "dst_elem_size"), _WidePatternItem("src_pattern"),
              _WidePatternItem("dst_pattern"), DmaAddressItem("src", hex_table=False),
              DmaAddressItem("dst", hex_table=False), Key("src_dtype"), Key("dst_dtype"))
