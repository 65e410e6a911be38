"""Text of a word in the profiler grammar, item by item and in both directions. Source: isa.md 12.

Each item knows the fields it speaks of, turns raw bytes into its piece of text (`""` when it prints nothing), says
which of its fields that text leaves out of a given word, and puts a parsed piece back.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

from formats.dtypes import DTYPES, Dtype
from formats.errors import FormatError
from formats.isa.declared import Declared
from formats.isa.field import Bits, Enumeration, Field, Float32, Immediate, Integer, Text
from formats.isa.sync import SyncToken
from formats.numerals import parse_signed

__all__ = [
    "SPELLINGS",
    "Bare",
    "Formatter",
    "Item",
    "Key",
    "Literal",
    "Names",
    "Omitter",
    "Product",
    "Tokens",
    "parse_dtype",
    "parse_integer",
    "parse_raw",
    "parse_scalar",
    "scalar_text",
    "split_braces",
]

Formatter = Callable[[bytes], str]
Omitter = Callable[[bytes], tuple[str, ...]]
# Profiler spelling by code; a code without a name still has a spelling that reads back.
SPELLINGS: tuple[str, ...] = tuple(
    DTYPES[Dtype(code)].spelling if code in set(Dtype) else f"dtype{code:#04x}" for code in range(256)
)
CACHE_LIMIT = 1 << 16
_FLOAT = struct.Struct("<f")
# What every queue name of the corpus is made of; other text goes into braces, so that it cannot look like an operand.
_CLEAN_TEXT = re.compile(rb"[A-Za-z_][A-Za-z0-9_.\-]*\0*")


def parse_integer(text: str, key: str) -> int:
    """Return an integer in decimal or with a prefix, as 0x; anything else is a FormatError."""
    try:
        return parse_signed(text)
    except ValueError:
        raise FormatError("not a number", field=key, got=repr(text)) from None


def parse_dtype(text: str, key: str = "dtype") -> int:
    """Return the code of a profiler spelling, or of `dtype0x1f` for a code without one."""
    return parse_integer(text[5:], key) if text.startswith("dtype0x") else Dtype.from_spelling(text)


def scalar_text(value: float | Bits) -> str:
    """Return an immediate: the shortest of nine digits that reads back, `i` before integers given as bits."""
    return f"i{value.value}" if isinstance(value, Bits) else f"{value:.9g}"


def parse_scalar(text: str, key: str) -> float | Bits:
    """Return the float, or the Bits behind `i`, that an immediate's text gives; 0x and digits are a float's bits."""
    try:
        if text[:1] == "i" and text[1:2] not in ("n", ""):  # not inf
            bits = parse_signed(text[1:])
            if not -(1 << 31) <= bits < 1 << 32:
                raise FormatError("value does not fit", field=key, expected="an integer of 32 bits", got=text)
            return Bits(bits & 0xFFFFFFFF)
        if text.startswith("0x"):
            number: float = _FLOAT.unpack(int(text, 16).to_bytes(4, "little"))[0]
            return number
        return float(text)
    except (ValueError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError("not a number", field=key, got=repr(text)) from None


def reads_back(text: str, data: bytes) -> bool:
    """Return whether a printed float packs to the four bytes it was read from."""
    try:
        return _FLOAT.pack(float(text)) == data
    except OverflowError:
        return False


class Tokens:
    """The operands of one line: `keyed` values by key, `bare` words in order, `syncs` that are not the header's.

    Whatever an item uses is taken out, so that the rest can be refused.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.keyed: dict[str, str] = {}
        self.bare: list[str] = []
        self.syncs: list[SyncToken] = []
        for word in words:
            self.add(word)

    def add(self, word: str) -> None:
        """File one word; a key that was there before is a FormatError."""
        key, equals, value = word.partition("=")
        if not equals:
            self.bare.append(word)
        elif key in self.keyed:
            raise FormatError("given twice", field=key)
        else:
            self.keyed[key] = value

    def take(self, key: str) -> str | None:
        """Return and use up a keyed value, None where it is absent."""
        return self.keyed.pop(key, None)

    def need(self, key: str) -> str:
        """Return and use up a keyed value; its absence is a FormatError."""
        value = self.keyed.pop(key, None)
        if value is None:
            raise FormatError("operand is missing", field=key)
        return value

    def refuse_rest(self, name: str) -> None:
        """Raise a FormatError for whatever no item has used."""
        rest = [*self.bare, *self.keyed, *(f"a second {s.kind}" for s in self.syncs)]
        if rest:
            raise FormatError(f"{name} has no such operand", got=" ".join(rest))


