"""The protobuf wire format, as much of it as debug info needs: tags, varints, byte strings; both ways.

The protobuf library is not needed for it: the schema is inferred (formats.md 3.9), not published, and reading by tag
keeps `source_of` fast on streams of tens of thousands of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from formats.errors import FormatError

__all__ = ["Value", "packed", "read_fields", "unpack_varints", "varint", "write_bytes", "write_varint"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes


def read_fields(data: bytes, where: str) -> Iterator[tuple[int, Value]]:
    """Yield (field number, value) of a message: an int for varints and fixed numbers, bytes for everything else.

    Raises FormatError for a cut or damaged message, at the place where it is.
    """
    at, end = 0, len(data)
    while at < end:
        start = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(data, at, where)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise FormatError("debug info is damaged", path=where, offset=start, field="tag", got=tag)
        value: Value
        if kind == VARINT:
            value, at = _varint(data, at, where)
        elif kind == BYTES:
            length, at = _varint(data, at, where)
            if at + length > end:
                raise FormatError(
                    "debug info is cut off", path=where, offset=start, expected=f"{length} bytes", got=end - at
                )
            value = data[at : at + length]
            at += length
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if at + size > end:
                raise FormatError(
                    "debug info is cut off", path=where, offset=start, expected=f"{size} bytes", got=end - at
                )
            value = int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise FormatError("debug info is damaged", path=where, offset=start, field="wire type", got=kind)
        yield number, value


def unpack_varints(value: Value, where: str) -> tuple[int, ...]:
    """Return the numbers of a packed field; one number for a field that was not packed."""
    if isinstance(value, int):
        return (value,)
    numbers = []
    at = 0
    while at < len(value):
        number, at = _varint(value, at, where)
        numbers.append(number)
    return tuple(numbers)


_SHORT = [bytes([number]) for number in range(0x80)]


def varint(number: int) -> bytes:
    """Return a number of up to 64 bits, seven bits a byte, lowest first."""
    if number < 0x80:
        return _SHORT[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def write_varint(field: int, number: int) -> bytes:
    """Return a varint field."""
    return varint(field << 3 | VARINT) + varint(number)


def write_bytes(field: int, value: bytes | str) -> bytes:
    """Return a byte string, text or message field."""
    raw = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
    if field < 16 and len(raw) < 0x80:
        return _SHORT[field << 3 | BYTES] + _SHORT[len(raw)] + raw
    return varint(field << 3 | BYTES) + varint(len(raw)) + raw


def packed(field: int, numbers: Iterable[int]) -> bytes:
    """Return a packed field; nothing when there are no numbers."""
    body = b"".join(varint(number) for number in numbers)
    return write_bytes(field, body) if body else b""


def _varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    result = shift = 0
    start = at
    while True:
        if at >= len(data):
            raise FormatError("debug info is cut off", path=where, offset=start, field="varint")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            # ten bytes carry 70 bits: those beyond 64 are dropped, as protobuf does
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise FormatError("debug info is damaged", path=where, offset=start, field="varint", got="over ten bytes")
