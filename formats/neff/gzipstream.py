"""One gzip member: inflating it under a cap, and finding the zlib parameters that make it again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["GZIP_MAGIC", "DeflateParameters", "find_parameters", "gzip_member", "header_length", "inflate"]

GZIP_MAGIC = b"\x1f\x8b\x08"
_CHUNK = 1 << 20
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16
_TRAILER = 8


class DeflateParameters(NamedTuple):
    """The settings of zlib: compression level, memory level and strategy; the window is always 32 KiB."""

    level: int
    memory: int = 8
    strategy: int = zlib.Z_DEFAULT_STRATEGY


def inflate(data: bytes | memoryview, cap: int, path: str | None = None) -> tuple[bytearray, int]:
    """Return the content of the gzip member at the start of `data`, and the length of that member.

    Raises FormatError when the stream is damaged or cut off, or would give more than `cap` bytes.
    """
    # a window of 2**15 bytes, plus 16 for gzip's header and trailer
    stream = zlib.decompressobj(wbits=31)
    view = memoryview(data)
    out = bytearray()
    feed: bytes | memoryview = b""
    position = 0
    try:
        while not stream.eof:
            if not feed:
                feed = view[position : position + _CHUNK]
                position += len(feed)
            # One byte over the cap tells a stream that ends exactly there from one that goes on.
            piece = stream.decompress(feed, min(_CHUNK, cap + 1 - len(out)))
            # zlib may hold back output after it took all input, so only an empty answer to no input is the end.
            if not feed and not piece and not stream.eof:
                raise FormatError("gzip stream is cut off", path=path, got=f"{len(out)} bytes inflated")
            out += piece
            if len(out) > cap:
                raise FormatError("archive inflates to more than its limit", path=path, expected=f"at most {cap} bytes")
            feed = stream.unconsumed_tail
    except zlib.error as error:
        raise FormatError(f"gzip stream is damaged ({error})", path=path) from None
    return out, position - len(stream.unused_data)


def header_length(member: bytes | memoryview) -> int:
    """Return the bytes before the deflate stream of a gzip member. Source: RFC 1952, 2.3."""
    flags = member[3]
    at = 10
    if flags & _FEXTRA:
        at += 2 + int.from_bytes(member[at : at + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            at = bytes(member).index(b"\0", at) + 1
    return at + (2 if flags & _FHCRC else 0)


def gzip_member(header: bytes, content: bytes | bytearray, parameters: DeflateParameters) -> bytes:
    """Return a gzip member with the given header bytes, its CRC and length computed."""
    body = b"".join(_deflate(content, parameters))
    return header + body + zlib.crc32(content).to_bytes(4, "little") + (len(content) & 0xFFFFFFFF).to_bytes(4, "little")


def find_parameters(member: bytes | memoryview, content: bytes | bytearray) -> DeflateParameters | None:
    """Return parameters with which this zlib makes the stream of `member` from `content`; None when none does."""
    body = memoryview(member)[header_length(member) : -_TRAILER]
    return next((candidate for candidate in _candidates(member[8]) if _makes(body, content, candidate)), None)


def _makes(body: memoryview, content: bytes | bytearray, parameters: DeflateParameters) -> bool:
    """Compare piece by piece: a wrong candidate differs in its first block, long before the content's end."""
    at = 0
    for piece in _deflate(content, parameters):
        if body[at : at + len(piece)] != piece:
            return False
        at += len(piece)
    return at == len(body)


def _candidates(extra_flags: int) -> Iterator[DeflateParameters]:
    # XFL 4 says "fastest" and 2 says "slowest": real files carry 4 and were made with level 1.
    first = {4: 1, 2: 9}.get(extra_flags, 6)
    levels = (first, *(level for level in (6, 1, 9, 2, 3, 4, 5, 7, 8) if level != first))
    for memory in (8, 9, 7, 6, 5, 4, 3, 2, 1):
        for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_FIXED):
            for level in levels:
                yield DeflateParameters(level, memory, strategy)
        # These strategies do not look at the level.
        yield DeflateParameters(6, memory, zlib.Z_HUFFMAN_ONLY)
        yield DeflateParameters(6, memory, zlib.Z_RLE)
        yield DeflateParameters(0, memory)


def _deflate(content: bytes | bytearray, parameters: DeflateParameters) -> Iterator[bytes]:
    # a negative window makes a bare deflate stream: header and trailer are not zlib's here
    stream = zlib.compressobj(parameters.level, zlib.DEFLATED, -15, parameters.memory, parameters.strategy)
    view = memoryview(content)
    # The pieces do not change the stream: zlib sees one input, whatever the calls.
    step = 1 << 16
    for at in range(0, len(view), step):
        piece = stream.compress(view[at : at + step])
        if piece:
            yield piece
    yield stream.flush()