# what profiles put behind a semaphore: the engine that counts with it, or the DMA queue (isa.md 12)
_LABEL = re.compile(r" ?\((?:Tensor|Vector|Scalar|Sync|GpSimd|q[^)]*)\)")
# int() refuses thousands of digits with an error that is not ours; no number of a word has more than twelve.
_PRODUCT = re.compile(r"(\d{1,12})\*(\d{1,12})", re.ASCII)
_BRACES = re.compile(r"\{([^{}]*)\}\s*$")


def split_braces(text: str) -> tuple[str, dict[str, str]]:
    """Return operand text without the profiler's labels, and what stands in braces behind it."""
    text = _LABEL.sub("", text)
    match = _BRACES.search(text)
    if not match:
        return text, {}
    tokens = Tokens(match[1].split())
    if tokens.bare:
        raise FormatError("braces hold field=value only", got=" ".join(tokens.bare))
    return text[: match.start()], tokens.keyed


def parse_raw(text: str, key: str = "raw") -> bytes:
    """Return the bytes that hexadecimal digits spell."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise FormatError("not hexadecimal", field=key, got=repr(text[:40])) from None


class Item:
    """One piece of operand text."""

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        """Return the names of the fields the item prints."""
        return ()

    def optional_field(self) -> str | None:
        """Return the field that is left out when zero, None where there is no such field."""
        return None

    def form(self, cls: type[Declared]) -> str:
        """Return the piece's grammar for a manual: capitals stand for values."""
        raise TypeError(type(self).__name__)

    def bind(self, cls: type[Declared]) -> Formatter:
        """Return the function from raw bytes to text for `cls`."""
        raise TypeError(type(self).__name__)

    def omits(self, cls: type[Declared]) -> Omitter | None:
        """Return the function that names what the text of a word leaves out; None where it never does."""
        return None

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        """Move what the item reads from `tokens` into `values`."""
        raise TypeError(type(self).__name__)


class Literal(Item):
    """A fixed `key=value` that carries nothing."""

    def __init__(self, text: str) -> None:
        self.text = text

    def form(self, cls: type[Declared]) -> str:
        return self.text

    def bind(self, cls: type[Declared]) -> Formatter:
        return lambda raw: self.text

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        key, _, value = self.text.partition("=")
        if tokens.take(key) not in (None, value):
            raise FormatError("has one form only", field=key, expected=self.text)


class Key(Item):
    """`key=value` of one field; style is int, hex, float, scalar or bytes; `optional` leaves zero out."""

    def __init__(self, field: str, key: str | None = None, *, style: str = "int", optional: bool = False) -> None:
        self.field, self.key, self.style, self.optional = field, key or field, style, optional

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        field = cls.FIELDS[self.field]
        return (self.field, field.integer.name) if isinstance(field, Immediate) else (self.field,)

    def optional_field(self) -> str | None:
        return self.field if self.optional else None

    def form(self, cls: type[Declared]) -> str:
        field = cls.FIELDS[self.field]
        forms = {"float": "FLOAT", "scalar": "FLOAT|iINTEGER", "hex": "0xN", "bytes": "N,..."}
        value = "NAME" if isinstance(field, Enumeration) else forms.get(self.style, "N")
        return f"[{self.key}={value}]" if self.optional else f"{self.key}={value}"

    def bind(self, cls: type[Declared]) -> Formatter:
        field, prefix = cls.FIELDS[self.field], self.key + "="
        if isinstance(field, Enumeration) or (isinstance(field, Integer) and field.size == 1 and not field.signed):
            return self._from_table(field, prefix)
        read: Callable[[bytes], Any] = field.read
        renders: dict[str, Callable[[Any], str]] = {
            "hex": hex,
            "float": "{:f}".format,
            "scalar": scalar_text,
            "bytes": lambda values: ",".join(map(str, values)),
        }
        render = renders.get(self.style, str)
        if self.optional:
            return lambda raw: prefix + render(v) if (v := read(raw)) else ""
        return lambda raw: prefix + render(read(raw))

    def _from_table(self, field: Field[Any], prefix: str) -> Formatter:
        render = hex if self.style == "hex" else str
        named = [enum_text(v) for v in field.table] if isinstance(field, Enumeration) else map(render, range(256))
        table = [prefix + code for code in named]
        if self.optional:
            table[0] = ""
        if field.kind == "nibble":
            read: Callable[[bytes], int] = field.read
            return lambda raw: table[read(raw)]
        offset = field.offset
        return lambda raw: table[raw[offset]]

    def omits(self, cls: type[Declared]) -> Omitter | None:
        field = cls.FIELDS[self.field]
        if not isinstance(field, Float32):
            return None
        name, offset, stop = self.field, field.offset, field.offset + 4
        formatter, cut = self.bind(cls), len(self.key) + 1
        integer = field.integer.read if isinstance(field, Immediate) else None
        known: dict[bytes, tuple[str, ...]] = {}

        def omitted(raw: bytes) -> tuple[str, ...]:
            if integer is not None and integer(raw):
                return ()
            data = raw[offset:stop]
            found = known.get(data)
            if found is None:
                found = () if reads_back(formatter(raw)[cut:] or "0", data) else (name,)
                if len(known) < CACHE_LIMIT:
                    known[data] = found
            return found

        return omitted

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        text = tokens.take(self.key) if self.optional else tokens.need(self.key)
        if text is None:
            return
        field = cls.FIELDS[self.field]
        if isinstance(field, Enumeration):
            values[self.field] = enum_code(field, text)
        elif self.style in ("float", "scalar"):
            values[self.field] = parse_scalar(text, self.key)
        elif self.style == "bytes":
            values[self.field] = tuple(parse_integer(t, self.key) for t in text.split(","))
        else:
            values[self.field] = parse_integer(text, self.key)


