"""Fields of a word: where they lie, what they hold, and how they read and write it.

A field is a descriptor: on an instruction it reads the value out of the raw bytes, on the class it is the field itself.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Generic, Protocol, TypedDict, TypeVar, Unpack, overload

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = [
    "BitFlag",
    "Bits",
    "Bytes",
    "Enumeration",
    "Facts",
    "Field",
    "Float32",
    "Immediate",
    "Integer",
    "Json",
    "Nibble",
    "Text",
]

T = TypeVar("T")
Raw = bytes
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Facts(TypedDict, total=False):
    """What any field may say of itself besides its place and meaning."""

    unit: str
    cite: str
    provenance: str
    default: object
    alias: bool


class Bearer(Protocol):
    """What has fields: a word."""

    @property
    def raw(self) -> bytes:
        """Return the bytes."""
        ...


class Bits(NamedTuple):
    """A 32-bit immediate given as its integer value instead of as a float."""

    value: int


class Field(Generic[T]):
    """One declared field of a word: byte offset, size in bytes, meaning, source.

    `provenance` is documented, observed, inferred or ours; a field that names none is ours where its class is, else
    observed. `default` is what an unset field encodes to.
    """

    kind = "field"

    def __init__(
        self,
        offset: int,
        size: int,
        doc: str,
        *,
        unit: str = "",
        cite: str = "",
        provenance: str = "",
        default: object = 0,
        alias: bool = False,
    ) -> None:
        self.offset, self.size, self.doc, self.unit = offset, size, doc, unit
        self.cite, self.provenance, self.default, self.alias = cite, provenance, default, alias
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.provenance = self.provenance or ("ours" if getattr(owner, "PROVENANCE", "") == "ours" else "observed")
        # worked out of `mask`, which kinds smaller than a byte override
        low = self.mask >> (8 * self.offset)
        self._shift = (low & -low).bit_length() - 1
        self._limit = low >> self._shift

    @overload
    def __get__(self, instance: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, instance: Bearer, owner: type) -> T: ...
    def __get__(self, instance: Bearer | None, owner: type) -> Field[T] | T:
        return self if instance is None else self.read(instance.raw)

    @property
    def mask(self) -> int:
        """Return the bits the field covers, as a mask over the little-endian word."""
        return ((1 << (8 * self.size)) - 1) << (8 * self.offset)

    def read(self, raw: Raw) -> T:
        """Return the value in `raw`."""
        raise TypeError(self.kind)

    def write(self, word: bytearray, value: object) -> None:
        """Put `value` into `word`; a value that does not fit is a FormatError."""
        raise TypeError(self.kind)

    def peek(self, raw: Raw) -> int:
        """Return the field's bits as one unsigned number, whatever they mean."""
        return int.from_bytes(raw[self.offset : self.offset + self.size], "little") >> self._shift & self._limit

    def poke(self, word: bytearray, bits: int) -> None:
        """Put back what `peek` gave; other fields keep their bits, flags that `write` would set too."""
        if not 0 <= bits <= self._limit:
            raise self.refuse(f"a number of {self._limit.bit_length()} bits", bits)
        here = slice(self.offset, self.offset + self.size)
        kept = int.from_bytes(word[here], "little") & ~(self._limit << self._shift)
        word[here] = (kept | bits << self._shift).to_bytes(self.size, "little")

    def render(self, value: T) -> Json:
        """Return a value of the field as JSON has it: numbers, strings, lists and objects only."""
        return value  # type: ignore[return-value]  # kinds whose values are more than that have their own

    def refuse(self, expected: str, got: object) -> FormatError:
        """Return the error for a value the field cannot hold."""
        return FormatError("value does not fit", field=self.name, expected=expected, got=repr(got))


_INTEGER_CODES = {
    (1, False): "B",
    (2, False): "H",
    (4, False): "I",
    (8, False): "Q",
    (1, True): "b",
    (2, True): "h",
    (4, True): "i",
    (8, True): "q",
}


