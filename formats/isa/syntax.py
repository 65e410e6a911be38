"""Text of a word in the profiler grammar, item by item and in both directions.

Each item knows the fields it speaks of, turns raw bytes into its piece of text (`""` when it prints nothing) and puts a
parsed piece back. Source: isa.md 12.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from formats.dtypes import DTYPES, Dtype
from formats.errors import FormatError
from formats.isa.field import Bits, Enumeration
from formats.isa.operand import AccessPattern, DmaAddress, DmaPattern, Pattern, Pointer

if TYPE_CHECKING:
    from formats.isa.instruction import Instruction

__all__ = ["Bare", "DmaAddressItem", "DmaPatternItem", "Immediates", "Item", "Key", "Literal", "Names", "PatternItem",
           "PointerItem", "Product", "Tokens", "float_text", "parse_integer"]

Formatter = Callable[[bytes], str]
_SPELLINGS: list[str] = [f"dtype{code:#04x}" for code in range(256)]
for _code, _info in DTYPES.items():
    _SPELLINGS[_code] = _info.spelling
_CACHE_LIMIT = 1 << 16


def parse_integer(text: str, key: str) -> int:
    """Return an integer written in decimal or with 0x; anything else is a FormatError."""
    try:
        return int(text, 0)
    except ValueError:
        raise FormatError("not a number", field=key, got=repr(text)) from None


def float_text(value: float) -> str:
    """Return the shortest of nine digits that reads back as the same single-precision number."""
    return f"{value:.9g}"


def parse_dtype(text: str) -> int:
    """Return the code of a profiler spelling."""
    if text.startswith("dtype0x"):
        return parse_integer(text[5:], "dtype")
    return Dtype.from_spelling(text)


class Tokens:
    """The operands of one line: `keyed` values by key, `bare` words in order, and what was used."""

    def __init__(self, words: list[str]) -> None:
        self.keyed: dict[str, str] = {}
        self.bare: list[str] = []
        for word in words:
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


class Item:
    """One piece of operand text; `covers` names the fields it prints."""

    covers: tuple[str, ...] = ()

    def bind(self, cls: type[Instruction]) -> Formatter:
        """Return the function from raw bytes to text for `cls`."""
        raise TypeError(type(self).__name__)

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        """Move what the item reads from `tokens` into `values`."""
        raise TypeError(type(self).__name__)


class Literal(Item):
    """A fixed `key=value` that carries nothing."""

    def __init__(self, text: str) -> None:
        self.text = text

    def bind(self, cls: type[Instruction]) -> Formatter:
        return lambda raw: self.text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        key, _, value = self.text.partition("=")
        if tokens.take(key) not in (None, value):
            raise FormatError("has one form only", field=key, expected=self.text)


class Key(Item):
    """`key=value` of one field; style is int, hex, float, or name; `optional` omits zero."""

    def __init__(self, field: str, key: str | None = None, *, style: str = "int", optional: bool = False) -> None:
        self.field, self.key, self.style, self.optional = field, key or field, style, optional
        self.covers = (field,)

    def bind(self, cls: type[Instruction]) -> Formatter:
        field, prefix, optional = cls.FIELDS[self.field], self.key + "=", self.optional
        if isinstance(field, Enumeration):
            table = [prefix + _enum_text(v) for v in field.table]
            read_code = field.read
            if optional:
                return lambda raw: table[v] if (v := read_code(raw)) else ""
            return lambda raw: table[read_code(raw)]
        read: Callable[[bytes], Any] = field.read
        render: Callable[[Any], str]
        if self.style == "hex":
            render = hex
        elif self.style == "float":
            render = "{:f}".format
        elif self.style == "scalar":
            render = scalar_text
        elif self.style == "bytes":
            render = lambda values: ",".join(map(str, values))
        else:
            render = str
        if optional:
            return lambda raw: prefix + render(v) if (v := read(raw)) else ""
        return lambda raw: prefix + render(read(raw))

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
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
        elif self.style == "text":
            values[self.field] = text
        else:
            values[self.field] = parse_integer(text, self.key)


def _enum_text(value: int) -> str:
    return value.name if hasattr(value, "name") else hex(value)


def enum_code(field: Enumeration, text: str) -> int:
    """Return the code that a name or number gives for an enumeration field."""
    if text[:1].isdigit():
        return field.code(parse_integer(text, field.name))
    return field.code(text)


def scalar_text(value: Any) -> str:
    """Return an immediate: `i` before integers given as bits."""
    return f"i{value.value}" if isinstance(value, Bits) else float_text(value)


def parse_scalar(text: str, key: str) -> Any:
    """Return the float, or the Bits behind `i`, that an immediate's text gives."""
    if text.startswith("i") and text[1:].lstrip("-").isdigit():
        return Bits(int(text[1:]) & 0xFFFFFFFF)
    try:
        if text.startswith("0x"):
            return struct.unpack("<f", int(text, 16).to_bytes(4, "little"))[0]
        return float(text)
    except (ValueError, OverflowError):
        raise FormatError("not a number", field=key, got=repr(text)) from None


