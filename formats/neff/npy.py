"""NumPy's `.npy` files without NumPy: header and payload of constants, both ways."""

from __future__ import annotations

import re
from math import prod

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["NPY_MAGIC", "Npy", "npy_bytes", "parse_npy"]

NPY_MAGIC = b"\x93NUMPY"
# The header is a Python literal of a fixed form; a pattern reads it without evaluating anything.
_HEADER = re.compile(
    r"\s*\{\s*'descr':\s*'([^']{1,32})',\s*'fortran_order':\s*(True|False),\s*"
    r"'shape':\s*\(((?:\d{1,20}(?:,\s*\d{1,20})*,?)?)\),?\s*\}\s*"
)
_DESCR = re.compile(r"[<>|=]?[a-zA-Z](\d{1,4})")
_ALIGNMENT = 64
# What every version of NumPy can make an array of.
_MOST_DIMENSIONS, _MOST_BYTES = 32, (1 << 63) - 1


class Npy(NamedTuple):
    """An array file taken apart: `descr` as NumPy writes it (`<f2`, `<V2` for bfloat16), shape, payload bytes."""

    descr: str
    fortran_order: bool
    shape: tuple[int, ...]
    payload: bytes

    @property
    def item_size(self) -> int:
        """Return the bytes of one element."""
        match = _DESCR.fullmatch(self.descr)
        return int(match[1]) if match else 0


def parse_npy(data: bytes, where: str) -> Npy:
    """Return header and payload of an array file.

    Raises FormatError for another format, an element type that is not plain, a shape that no array can have, and a
    payload of another length than shape and type give.
    """
    if not data.startswith(NPY_MAGIC) or len(data) < 10:
        raise FormatError("not a NumPy file", path=where, offset=0, got=data[:8].hex(" "))
    # versions 2 and 3 have four bytes for the length of the header instead of two
    wide = data[6] >= 2
    start = 12 if wide else 10
    length = int.from_bytes(data[8:start], "little")
    if len(data) < start + length:
        raise FormatError(
            "NumPy header is cut off", path=where, offset=8, expected=f"{length} bytes", got=len(data) - start
        )
    match = _HEADER.fullmatch(data[start : start + length].decode("latin-1"))
    if match is None:
        raise FormatError("NumPy header is not understood", path=where, offset=start)
    shape = tuple(int(part) for part in match[3].split(",") if part)
    found = Npy(match[1], match[2] == "True", shape, data[start + length :])
    expected = found.item_size
    if not expected:
        raise FormatError("NumPy element type is not understood", path=where, offset=start, got=repr(found.descr))
    if len(shape) > _MOST_DIMENSIONS or expected * prod(filter(None, shape)) > _MOST_BYTES:
        raise FormatError("NumPy shape is too large", path=where, offset=start, got=match[3][:80])
    expected *= prod(shape)
    if len(found.payload) != expected:
        raise FormatError(
            "NumPy payload has the wrong length",
            path=where,
            offset=start + length,
            expected=expected,
            got=len(found.payload),
        )
    return found


def npy_bytes(descr: str, shape: tuple[int, ...], payload: bytes) -> bytes:
    """Return an array file, version 1.0, header padded to 64 bytes.

    Raises FormatError when the payload's length is not what type and shape give.
    """
    dims = "".join(f"{extent}, " for extent in shape).rstrip() if len(shape) == 1 else ", ".join(map(str, shape))
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}"
    text += " " * (-(len(NPY_MAGIC) + 4 + len(text) + 1) % _ALIGNMENT) + "\n"
    out = NPY_MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text.encode("ascii") + payload
    parse_npy(out, "new array file")
    return out