class Integer(Field[int]):
    """An integer of 1, 2, 4 or 8 bytes; `known` are the values of a byte that mean something, where not all do."""

    kind = "integer"

    def __init__(
        self,
        offset: int,
        size: int,
        doc: str,
        *,
        signed: bool = False,
        known: range | None = None,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(offset, size, doc, **facts)
        self.signed, self.known = signed, known
        self.struct = struct.Struct("<" + _INTEGER_CODES[size, signed])
        self._unpack = self.struct.unpack_from

    @property
    def limits(self) -> tuple[int, int]:
        """Return the smallest and largest value."""
        bits = 8 * self.size
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.signed else (0, (1 << bits) - 1)

    def read(self, raw: Raw) -> int:
        return self._unpack(raw, self.offset)[0]  # type: ignore[no-any-return]

    def write(self, word: bytearray, value: object) -> None:
        low, high = self.limits
        if not isinstance(value, int) or not low <= value <= high:
            raise self.refuse(f"an integer from {low} to {high}", value)
        self.struct.pack_into(word, self.offset, value)


class Float32(Field[float]):
    """A single-precision number."""

    kind = "float32"
    _struct = struct.Struct("<f")

    def __init__(self, offset: int, doc: str, **facts: Unpack[Facts]) -> None:
        facts.setdefault("default", 0.0)
        super().__init__(offset, 4, doc, **facts)

    def read(self, raw: Raw) -> float:
        return self._struct.unpack_from(raw, self.offset)[0]  # type: ignore[no-any-return]

    def write(self, word: bytearray, value: object) -> None:
        try:
            self._struct.pack_into(word, self.offset, value)
        except (struct.error, OverflowError):
            raise self.refuse("a number of single precision", value) from None

    def render(self, value: float) -> Json:
        # JSON has no infinity and no NaN; their Python spelling is what float() reads back.
        return value if math.isfinite(value) else str(value)


class Immediate(Float32):
    """A 32-bit immediate: a float, or `Bits` when the flag field named by `integer` is set."""

    kind = "immediate"

    def __init__(self, offset: int, doc: str, *, integer: BitFlag, **facts: Unpack[Facts]) -> None:
        super().__init__(offset, doc, **facts)
        self.integer = integer

    def read(self, raw: Raw) -> float:
        if self.integer.read(raw):
            bits = int.from_bytes(raw[self.offset : self.offset + 4], "little")
            return Bits(bits)  # type: ignore[return-value]  # who wants the number has looked at the flag
        return super().read(raw)

    def write(self, word: bytearray, value: object) -> None:
        if isinstance(value, Bits):
            # signed and unsigned spellings of the same 32 bits are both welcome
            if not -(1 << 31) <= value.value < 1 << 32:
                raise self.refuse("an integer of 32 bits", value.value)
            word[self.offset : self.offset + 4] = (value.value & 0xFFFFFFFF).to_bytes(4, "little")
            self.integer.write(word, 1)
        else:
            super().write(word, value)
            self.integer.write(word, 0)

    def render(self, value: float) -> Json:
        return {"bits": value.value} if isinstance(value, Bits) else super().render(value)


class Enumeration(Field[int]):
    """One byte out of an enumeration; codes without a name read as plain integers."""

    kind = "enumeration"

    def __init__(self, offset: int, enum: type[IntEnum], doc: str, **facts: Unpack[Facts]) -> None:
        super().__init__(offset, 1, doc, **facts)
        self.enum = enum
        # A table and not `enum(code)`: a code without a name is no error while a word is only read, and a look-up costs
        # less.
        self.table: list[int] = list(range(256))
        for member in enum:
            self.table[member] = member

    def read(self, raw: Raw) -> int:
        return self.table[raw[self.offset]]

    def write(self, word: bytearray, value: object) -> None:
        word[self.offset] = self.code(value)

    def render(self, value: int) -> Json:
        return value.name if isinstance(value, IntEnum) else value

    def code(self, value: object) -> int:
        """Return the code of a member, a member's name or a plain number."""
        if isinstance(value, str):
            try:
                return self.enum[value]
            except KeyError:
                raise self.refuse("one of " + ", ".join(m.name for m in self.enum), value) from None
        if not isinstance(value, int) or not 0 <= value <= self.limit:
            raise self.refuse(f"a code from 0 to {self.limit}", value)
        return int(value)

    # the highest code that fits
    limit = 255


class Nibble(Enumeration):
    """Half a byte out of an enumeration."""

    kind = "nibble"
    limit = 15

    def __init__(self, offset: int, enum: type[IntEnum], doc: str, *, high: bool, **facts: Unpack[Facts]) -> None:
        super().__init__(offset, enum, doc, **facts)
        self.shift = 4 if high else 0

    @property
    def mask(self) -> int:
        return (15 << self.shift) << (8 * self.offset)

    def read(self, raw: Raw) -> int:
        return self.table[(raw[self.offset] >> self.shift) & 15]

    def write(self, word: bytearray, value: object) -> None:
        word[self.offset] = (word[self.offset] & ~(15 << self.shift) & 255) | (self.code(value) << self.shift)


class BitFlag(Field[int]):
    """A single bit."""

    kind = "bit"

    def __init__(self, offset: int, bit: int, doc: str, **facts: Unpack[Facts]) -> None:
        super().__init__(offset, 1, doc, **facts)
        self.bit = bit

    @property
    def mask(self) -> int:
        return (1 << self.bit) << (8 * self.offset)

    def read(self, raw: Raw) -> int:
        return (raw[self.offset] >> self.bit) & 1

    def write(self, word: bytearray, value: object) -> None:
        if value not in (0, 1):
            raise self.refuse("0 or 1", value)
        word[self.offset] = (word[self.offset] & ~(1 << self.bit) & 255) | (int(value) << self.bit)


class Text(Field[str]):
    """Zero-terminated ASCII text."""

    kind = "text"

    def __init__(self, offset: int, size: int, doc: str, **facts: Unpack[Facts]) -> None:
        facts.setdefault("default", "")
        super().__init__(offset, size, doc, **facts)

    def read(self, raw: Raw) -> str:
        return raw[self.offset : self.offset + self.size].split(b"\0", 1)[0].decode("ascii", "backslashreplace")

    def write(self, word: bytearray, value: object) -> None:
        text = str(value)
        if len(text) > self.size or not text.isascii() or "\0" in text:
            raise self.refuse(f"at most {self.size} ASCII characters", value)
        data = text.encode("ascii")
        word[self.offset : self.offset + self.size] = data.ljust(self.size, b"\0")


class Bytes(Field[tuple[int, ...]]):
    """A run of single bytes, as a tuple of integers."""

    kind = "bytes"

    def __init__(self, offset: int, size: int, doc: str, **facts: Unpack[Facts]) -> None:
        facts.setdefault("default", (0,) * size)
        super().__init__(offset, size, doc, **facts)

    def read(self, raw: Raw) -> tuple[int, ...]:
        return tuple(raw[self.offset : self.offset + self.size])

    def render(self, value: tuple[int, ...]) -> Json:
        return list(value)

    def write(self, word: bytearray, value: object) -> None:
        values = tuple(value) if isinstance(value, Iterable) else ()
        if len(values) != self.size or not all(isinstance(v, int) and 0 <= v <= 255 for v in values):
            raise self.refuse(f"{self.size} numbers from 0 to 255", value)
        word[self.offset : self.offset + self.size] = bytes(values)
