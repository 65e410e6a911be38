"""Element types of the NeuronCore, one table: code, size, profiler spelling, NumPy name."""

from __future__ import annotations

from enum import IntEnum

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["DTYPES", "Dtype", "DtypeInfo"]


class DtypeInfo(NamedTuple):
    """Facts of one element type; `numpy_name` is None where neither NumPy nor ml_dtypes has the type."""

    spelling: str
    size: int
    numpy_name: str | None
    is_float: bool
    provenance: str


class Dtype(IntEnum):
    """Code of an element type: nrt_dtype_t, as words carry it; 0x80 and up are ours (extended dialect).

    Source: isa.md 5, formats.md 10.
    """

    UNKNOWN = 0x00
    UINT64 = 0x01
    INT8 = 0x02
    UINT8 = 0x03
    INT16 = 0x04
    UINT16 = 0x05
    BFLOAT16 = 0x06
    FLOAT16 = 0x07
    INT32 = 0x08
    UINT32 = 0x09
    FLOAT32 = 0x0A
    FLOAT32R = 0x0B
    INT64 = 0x0C
    FLOAT8E3 = 0x0D
    FLOAT8E4 = 0x0E
    FLOAT8E5 = 0x0F
    FLOAT8E4FN = 0x81
    FLOAT8E8M0 = 0x82
    FLOAT8E4FN_X4 = 0x83
    FLOAT8E5_X4 = 0x84
    FLOAT4E2_X4 = 0x85
    TFLOAT32 = 0x86

    size: int
    """Bytes of one element; an attribute that each member gets below, since everything asks for it."""

    # As the code that it equals, in keys of caches; that of enumerations is a Python function of the name.
    __hash__ = int.__hash__

    @property
    def spelling(self) -> str:
        """Return the name as AWS's profiler spells it."""
        return DTYPES[self].spelling

    @property
    def numpy_name(self) -> str:
        """Return the NumPy or ml_dtypes name; packed types give the unsigned integer that holds them."""
        name = DTYPES[self].numpy_name
        if name is None:
            raise FormatError("element type has no array form", got=DTYPES[self].spelling)
        return name

    @property
    def is_float(self) -> bool:
        """Return whether values are floating point."""
        return DTYPES[self].is_float

    @property
    def is_int(self) -> bool:
        """Return whether values are whole numbers; packed types, which an unsigned integer holds, are not."""
        info = DTYPES[self]
        return not info.is_float and info.numpy_name == info.spelling

    @classmethod
    def from_numpy_name(cls, name: str) -> Dtype:
        """Return the type of a NumPy, ml_dtypes or NKI name such as "float32" or "float8_e4m3"."""
        try:
            return _BY_NUMPY[name]
        except KeyError:
            raise FormatError("unknown element type", got=repr(name)) from None

    @classmethod
    def from_spelling(cls, text: str) -> Dtype:
        """Return the type that a profiler spelling names."""
        try:
            return _BY_SPELLING[text]
        except KeyError:
            raise FormatError("unknown element type", got=repr(text)) from None


DTYPES: dict[Dtype, DtypeInfo] = {
    Dtype.UNKNOWN: DtypeInfo("unknown", 1, None, False, "inferred"),
    Dtype.UINT64: DtypeInfo("uint64", 8, "uint64", False, "documented"),
    Dtype.INT8: DtypeInfo("int8", 1, "int8", False, "documented"),
    Dtype.UINT8: DtypeInfo("uint8", 1, "uint8", False, "documented"),
    Dtype.INT16: DtypeInfo("int16", 2, "int16", False, "documented"),
    Dtype.UINT16: DtypeInfo("uint16", 2, "uint16", False, "documented"),
    Dtype.BFLOAT16: DtypeInfo("bfloat16", 2, "bfloat16", True, "observed"),
    Dtype.FLOAT16: DtypeInfo("fp16", 2, "float16", True, "observed"),
    Dtype.INT32: DtypeInfo("int32", 4, "int32", False, "observed"),
    Dtype.UINT32: DtypeInfo("uint32", 4, "uint32", False, "observed"),
    Dtype.FLOAT32: DtypeInfo("fp32", 4, "float32", True, "observed"),
    Dtype.FLOAT32R: DtypeInfo("fp32r", 4, "float32", True, "documented"),
    Dtype.INT64: DtypeInfo("int64", 8, "int64", False, "documented"),
    Dtype.FLOAT8E3: DtypeInfo("fp8e3", 1, "float8_e3m4", True, "documented"),
    Dtype.FLOAT8E4: DtypeInfo("fp8e4", 1, "float8_e4m3", True, "documented"),
    Dtype.FLOAT8E5: DtypeInfo("fp8e5", 1, "float8_e5m2", True, "documented"),
    Dtype.FLOAT8E4FN: DtypeInfo("fp8e4fn", 1, "float8_e4m3fn", True, "ours"),
    Dtype.FLOAT8E8M0: DtypeInfo("fp8e8m0", 1, "float8_e8m0fnu", True, "ours"),
    Dtype.FLOAT8E4FN_X4: DtypeInfo("fp8e4fn_x4", 4, "uint32", False, "ours"),
    Dtype.FLOAT8E5_X4: DtypeInfo("fp8e5_x4", 4, "uint32", False, "ours"),
    Dtype.FLOAT4E2_X4: DtypeInfo("fp4e2_x4", 2, "uint16", False, "ours"),
    Dtype.TFLOAT32: DtypeInfo("tf32", 4, "float32", True, "ours"),
}
for _dtype, _info in DTYPES.items():
    _dtype.size = _info.size

_BY_SPELLING = {info.spelling: code for code, info in DTYPES.items()}
_BY_NUMPY = {
    info.numpy_name: code
    for code, info in reversed(DTYPES.items())
    if info.numpy_name and not info.spelling.endswith("_x4") and info.spelling not in ("fp32r", "tf32")
}
# Names that NKI and engine JSON spell differently (formats.md 3.6, 9).
_BY_NUMPY |= {
    "bool": Dtype.UINT8,
    "bool_": Dtype.UINT8,
    "float32r": Dtype.FLOAT32R,
    "tfloat32": Dtype.TFLOAT32,
    "float8e3": Dtype.FLOAT8E3,
    "float8e4": Dtype.FLOAT8E4,
    "float8e5": Dtype.FLOAT8E5,
    "float8_e4m3fn_x4": Dtype.FLOAT8E4FN_X4,
    "float8_e5m2_x4": Dtype.FLOAT8E5_X4,
    "float4_e2m1fn_x4": Dtype.FLOAT4E2_X4,
}
