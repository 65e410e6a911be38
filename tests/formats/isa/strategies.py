"""Hypothesis strategies for instructions, derived from the declared kinds of their fields."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from formats import isa
from formats.isa.extension_dma import WidePattern
from formats.isa.field import BitFlag, Bytes, Enumeration, Field, Float32, Immediate, Integer, Text
from formats.isa.operand import DmaAddressField, DmaPatternField, Pattern, Pointer

REAL = tuple(c for c in isa.CLASSES if c.CODE < 0)
EXTENSION = tuple(c for c in isa.CLASSES if c.CODE >= 0)
U32 = st.integers(0, (1 << 32) - 1)


def values_of(field: Field[Any]) -> st.SearchStrategy[Any]:
    """Return every value that a field can hold."""
    if isinstance(field, BitFlag):
        return st.integers(0, 1)
    if isinstance(field, Enumeration):
        return st.integers(0, field.limit) | st.sampled_from(sorted(m for m in field.enum if m <= field.limit))
    if isinstance(field, Immediate):
        return st.floats(width=32, allow_nan=False) | U32.map(isa.Bits)
    if isinstance(field, Float32):
        return st.floats(width=32, allow_nan=False)
    if isinstance(field, Integer):
        return st.integers(*field.limits)
    if isinstance(field, Pattern):
        step, count = (31, 32) if field.wide else (15, 16)
        steps = st.tuples(*[st.integers(-(1 << step), (1 << step) - 1)] * field.dims)
        counts = st.tuples(*[st.integers(0, (1 << count) - 1)] * field.dims)
        return st.builds(isa.AccessPattern, U32, steps, counts)
    if isinstance(field, Pointer):
        return U32
    if isinstance(field, DmaAddressField):
        return st.builds(
            isa.DmaAddress, st.sampled_from(["variable", "table"]), st.integers(0, (1 << 28) - 1), U32
        ) | st.builds(isa.DmaAddress, st.just("absolute"), st.just(0), st.integers(0, (1 << 60) - 1))
    if isinstance(field, DmaPatternField):
        steps = st.tuples(*[st.integers(-(1 << 31), (1 << 31) - 1)] * 2)
        return st.builds(isa.DmaPattern, steps, st.tuples(*[st.integers(0, 65535)] * 2))
    if isinstance(field, WidePattern):
        steps = st.tuples(*[st.integers(-(1 << 31), (1 << 31) - 1)] * 4)
        return st.builds(isa.DmaPattern, steps, st.tuples(*[U32] * 4))
    if isinstance(field, Bytes):
        return st.binary(min_size=field.size, max_size=field.size).map(tuple)
    if isinstance(field, Text):
        return st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=field.size)
    raise TypeError(f"no values for {type(field).__name__}")


def settable(cls: type[isa.Instruction]) -> dict[str, Field[Any]]:
    """Return the fields whose values do not reach into another field: no aliases, no flags that a pointer sets."""
    flags = {f.flag for f in cls.FIELDS.values() if isinstance(f, Pointer) and f.flag is not None}
    flags |= {f.integer for f in cls.FIELDS.values() if isinstance(f, Immediate)}
    return {n: f for n, f in cls.FIELDS.items() if not f.alias and n != "opcode" and f not in flags}


@st.composite
def field_values(draw: st.DrawFn, cls: type[isa.Instruction]) -> dict[str, Any]:
    """Return values for some of the fields of a class."""
    fields = settable(cls)
    names = draw(st.lists(st.sampled_from(sorted(fields)), unique=True))
    return {name: draw(values_of(fields[name])) for name in names}


def own_bytes(cls: type[isa.Instruction]) -> st.SearchStrategy[bytes]:
    """Return any bytes that decode as `cls` in the extended dialect: its opcode, its extension header."""
    fresh = cls.defaults()

    def shape(raw: bytes) -> bytes:
        word = bytearray(raw)
        word[0] = fresh[0]
        if cls.CODE >= 0:
            word[12:16] = fresh[12:16]
        return bytes(word)

    def sparse(edits: list[tuple[int, int]]) -> bytes:
        word = bytearray(fresh)
        for offset, value in edits:
            word[offset] = value
        return shape(bytes(word))

    some = st.lists(st.tuples(st.integers(1, cls.SIZE - 1), st.integers(0, 255)), max_size=6).map(sparse)
    return some | st.binary(min_size=cls.SIZE, max_size=cls.SIZE).map(shape)
