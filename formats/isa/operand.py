"""Operands: access patterns over SBUF and PSUM, pointers to per-partition scalars, DMA addresses and patterns."""

from __future__ import annotations

import struct
from typing import Any, Unpack

from formats.dtypes import Dtype
from formats.isa.field import BitFlag, Facts, Field, Json
from formats.named_tuple import NamedTuple

__all__ = [
    "Access",
    "AccessPattern",
    "DmaAccess",
    "DmaAddress",
    "DmaAddressField",
    "DmaPattern",
    "DmaPatternField",
    "Pattern",
    "Pointer",
    "Tile",
]


class AccessPattern(NamedTuple):
    """Address and per-dimension steps and counts of a tile inside each partition, innermost dimension first.

    `address` is the engine address of the first element (partition included), `steps` are in elements of the operand's
    dtype. Source: isa.md 4.
    """

    address: int
    steps: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Return the elements touched in each partition."""
        total = 1
        for count in self.counts:
            total *= count
        return total


class Access(NamedTuple):
    """One access of an instruction to on-chip memory."""

    operand: str
    pattern: AccessPattern
    dtype: int
    partitions: int


class DmaAddress(NamedTuple):
    """A DMA address: form `variable` (var_id, byte offset), `table` (index, offset) or `absolute` (0, address)."""

    form: str
    index: int  # type: ignore[assignment]  # a tuple's own index() is never wanted here
    offset: int


class DmaPattern(NamedTuple):
    """Two outer dimensions of a direct DMA, in bytes; each element is one contiguous run. Source: isa.md 8."""

    steps: tuple[int, int]
    counts: tuple[int, int]


class DmaAccess(NamedTuple):
    """One side of a direct DMA."""

    operand: str
    address: DmaAddress
    pattern: DmaPattern
    element_size: int
    dtype: int


class Pattern(Field[AccessPattern]):
    """An access-pattern operand; `dtype` and `partitions` name the fields that complete it.

    `role` is read, write, readwrite or remote. `lanes` repeats over the partitions, and its entries of 255 stand for
    those that the word leaves alone: a tuple, or the name of the field that holds it.
    """

    kind = "pattern"

    def __init__(
        self,
        offset: int,
        dims: int,
        doc: str,
        *,
        role: str,
        dtype: str,
        partitions: str,
        wide: bool = False,
        lanes: tuple[int, ...] | str = (),
        **facts: Unpack[Facts],
    ) -> None:
        self.struct = struct.Struct(f"<I{dims}i{dims}I" if wide else f"<I{dims}h{dims}H")
        unused = AccessPattern(0, (0,) * dims, (0,) * dims)
        facts.setdefault("default", unused)
        super().__init__(offset, self.struct.size, doc, **facts)
        self.dims, self.role, self.dtype, self.partitions, self.wide = dims, role, dtype, partitions, wide
        self.lanes = lanes

    def read(self, raw: bytes) -> AccessPattern:
        values = self.struct.unpack_from(raw, self.offset)
        dims = self.dims
        return AccessPattern(values[0], values[1 : 1 + dims], values[1 + dims :])

    def write(self, word: bytearray, value: Any) -> None:
        try:
            address, steps, counts = value
        except (TypeError, ValueError):
            raise self.refuse("(address, steps, counts)", value) from None
        if len(steps) != self.dims or len(counts) != self.dims:
            raise self.refuse(f"{self.dims} dimensions", value)
        try:
            self.struct.pack_into(word, self.offset, address, *steps, *counts)
        except struct.error:
            bits = 32 if self.wide else 16
            raise self.refuse(f"an address of 32 bits, steps and counts of {bits}", value) from None

    def render(self, value: AccessPattern) -> Json:
        return {"address": value.address, "steps": list(value.steps), "counts": list(value.counts)}

    def fits(self, steps: tuple[int, ...], counts: tuple[int, ...]) -> bool:
        """Return whether a pattern of any depth up to `dims` can be encoded here."""
        step_limit, count_limit = (1 << 31, 1 << 32) if self.wide else (1 << 15, 1 << 16)
        return (
            len(counts) <= self.dims
            and all(-step_limit <= s < step_limit for s in steps)
            and all(0 < c < count_limit for c in counts)
        )

    def enabled(self, raw: bytes) -> bool:
        """Return whether the word uses the operand at all; counts that are all zero mean that it does not."""
        # An address of 0 is the first byte of SBUF, steps of 0 repeat one element: neither says that nothing is there.
        counts = self.offset + 4 + (4 if self.wide else 2) * self.dims
        return any(raw[counts : self.offset + self.size])


# Four bytes of address, five steps and five counts of four bytes each: 44 bytes. Tiles of a word follow one another at
# offsets 32, 76, 120, 164 and 208.
class Tile(Pattern):
    """A pattern of an extension word: five dimensions, steps and counts of 32 bits."""

    def __init__(
        self,
        offset: int,
        doc: str,
        *,
        role: str,
        dtype: str,
        partitions: str = "channels",
        lanes: tuple[int, ...] | str = (),
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(offset, 5, doc, role=role, dtype=dtype, partitions=partitions, wide=True, lanes=lanes, **facts)


class Pointer(Field[int]):
    """Address of one value per partition; in use while the flag field (if any) is set, or clear when `inverted`."""

    kind = "pointer"
    lanes: tuple[int, ...] | str = ()

    def __init__(
        self,
        offset: int,
        doc: str,
        *,
        dtype: str | Dtype,
        partitions: str,
        flag: BitFlag | Field[int] | None = None,
        inverted: bool = False,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(offset, 4, doc, **facts)
        self.role, self.dtype, self.partitions, self.flag, self.inverted = "read", dtype, partitions, flag, inverted
        self._unpack = struct.Struct("<I").unpack_from

    def read(self, raw: bytes) -> int:
        return self._unpack(raw, self.offset)[0]  # type: ignore[no-any-return]

    def write(self, word: bytearray, value: object) -> None:
        if isinstance(value, AccessPattern):
            value = value.address
        if not isinstance(value, int) or not 0 <= value < 1 << 32:
            raise self.refuse("an address of 32 bits", value)
        struct.pack_into("<I", word, self.offset, value)
        if self.flag is not None:
            self.flag.write(word, 0 if self.inverted else 1)

    def enabled(self, raw: bytes) -> bool:
        """Return whether the word uses the pointer."""
        return self.flag is None or bool(self.flag.read(raw)) != self.inverted


# by the top nibble of the high word (isa.md 8); any other nibble belongs to a 64-bit device address
_FORMS = {0: "absolute", 1: "variable", 2: "table"}
_FORM_CODES = {name: code for code, name in _FORMS.items()}


class DmaAddressField(Field[DmaAddress]):
    """A DMA address of two 32-bit words, low first. Source: isa.md 8."""

    kind = "dma address"

    def __init__(self, offset: int, doc: str, **facts: Unpack[Facts]) -> None:
        facts.setdefault("default", DmaAddress("absolute", 0, 0))
        super().__init__(offset, 8, doc, **facts)

    def read(self, raw: bytes) -> DmaAddress:
        low, high = struct.unpack_from("<II", raw, self.offset)
        form = _FORMS.get(high >> 28, "absolute")
        if form == "absolute":
            return DmaAddress(form, 0, high << 32 | low)
        return DmaAddress(form, high & 0x0FFFFFFF, low)

    def render(self, value: DmaAddress) -> Json:
        return {"form": value.form, "index": value.index, "offset": value.offset}

    def write(self, word: bytearray, value: Any) -> None:
        try:
            form, index, offset = value
        except (TypeError, ValueError):
            raise self.refuse("(form, index, offset)", value) from None
        limit = 1 << 64 if form == "absolute" else 1 << 32
        if form not in _FORM_CODES or not 0 <= index < 1 << 28 or not 0 <= offset < limit:
            raise self.refuse("a variable, table or absolute address", value)
        # The top nibble tells the form, so an absolute address must not spell another one.
        if form == "absolute" and (index or offset >> 60 in (1, 2)):
            raise self.refuse("an absolute address below 1 << 60", value)
        if form == "absolute":
            word[self.offset : self.offset + 8] = offset.to_bytes(8, "little")
        else:
            struct.pack_into("<II", word, self.offset, offset, _FORM_CODES[form] << 28 | index)


class DmaPatternField(Field[DmaPattern]):
    """Two steps (bytes) and two counts of a direct DMA, at two places of the word. Source: isa.md 8."""

    kind = "dma pattern"

    def __init__(self, offset: int, doc: str, **facts: Unpack[Facts]) -> None:
        facts.setdefault("default", DmaPattern((0, 0), (0, 0)))
        super().__init__(offset, 12, doc, **facts)
        self.struct = struct.Struct("<2i2H")

    def read(self, raw: bytes) -> DmaPattern:
        a, b, c, d = self.struct.unpack_from(raw, self.offset)
        return DmaPattern((a, b), (c, d))

    def render(self, value: DmaPattern) -> Json:
        return {"steps": list(value.steps), "counts": list(value.counts)}

    def write(self, word: bytearray, value: Any) -> None:
        try:
            steps, counts = value
            self.struct.pack_into(word, self.offset, *steps, *counts)
        except (TypeError, ValueError, struct.error):
            raise self.refuse("two steps of 32 bits and two counts of 16", value) from None
