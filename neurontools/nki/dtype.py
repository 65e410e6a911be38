"""Element types as NKI kernels see them: strings that also equal NumPy types and dtypes of the same name."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 and the 8-bit floats with NumPy under their names
import numpy as np

from formats.dtypes import Dtype
from formats.errors import FormatError, UnsupportedError
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.tracer import current

__all__ = [
    "NAMES",
    "DType",
    "as_registered",
    "bfloat16",
    "bool_",
    "dtype_of",
    "float4_e2m1fn_x4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fn_x4",
    "float8_e5m2",
    "float8_e5m2_x4",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "int8",
    "int16",
    "int32",
    "is_packed",
    "promote",
    "tfloat32",
    "uint8",
    "uint16",
    "uint32",
]


class DType(str):
    """Name an element type; equal to the NumPy dtype, the NumPy scalar type and the string of the same name.

    `code` is the type of the formats, `itemsize` bytes, `is_float` and `is_int` the arithmetic kind, `packed` tells
    the x4 types.
    """

    __slots__ = ("code", "is_float", "is_int", "itemsize", "packed")

    code: Dtype
    itemsize: int
    is_float: bool
    is_int: bool
    packed: bool

    def __new__(cls, name: str, code: Dtype) -> DType:
        self = super().__new__(cls, name)
        self.code = code
        self.itemsize = code.size
        self.packed = name.endswith("_x4")
        self.is_float = code.is_float
        self.is_int = not self.is_float and not self.packed
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # "bool_" is NumPy's scalar type, torch spells types with its own name in front
        if isinstance(other, str):
            return str.__eq__(self, "bool" if other == "bool_" else other.removeprefix("torch."))
        if isinstance(other, np.dtype):
            return str.__eq__(self, other.name)
        if isinstance(other, type) and issubclass(other, np.generic):
            return str.__eq__(self, np.dtype(other).name)
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of, (str(self),)

    def __repr__(self) -> str:
        return str(self)

    @property
    def numpy(self) -> np.dtype[Any]:
        """Return the NumPy dtype of arrays in and out; packed types are the unsigned integer that holds them."""
        return np.dtype("bool" if str.__eq__(self, "bool") else self.code.numpy_name)


bool_ = DType("bool", Dtype.UINT8)
int8 = DType("int8", Dtype.INT8)
int16 = DType("int16", Dtype.INT16)
int32 = DType("int32", Dtype.INT32)
uint8 = DType("uint8", Dtype.UINT8)
uint16 = DType("uint16", Dtype.UINT16)
uint32 = DType("uint32", Dtype.UINT32)
float16 = DType("float16", Dtype.FLOAT16)
float32 = DType("float32", Dtype.FLOAT32)
bfloat16 = DType("bfloat16", Dtype.BFLOAT16)
tfloat32 = DType("tfloat32", Dtype.TFLOAT32)
float8_e4m3 = DType("float8_e4m3", Dtype.FLOAT8E4)
float8_e4m3fn = DType("float8_e4m3fn", Dtype.FLOAT8E4FN)
float8_e5m2 = DType("float8_e5m2", Dtype.FLOAT8E5)
float8_e8m0fnu = DType("float8_e8m0fnu", Dtype.FLOAT8E8M0)
float8_e4m3fn_x4 = DType("float8_e4m3fn_x4", Dtype.FLOAT8E4FN_X4)
float8_e5m2_x4 = DType("float8_e5m2_x4", Dtype.FLOAT8E5_X4)
float4_e2m1fn_x4 = DType("float4_e2m1fn_x4", Dtype.FLOAT4E2_X4)

_ALL = (
    bool_,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
    float16,
    float32,
    bfloat16,
    tfloat32,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float8_e4m3fn_x4,
    float8_e5m2_x4,
    float4_e2m1fn_x4,
)
_BY_NAME: dict[str, DType] = {str(one): one for one in _ALL} | {"bool_": bool_}
NAMES = frozenset(_BY_NAME)


def dtype_of(value: Any) -> DType:
    """Return the NKI type for a DType, a name, a NumPy dtype or scalar type, or a framework's dtype."""
    if value.__class__ is DType:
        return value
    found = _of_array(value) if isinstance(value, np.dtype) else _found(value)
    if found is None:
        message = f"dtype {value!r} is not an NKI data type (one of {', '.join(_BY_NAME)})"
        running = current()
        raise running.error(message) if running is not None else NkiValidationError(message)
    return found


def _found(value: Any) -> DType | None:
    name = _name_of(value) if value is not None else None
    return _BY_NAME.get(name) if name is not None else None


# NumPy works out the name of a dtype anew each time; the same few come with each launch.
_of_array = functools.lru_cache(maxsize=64)(_found)


def is_packed(kind: np.dtype[Any]) -> bool:
    """Return whether elements are of one of the x4 types, which another package has registered with NumPy."""
    found = _BY_NAME.get(kind.name)
    return found is not None and found.packed


def as_registered(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Return packed elements under their own name where a package has registered that with NumPy, else as they are."""
    if not dtype.packed:
        return array
    try:
        return array.view(np.dtype(str(dtype)))
    except TypeError:
        return array


def _name_of(value: Any) -> str | None:
    if isinstance(value, str):
        return value.removeprefix("torch.")
    if isinstance(value, Dtype):
        return _from_code(value)
    if isinstance(value, np.dtype):
        return value.name
    text = str(value)
    if text.startswith("torch."):
        return text.removeprefix("torch.")
    try:
        return str(np.dtype(value).name)
    except TypeError:
        return None


def _from_code(code: Dtype) -> str | None:
    try:
        return code.numpy_name
    except FormatError:
        return None


# Source: hardware.md 7.3 (NKI language, type promotion).
_INT_RANK = {
    "bool": (1, False),
    "uint8": (8, False),
    "int8": (8, True),
    "uint16": (16, False),
    "int16": (16, True),
    "uint32": (32, False),
    "int32": (32, True),
}
_SIGNED = {8: int8, 16: int16, 32: int32}


@functools.cache
def promote(first: DType, second: DType) -> DType:
    """Return the type of an operation over two tiles: float over int, wider over narrower, fp32 where incomparable."""
    if first == second:
        return first
    if first.packed or second.packed:
        raise UnsupportedError(f"type promotion of the packed types {first} and {second}")
    if first.is_float != second.is_float:
        return first if first.is_float else second
    if first.is_float:
        if first.itemsize != second.itemsize:
            return first if first.itemsize > second.itemsize else second
        # The doc names fp16 + bf16 -> fp32 and e4m3 + e5m2 -> bf16; other pairs of equal width follow these two.
        return bfloat16 if first.itemsize == 1 else float32
    (bits0, signed0), (bits1, signed1) = _INT_RANK[first], _INT_RANK[second]
    if signed0 == signed1:
        return first if bits0 >= bits1 else second
    signed, unsigned = (bits0, bits1) if signed0 else (bits1, bits0)
    if signed > unsigned:
        return _SIGNED[signed]
    return _SIGNED[unsigned * 2] if unsigned < 32 else float32


def scalar_dtype(value: Any) -> DType:
    """Return the weak type of a Python or NumPy scalar: bool -> uint8, int -> int32, float -> fp32."""
    if isinstance(value, (bool, np.bool_)):
        return uint8
    if isinstance(value, (int, np.integer)):
        return int32
    return float32