class Bare(Item):
    """A bare word that names an enumeration value (`EXP`), or bare text."""

    def __init__(self, field: str) -> None:
        self.field, self.covers = field, (field,)

    def bind(self, cls: type[Instruction]) -> Formatter:
        field = cls.FIELDS[self.field]
        if isinstance(field, Enumeration):
            table = [_enum_text(v) for v in field.table]
            read_code = field.read
            return lambda raw: table[read_code(raw)]
        read: Callable[[bytes], Any] = field.read
        return lambda raw: str(read(raw))

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        if not tokens.bare:
            raise FormatError("operand is missing", field=self.field)
        text = tokens.bare.pop(0)
        field = cls.FIELDS[self.field]
        values[self.field] = enum_code(field, text) if isinstance(field, Enumeration) else text


class Product(Item):
    """`rows*cols`."""

    def __init__(self, first: str, second: str) -> None:
        self.covers = (first, second)

    def bind(self, cls: type[Instruction]) -> Formatter:
        a, b = (cls.FIELDS[name].offset for name in self.covers)
        return lambda raw: f"{raw[a]}*{raw[b]}"

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        for index, word in enumerate(tokens.bare):
            match = re.fullmatch(r"(\d+)\*(\d+)", word)
            if match:
                del tokens.bare[index]
                values.update(zip(self.covers, map(int, match.groups()), strict=True))
                return
        raise FormatError("operand is missing", field="*".join(self.covers))


class Names(Item):
    """`key=A,B`: several enumeration fields under one key."""

    def __init__(self, key: str, *fields: str) -> None:
        self.key, self.covers = key, fields

    def bind(self, cls: type[Instruction]) -> Formatter:
        parts = []
        for name in self.covers:
            field = cls.FIELDS[name]
            assert isinstance(field, Enumeration)
            parts.append((field.offset, [_enum_text(v) for v in field.table]))
        prefix = self.key + "="
        return lambda raw: prefix + ",".join([table[raw[offset]] for offset, table in parts])

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        texts = tokens.need(self.key).split(",")
        if len(texts) != len(self.covers):
            raise FormatError("wrong number of names", field=self.key, expected=len(self.covers), got=len(texts))
        for name, text in zip(self.covers, texts, strict=True):
            field = cls.FIELDS[name]
            assert isinstance(field, Enumeration)
            values[name] = enum_code(field, text)


_PATTERN = re.compile(r"(?:(\w+)@)?0x([0-9a-fA-F]+)\[([-\d,]*)\]\[([\d,]*)\]")


