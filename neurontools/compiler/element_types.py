"""Element types of HLO: how the device holds each, in device memory and in tiles."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np

from formats.dtypes import Dtype

__all__ = ["ELEMENT_TYPES", "ElementType", "element_type", "is_float", "is_integer", "is_signed"]


class ElementType(NamedTuple):
    """Say how a type is held: `storage` inside the program, `given` bytes an element of inputs and outputs.

    64-bit integers are held as 32-bit ones inside (compiler.md 5.2).
    """

    name: str
    storage: Dtype
    given: int
    numpy: np.dtype[np.generic]
    kind: str
    bits: int


def _row(name: str, storage: Dtype, given: int, numpy: object, kind: str, bits: int) -> ElementType:
    return ElementType(name, storage, given, np.dtype(numpy), kind, bits)  # type: ignore[call-overload]


# fmt: off
_ROWS = (
    _row("pred",       Dtype.UINT8,      1, np.bool_,                  "pred",     1),
    _row("s8",         Dtype.INT8,       1, np.int8,                   "signed",   8),
    _row("u8",         Dtype.UINT8,      1, np.uint8,                  "unsigned", 8),
    _row("s16",        Dtype.INT16,      2, np.int16,                  "signed",   16),
    _row("u16",        Dtype.UINT16,     2, np.uint16,                 "unsigned", 16),
    _row("s32",        Dtype.INT32,      4, np.int32,                  "signed",   32),
    _row("u32",        Dtype.UINT32,     4, np.uint32,                 "unsigned", 32),
    _row("s64",        Dtype.INT32,      8, np.int64,                  "signed",   32),
    _row("u64",        Dtype.UINT32,     8, np.uint64,                 "unsigned", 32),
    _row("f16",        Dtype.FLOAT16,    2, np.float16,                "float",    16),
    _row("bf16",       Dtype.BFLOAT16,   2, ml_dtypes.bfloat16,        "float",    16),
    _row("f32",        Dtype.FLOAT32,    4, np.float32,                "float",    32),
    _row("f8e4m3fn",   Dtype.FLOAT8E4FN, 1, ml_dtypes.float8_e4m3fn,   "float",    8),
    _row("f8e4m3",     Dtype.FLOAT8E4,   1, ml_dtypes.float8_e4m3,     "float",    8),
    _row("f8e5m2",     Dtype.FLOAT8E5,   1, ml_dtypes.float8_e5m2,     "float",    8),
    _row("f8e3m4",     Dtype.FLOAT8E3,   1, ml_dtypes.float8_e3m4,     "float",    8),
)
# fmt: on
ELEMENT_TYPES: dict[str, ElementType] = {one.name: one for one in _ROWS}


def element_type(name: str) -> ElementType:
    """Return how a type is held; verification has refused those that are in no row."""
    return ELEMENT_TYPES[name]


def is_float(name: str) -> bool:
    """Return whether a type is one of the floats."""
    return ELEMENT_TYPES[name].kind == "float"


def is_integer(name: str) -> bool:
    """Return whether a type holds whole numbers; truth values are none."""
    return ELEMENT_TYPES[name].kind in ("signed", "unsigned")


def is_signed(name: str) -> bool:
    """Return whether a type is an integer with a sign."""
    return ELEMENT_TYPES[name].kind == "signed"
