"""Text of operands: access patterns, pointers, immediates, DMA addresses and patterns. Source: isa.md 4, 8, 12."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa.declared import Declared
from formats.isa.field import Enumeration, Immediate
from formats.isa.operand import AccessPattern, DmaAddress, DmaPattern, Pattern, Pointer
from formats.isa.syntax import (
    CACHE_LIMIT,
    SPELLINGS,
    Formatter,
    Item,
    Omitter,
    Tokens,
    parse_dtype,
    parse_integer,
    parse_scalar,
    reads_back,
    scalar_text,
)

__all__ = ["DmaAddressItem", "DmaPatternItem", "Immediates", "PatternItem", "PointerItem"]

# Digits are counted because int() refuses thousands of them with an error that is not ours.
_PATTERN = re.compile(
    r"(?:(\w+)@)?0x([0-9a-fA-F]+)\[(-?\d{1,12}(?:,-?\d{1,12})*)\]\[(\d{1,12}(?:,\d{1,12})*)\]", re.ASCII
)
_POINTER = re.compile(r"(\w+)@0x([0-9a-fA-F]+)")
_DMA_PATTERN = re.compile(r"\[(-?\d{1,12}),(-?\d{1,12})\]\[(\d{1,12}),(\d{1,12})\]", re.ASCII)


def _spelling(cls: type[Declared], dtype: str) -> Callable[[bytes], str]:
    """Return the function from raw bytes to the spelling of the element type in field `dtype`."""
    field = cls.FIELDS[dtype]
    offset, read = field.offset, field.read
    if isinstance(field, Enumeration) and field.limit == 255:
        return lambda raw: SPELLINGS[raw[offset]]
    return lambda raw: SPELLINGS[read(raw)]


def _set_dtype(values: dict[str, object], field: str, code: int, key: str) -> None:
    if values.setdefault(field, code) != code:
        raise FormatError("two operands share one element type but name two", field=key)


class PatternItem(Item):
    """`key=dtype@0xaddr[steps][counts]`; `typed=False` leaves the dtype out, `optional` an unused operand."""

    def __init__(self, field: str, key: str | None = None, *, typed: bool = True, optional: bool = False) -> None:
        self.field, self.key, self.typed, self.optional = field, key or field, typed, optional

    def _pattern(self, cls: type[Declared]) -> Pattern:
        field = cls.FIELDS[self.field]
        if not isinstance(field, Pattern):
            raise TypeError(f"{cls.__name__}.{self.field} is no pattern")
        return field

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return (self.field, self._pattern(cls).dtype) if self.typed else (self.field,)

    def form(self, cls: type[Declared]) -> str:
        text = f"{self.key}={'DTYPE@' if self.typed else ''}0xADDRESS[STEPS][COUNTS]"
        return f"[{text}]" if self.optional else text

    def bind(self, cls: type[Declared]) -> Formatter:
        field = self._pattern(cls)
        start, middle, stop = field.offset, field.offset + 4, field.offset + field.size
        read, prefix, enabled = field.read, self.key + "=", field.enabled if self.optional else None
        spelling = _spelling(cls, field.dtype) if self.typed else None
        tails: dict[bytes, str] = {}

        def text(raw: bytes) -> str:
            if enabled is not None and not enabled(raw):
                return ""
            shape = raw[middle:stop]
            tail = tails.get(shape)
            if tail is None:
                _, steps, counts = read(raw)
                tail = f"[{','.join(map(str, steps))}][{','.join(map(str, counts))}]"
                if len(tails) < CACHE_LIMIT:
                    tails[shape] = tail
            address = int.from_bytes(raw[start:middle], "little")
            if spelling is None:
                return f"{prefix}{address:#x}{tail}"
            return f"{prefix}{spelling(raw)}@{address:#x}{tail}"

        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        if not self.optional:
            return None
        field, defaults = self._pattern(cls), cls.defaults()
        parts = [(name, cls.FIELDS[name].peek, cls.FIELDS[name].peek(defaults)) for name in self.covers(cls)]
        return lambda raw: () if field.enabled(raw) else tuple([name for name, peek, v in parts if peek(raw) != v])

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        word = tokens.take(self.key) if self.optional else tokens.need(self.key)
        if word is None:
            return
        match = _PATTERN.fullmatch(word)
        if not match or (match[1] is None) == self.typed:
            form = ("dtype@" if self.typed else "") + "0xaddress[steps][counts]"
            raise FormatError("not an access pattern", field=self.key, expected=form, got=repr(word))
        steps, counts = (tuple(map(int, text.split(","))) for text in (match[3], match[4]))
        values[self.field] = AccessPattern(int(match[2], 16), steps, counts)
        if self.typed:
            _set_dtype(values, self._pattern(cls).dtype, parse_dtype(match[1], self.key), self.key)


class PointerItem(Item):
    """`key=dtype@0xaddr` of a per-partition scalar, left out when unused."""

    def __init__(self, field: str, key: str) -> None:
        self.field, self.key = field, key

    def _pointer(self, cls: type[Declared]) -> Pointer:
        field = cls.FIELDS[self.field]
        if not isinstance(field, Pointer):
            raise TypeError(f"{cls.__name__}.{self.field} is no pointer")
        return field

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        field = self._pointer(cls)
        return (
            self.field,
            *(() if isinstance(field.dtype, Dtype) else (field.dtype,)),
            *(() if field.flag is None else (field.flag.name,)),
        )

    def form(self, cls: type[Declared]) -> str:
        text = f"{self.key}=DTYPE@0xADDRESS"
        return text if self._pointer(cls).flag is None else f"[{text}]"

    def bind(self, cls: type[Declared]) -> Formatter:
        field = self._pointer(cls)
        prefix, enabled, read = self.key + "=", field.enabled, field.read
        if isinstance(field.dtype, Dtype):
            fixed = field.dtype.spelling
            return lambda raw: f"{prefix}{fixed}@{read(raw):#x}" if enabled(raw) else ""
        spelling = _spelling(cls, field.dtype)
        return lambda raw: f"{prefix}{spelling(raw)}@{read(raw):#x}" if enabled(raw) else ""

    def omits(self, cls: type[Declared]) -> Omitter | None:
        field = self._pointer(cls)
        if field.flag is None:
            return None
        # An unused pointer reads back as the defaults, with the flag at 1 when it says "unused", else at 0.
        fresh = bytearray(cls.defaults())
        field.flag.poke(fresh, 1 if field.inverted else 0)
        unused = bytes(fresh)
        parts = [(name, cls.FIELDS[name].peek, cls.FIELDS[name].peek(unused)) for name in self.covers(cls)]
        used = [(field.flag.name, field.flag.peek, 0 if field.inverted else 1)]

        def omitted(raw: bytes) -> tuple[str, ...]:
            return tuple([name for name, peek, value in (used if field.enabled(raw) else parts) if peek(raw) != value])

        return omitted

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        word, field = tokens.take(self.key), self._pointer(cls)
        if word is None:
            if field.flag is None:
                raise FormatError("operand is missing", field=self.key)
            if field.inverted:
                values[field.flag.name] = 1
            return
        match = _POINTER.fullmatch(word)
        if not match:
            raise FormatError("not a pointer", field=self.key, expected="dtype@0xaddress", got=repr(word))
        values[self.field] = int(match[2], 16)
        code = parse_dtype(match[1], self.key)
        if not isinstance(field.dtype, Dtype):
            _set_dtype(values, field.dtype, code, self.key)
        elif code != field.dtype:
            raise FormatError("another element type", field=self.key, expected=field.dtype.spelling, got=match[1])


class Immediates(Item):
    """`imm=a,b imm_src=PTR,INSTRUCTION`: immediates that are numbers or pointers."""

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs

    def _parts(self, cls: type[Declared]) -> list[tuple[Immediate, Pointer, Any]]:
        parts = []
        for number, pointer in self.pairs:
            a, b = cls.FIELDS[number], cls.FIELDS[pointer]
            if not isinstance(a, Immediate) or not isinstance(b, Pointer) or b.flag is None or a.offset != b.offset:
                raise TypeError(f"{cls.__name__}: {number} and {pointer} are not an immediate and its pointer")
            parts.append((a, b, b.flag))
        return parts

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return tuple(name for a, b, flag in self._parts(cls) for name in (a.name, b.name, flag.name, a.integer.name))

    def form(self, cls: type[Declared]) -> str:
        names = ",".join(number.upper() for number, _ in self.pairs)
        return f"imm={names} imm_src={','.join('PTR|INSTRUCTION' for _ in self.pairs)}"

    def bind(self, cls: type[Declared]) -> Formatter:
        parts: list[tuple[Callable[[bytes], bool], Callable[[bytes], Any], Callable[[bytes], Any]]]
        parts = [(b.enabled, b.read, a.read) for a, b, _ in self._parts(cls)]

        def text(raw: bytes) -> str:
            flags = [enabled(raw) for enabled, _, _ in parts]
            values = [
                f"{pointer(raw):#x}" if flag else scalar_text(number(raw))
                for flag, (_, pointer, number) in zip(flags, parts, strict=True)
            ]
            sources = ["PTR" if flag else "INSTRUCTION" for flag in flags]
            return f"imm={','.join(values)} imm_src={','.join(sources)}"

        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        parts = self._parts(cls)

        def omitted(raw: bytes) -> tuple[str, ...]:
            names = []
            for number, pointer, _ in parts:
                integer = number.integer.read(raw)
                if pointer.enabled(raw):
                    if integer:
                        names.append(number.integer.name)
                elif not integer:
                    data = raw[number.offset : number.offset + 4]
                    if not reads_back(scalar_text(number.read(raw)), data):
                        names.append(number.name)
            return tuple(names)

        return omitted

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
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
        self.field = field

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return (self.field,)

    def form(self, cls: type[Declared]) -> str:
        return f"{self.field}=[STEP,STEP][COUNT,COUNT]"

    def bind(self, cls: type[Declared]) -> Formatter:
        field = cls.FIELDS[self.field]
        start, stop, read, prefix = field.offset, field.offset + field.size, field.read, self.field + "="
        known: dict[bytes, str] = {}

        def text(raw: bytes) -> str:
            data = raw[start:stop]
            found = known.get(data)
            if found is None:
                (a, b), (c, d) = read(raw)
                found = f"{prefix}[{a},{b}][{c},{d}]"
                if len(known) < CACHE_LIMIT:
                    known[data] = found
            return found

        return text

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        word = tokens.need(self.field)
        match = _DMA_PATTERN.fullmatch(word)
        if not match:
            raise FormatError("not a DMA pattern", field=self.field, expected="[a,b][c,d]", got=repr(word))
        a, b, c, d = map(int, match.groups())
        values[self.field] = DmaPattern((a, b), (c, d))


class DmaAddressItem(Item):
    """`src_var_id=… src_var_offset=…`, `src_table_index=…` or `src_addr_imm=…`, then `src_shape_reg=0`."""

    def __init__(self, field: str, *, hex_table: bool) -> None:
        self.field, self.hex_table = field, hex_table

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return (self.field,)

    def form(self, cls: type[Declared]) -> str:
        side = self.field
        return (
            f"{side}_var_id=N {side}_var_offset=N|{side}_table_offset_imm=N {side}_table_index=N|"
            f"{side}_addr_imm=0xN {side}_shape_reg=0"
        )

    def bind(self, cls: type[Declared]) -> Formatter:
        unpack, offset_of = struct.Struct("<II").unpack_from, cls.FIELDS[self.field].offset
        side, number = self.field, hex if self.hex_table else str

        def text(raw: bytes) -> str:
            low, high = unpack(raw, offset_of)
            form = high >> 28
            if form == 1:
                return f"{side}_var_id={high & 0xFFFFFFF} {side}_var_offset={low} {side}_shape_reg=0"
            if form == 2:
                return f"{side}_table_offset_imm={number(low)} {side}_table_index={high & 0xFFFFFFF} {side}_shape_reg=0"
            return f"{side}_addr_imm={high << 32 | low:#x} {side}_shape_reg=0"

        return text

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        side = self.field
        if tokens.take(f"{side}_shape_reg") not in (None, "0"):
            raise FormatError(
                "shape registers have no known place in the word", field=f"{side}_shape_reg", expected="0"
            )
        forms = (
            ("variable", "var_id", "var_offset"),
            ("table", "table_index", "table_offset_imm"),
            ("absolute", "", "addr_imm"),
        )
        for form, index_key, offset_key in forms:
            offset = tokens.take(f"{side}_{offset_key}")
            if offset is not None:
                index = parse_integer(tokens.need(f"{side}_{index_key}"), index_key) if index_key else 0
                values[self.field] = DmaAddress(form, index, parse_integer(offset, offset_key))
                return
        raise FormatError("operand is missing", field=f"{side} address")