class PatternItem(Item):
    """`key=dtype@0xaddr[steps][counts]`; `typed=False` leaves the dtype out, `optional` an unused operand."""

    def __init__(self, field: str, key: str | None = None, *, typed: bool = True, optional: bool = False) -> None:
        self.field, self.key, self.typed, self.optional = field, key or field, typed, optional
        self.covers = (field,)

    def bind(self, cls: type[Instruction]) -> Formatter:
        field = cls.FIELDS[self.field]
        assert isinstance(field, Pattern)
        if self.typed:
            self.covers = (self.field, field.dtype)
        start, middle, stop = field.offset, field.offset + 4, field.offset + field.size
        read, read_dtype = field.read, cls.FIELDS[field.dtype].read
        prefix, typed, enabled = self.key + "=", self.typed, field.enabled if self.optional else None
        tails: dict[bytes, str] = {}

        def text(raw: bytes) -> str:
            if enabled is not None and not enabled(raw):
                return ""
            shape = raw[middle:stop]
            tail = tails.get(shape)
            if tail is None:
                _, steps, counts = read(raw)
                tail = f"[{','.join(map(str, steps))}][{','.join(map(str, counts))}]"
                if len(tails) < _CACHE_LIMIT:
                    tails[shape] = tail
            address = int.from_bytes(raw[start:middle], "little")
            if typed:
                return f"{prefix}{_SPELLINGS[read_dtype(raw)]}@{address:#x}{tail}"
            return f"{prefix}{address:#x}{tail}"

        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        word = tokens.take(self.key) if self.optional else tokens.need(self.key)
        if word is None:
            return
        match = _PATTERN.fullmatch(word)
        if not match or (match[1] is None) == self.typed:
            form = ("dtype@" if self.typed else "") + "0xaddress[steps][counts]"
            raise FormatError("not an access pattern", field=self.key, expected=form, got=repr(word))
        steps, counts = (tuple(int(v) for v in text.split(",") if v.strip("-")) for text in (match[3], match[4]))
        field = cls.FIELDS[self.field]
        assert isinstance(field, Pattern)
        values[self.field] = AccessPattern(int(match[2], 16), steps, counts)
        if self.typed:
            values[field.dtype] = parse_dtype(match[1])


class PointerItem(Item):
    """`key=dtype@0xaddr` of a per-partition scalar, omitted when unused."""

    def __init__(self, field: str, key: str) -> None:
        self.field, self.key, self.covers = field, key, (field,)

    def bind(self, cls: type[Instruction]) -> Formatter:
        field = cls.FIELDS[self.field]
        assert isinstance(field, Pointer)
        dtype = field.dtype
        self.covers = (self.field, *([dtype] if isinstance(dtype, str) and not isinstance(dtype, Dtype) else []),
                       *([field.flag.name] if field.flag is not None else []))
        prefix, enabled, read = self.key + "=", field.enabled, field.read
        if isinstance(dtype, Dtype):
            fixed = dtype.spelling
            return lambda raw: f"{prefix}{fixed}@{read(raw):#x}" if enabled(raw) else ""
        read_dtype = cls.FIELDS[dtype].read
        return lambda raw: f"{prefix}{_SPELLINGS[read_dtype(raw)]}@{read(raw):#x}" if enabled(raw) else ""

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        word = tokens.take(self.key)
        field = cls.FIELDS[self.field]
        assert isinstance(field, Pointer)
        if word is None:
            if field.flag is not None and field.inverted:
                values[field.flag.name] = 1
            return
        match = re.fullmatch(r"(\w+)@0x([0-9a-fA-F]+)", word)
        if not match:
            raise FormatError("not a pointer", field=self.key, expected="dtype@0xaddress", got=repr(word))
        values[self.field] = int(match[2], 16)
        if not isinstance(field.dtype, Dtype):
            values[field.dtype] = parse_dtype(match[1])


