"""Events of the runtime's debug stream, both ways: a header of 64 bytes, a payload of 1,024 and the tensor's bytes.

Source: runtime.md 15.
"""

from __future__ import annotations

import struct

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["HEADER_SIZE", "PAYLOAD_SIZE", "TENSOR_READ", "DebugEvent", "decode_event", "encode_event"]

TENSOR_READ = 1
HEADER_SIZE, PAYLOAD_SIZE = 64, 1024
_HEADER = struct.Struct("<QI52x")
_PAYLOAD = struct.Struct("<512sII16s8QQ416x")
_DIMENSIONS = 8


class DebugEvent(NamedTuple):
    """A tensor that a program printed: what stands before it, whence, where to (1 output, 2 error), and its bytes."""

    prefix: str
    core: int
    pipe: int
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def encode_event(event: DebugEvent) -> tuple[bytes, bytes]:
    """Return header and payload; FormatError for more dimensions than the payload has room for."""
    if len(event.shape) > _DIMENSIONS:
        raise FormatError("too many dimensions", field="tensor_shape", expected=_DIMENSIONS, got=len(event.shape))
    shape = (*event.shape, *(0,) * (_DIMENSIONS - len(event.shape)))
    payload = _PAYLOAD.pack(
        _room(event.prefix, 511), event.core, event.pipe, _room(event.dtype, 15), *shape, len(event.data)
    )
    payload += event.data
    return _HEADER.pack(len(payload), TENSOR_READ), payload


def decode_event(header: bytes, payload: bytes) -> DebugEvent:
    """Return what header and payload say; FormatError where they do not fit together."""
    if len(header) != HEADER_SIZE:
        raise FormatError("not a header", field="header", expected=f"{HEADER_SIZE} bytes", got=len(header))
    size, kind = _HEADER.unpack(header)
    if kind != TENSOR_READ:
        raise FormatError("unknown event", field="type", expected=TENSOR_READ, got=kind)
    if size != len(payload) or size < PAYLOAD_SIZE:
        raise FormatError("payload of another size", field="data_size", expected=size, got=len(payload))
    prefix, core, pipe, dtype, *rest = _PAYLOAD.unpack_from(payload)
    *dimensions, nbytes = rest
    if nbytes != size - PAYLOAD_SIZE:
        raise FormatError("tensor of another size", field="tensor_data_size", expected=size - PAYLOAD_SIZE, got=nbytes)
    shape = tuple(dimensions[: next((n for n, length in enumerate(dimensions) if not length), _DIMENSIONS)])
    return DebugEvent(_text(prefix), core, pipe, _text(dtype), shape, payload[PAYLOAD_SIZE:])


def _room(text: str, most: int) -> bytes:
    """Return as many whole characters as there is room for before the NUL that ends a text."""
    return text.encode()[:most].decode("utf-8", "ignore").encode()


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")