def enum_text(value: int) -> str:
    """Return the name of a code, or the code in hexadecimal where it has none."""
    return str(value.name) if hasattr(value, "name") else hex(value)


def enum_code(field: Enumeration, text: str) -> int:
    """Return the code that a name or number gives for an enumeration field."""
    return field.code(parse_integer(text, field.name) if text[:1].isdigit() else text)


class Bare(Item):
    """A bare word that names an enumeration value (`EXP`), or the bare text of a queue's name."""

    def __init__(self, field: str) -> None:
        self.field = field

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return (self.field,)

    def form(self, cls: type[Declared]) -> str:
        return self.field.upper()

    def bind(self, cls: type[Declared]) -> Formatter:
        field = cls.FIELDS[self.field]
        offset = field.offset
        if isinstance(field, Enumeration):
            table = [enum_text(v) for v in field.table]
            return lambda raw: table[raw[offset]]
        stop = offset + field.size

        def text(raw: bytes) -> str:
            data = raw[offset:stop]
            return data.rstrip(b"\0").decode("ascii") if _CLEAN_TEXT.fullmatch(data) else ""

        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        field = cls.FIELDS[self.field]
        if isinstance(field, Enumeration):
            return None
        names, offset, stop = (self.field,), field.offset, field.offset + field.size

        def omitted(raw: bytes) -> tuple[str, ...]:
            data = raw[offset:stop]
            return () if _CLEAN_TEXT.fullmatch(data) or not any(data) else names

        return omitted

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        field = cls.FIELDS[self.field]
        if not tokens.bare:
            if isinstance(field, Text):
                return
            raise FormatError("operand is missing", field=self.field)
        text = tokens.bare.pop(0)
        values[self.field] = enum_code(field, text) if isinstance(field, Enumeration) else text


class Product(Item):
    """`rows*cols` of two one-byte fields."""

    def __init__(self, first: str, second: str) -> None:
        self.fields = (first, second)

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return self.fields

    def form(self, cls: type[Declared]) -> str:
        return "*".join(name.upper() for name in self.fields)

    def bind(self, cls: type[Declared]) -> Formatter:
        a, b = (cls.FIELDS[name].offset for name in self.fields)
        return lambda raw: f"{raw[a]}*{raw[b]}"

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        for index, word in enumerate(tokens.bare):
            match = _PRODUCT.fullmatch(word)
            if match:
                del tokens.bare[index]
                values.update(zip(self.fields, map(int, match.groups()), strict=True))
                return
        raise FormatError("operand is missing", field="*".join(self.fields))


class Names(Item):
    """`key=A,B`: several enumeration fields under one key."""

    def __init__(self, key: str, *fields: str) -> None:
        self.key, self.fields = key, fields

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return self.fields

    def form(self, cls: type[Declared]) -> str:
        return f"{self.key}={','.join(name.upper() for name in self.fields)}"

    def bind(self, cls: type[Declared]) -> Formatter:
        parts = []
        for name in self.fields:
            field = cls.FIELDS[name]
            if not isinstance(field, Enumeration):
                raise TypeError(f"{cls.__name__}.{name} is no enumeration")
            parts.append((field.offset, [enum_text(v) for v in field.table]))
        prefix = self.key + "="
        return lambda raw: prefix + ",".join([table[raw[offset]] for offset, table in parts])

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        texts = tokens.need(self.key).split(",")
        if len(texts) != len(self.fields):
            raise FormatError("wrong number of names", field=self.key, expected=len(self.fields), got=len(texts))
        for name, text in zip(self.fields, texts, strict=True):
            field = cls.FIELDS[name]
            values[name] = enum_code(field, text) if isinstance(field, Enumeration) else parse_integer(text, name)