class Immediates(Item):
    """`imm=a,b imm_src=PTR,INSTRUCTION`: immediates that are numbers or pointers."""

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs
        self.covers = tuple(name for pair in pairs for name in pair)

    def bind(self, cls: type[Instruction]) -> Formatter:
        parts: list[tuple[Callable[[bytes], bool], Callable[[bytes], Any], Callable[[bytes], Any]]] = []
        covers = list(self.covers)
        for number, pointer in self.pairs:
            field, number_field = cls.FIELDS[pointer], cls.FIELDS[number]
            assert isinstance(field, Pointer) and field.flag is not None
            covers += [field.flag.name, number_field.integer.name]  # type: ignore[attr-defined]
            parts.append((field.enabled, field.read, number_field.read))
        self.covers = tuple(covers)

        def text(raw: bytes) -> str:
            flags = [enabled(raw) for enabled, _, _ in parts]
            values = [f"{pointer(raw):#x}" if flag else scalar_text(number(raw))
                      for flag, (_, pointer, number) in zip(flags, parts, strict=True)]
            sources = ["PTR" if flag else "INSTRUCTION" for flag in flags]
            return f"imm={','.join(values)} imm_src={','.join(sources)}"

        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        texts, sources = tokens.need("imm").split(","), tokens.need("imm_src").split(",")
        if not len(texts) == len(sources) == len(self.pairs):
            raise FormatError("wrong number of immediates", field="imm", expected=len(self.pairs), got=len(texts))
        for (number, pointer), text, source in zip(self.pairs, texts, sources, strict=True):
            if source == "PTR":
                values[pointer] = parse_integer(text, "imm")
            elif source == "INSTRUCTION":
                values[number] = parse_scalar(text, "imm")
            else:
                raise FormatError("not a source", field="imm_src", expected="PTR or INSTRUCTION", got=repr(source))


class DmaPatternItem(Item):
    """`key=[steps][counts]` of a direct DMA."""

    def __init__(self, field: str) -> None:
        self.field, self.covers = field, (field,)

    def bind(self, cls: type[Instruction]) -> Formatter:
        read: Callable[[bytes], Any] = cls.FIELDS[self.field].read
        prefix = self.field + "="

        def text(raw: bytes) -> str:
            (a, b), (c, d) = read(raw)
            return f"{prefix}[{a},{b}][{c},{d}]"

        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        word = tokens.need(self.field)
        match = re.fullmatch(r"\[(-?\d+),(-?\d+)\]\[(\d+),(\d+)\]", word)
        if not match:
            raise FormatError("not a DMA pattern", field=self.field, expected="[a,b][c,d]", got=repr(word))
        a, b, c, d = map(int, match.groups())
        values[self.field] = DmaPattern((a, b), (c, d))


class DmaAddressItem(Item):
    """`src_var_id=… src_var_offset=…`, `src_table_index=…` or `src_addr_imm=…`, then `src_shape_reg=0`."""

    def __init__(self, field: str, side: str, *, hex_table: bool) -> None:
        self.field, self.side, self.hex_table, self.covers = field, side, hex_table, (field,)

    def bind(self, cls: type[Instruction]) -> Formatter:
        read: Callable[[bytes], Any] = cls.FIELDS[self.field].read
        side, hex_table = self.side, self.hex_table

        def text(raw: bytes) -> str:
            form, index, offset = read(raw)
            if form == "variable":
                body = f"{side}_var_id={index} {side}_var_offset={offset}"
            elif form == "table":
                body = f"{side}_table_offset_imm={f'{offset:#x}' if hex_table else offset} {side}_table_index={index}"
            else:
                body = f"{side}_addr_imm={offset:#x}"
            return f"{body} {side}_shape_reg=0"

        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        side = self.side
        tokens.take(f"{side}_shape_reg")
        for form, index_key, offset_key in (("variable", "var_id", "var_offset"), ("table", "table_index", "table_offset_imm"),
                                            ("absolute", "", "addr_imm")):
            offset = tokens.take(f"{side}_{offset_key}")
            if offset is not None:
                index = parse_integer(tokens.need(f"{side}_{index_key}"), index_key) if index_key else 0
                values[self.field] = DmaAddress(form, index, parse_integer(offset, offset_key))
                return
        raise FormatError("operand is missing", field=f"{side} address")
