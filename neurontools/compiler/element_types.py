"""Element types of HLO: how the device holds each, in device memory and in tiles."""

from __future__ import annotations

import numpy as np

from formats.dtypes import Dtype
from formats.hlo import PrimitiveType, dtype_of
from formats.named_tuple import NamedTuple

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


_NAMES = ("pred", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f8e4m3fn", "f8e4m3",
          "f8e5m2", "f8e3m4")  # fmt: skip
# What is held otherwise than it is given.
_HELD = {"pred": Dtype.UINT8, "s64": Dtype.INT32, "u64": Dtype.UINT32}
_KINDS = {"p": "pred", "s": "signed", "u": "unsigned", "f": "float"}


def _row(name: str) -> ElementType:
    facts = PrimitiveType[name.upper()].facts
    storage = _HELD.get(name) or Dtype.from_numpy_name(facts.numpy_name)
    bits = 1 if name == "pred" else 8 * storage.size
    return ElementType(name, storage, facts.bits // 8, dtype_of(PrimitiveType[name.upper()]), _KINDS[facts.kind], bits)


ELEMENT_TYPES: dict[str, ElementType] = {name: _row(name) for name in _NAMES}


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
