"""Shapes of HLO values: element types, dimensions, layouts, tuples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from formats.named_tuple import NamedTuple

__all__ = [
    "MOST_DIMENSION",
    "MOST_RANK",
    "Layout",
    "PrimitiveType",
    "ProgramShape",
    "Shape",
    "TypeFacts",
    "array",
    "scalar",
    "tuple_of",
]


MOST_RANK = 255
MOST_DIMENSION = 1 << 48  # elements along one dimension: more than any address


class PrimitiveType(IntEnum):
    """Element type of a shape.  Source: compiler.md 1.2."""

    # fmt: off
    INVALID = 0
    PRED = 1
    S1 = 30; S2 = 26; S4 = 21; S8 = 2; S16 = 3; S32 = 4; S64 = 5  # noqa: E702 (a table)
    U1 = 31; U2 = 27; U4 = 22; U8 = 6; U16 = 7; U32 = 8; U64 = 9  # noqa: E702 (a table)
    F16 = 10; F32 = 11; BF16 = 16; F64 = 12                       # noqa: E702 (a table)
    F8E5M2 = 19; F8E4M3 = 28; F8E4M3FN = 20; F8E4M3B11FNUZ = 23   # noqa: E702 (a table)
    F8E3M4 = 29; F8E5M2FNUZ = 24; F8E4M3FNUZ = 25                 # noqa: E702 (a table)
    F4E2M1FN = 32; F8E8M0FNU = 33                                 # noqa: E702 (a table)
    C64 = 15; C128 = 18                                           # noqa: E702 (a table)
    TUPLE = 13; OPAQUE = 14; TOKEN = 17; BUFFER = 34              # noqa: E702 (a table)
    # fmt: on

    @property
    def text(self) -> str:
        """Return the name as HLO text spells it: f32, pred, token."""
        return self.name.lower()

    @property
    def facts(self) -> TypeFacts:
        """Return size and kind; of tuples, tokens and opaque values all are nought."""
        return _FACTS.get(self, _NO_FACTS)

    @property
    def bits(self) -> int:
        """Return the bits of one element: 8 for a predicate."""
        return self.facts.bits

    @property
    def numpy_name(self) -> str:
        """Return the NumPy or ml_dtypes name, '' where values of the type are no arrays."""
        return self.facts.numpy_name

    @property
    def is_float(self) -> bool:
        """Return whether values are real floating point numbers."""
        return self.facts.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Return whether values are complex."""
        return self.facts.kind == "c"

    @property
    def is_signed(self) -> bool:
        """Return whether values are signed integers."""
        return self.facts.kind == "s"

    @property
    def is_unsigned(self) -> bool:
        """Return whether values are unsigned integers."""
        return self.facts.kind == "u"

    @property
    def is_integral(self) -> bool:
        """Return whether values are integers; predicates are not."""
        return self.facts.kind in ("s", "u")

    @property
    def is_array(self) -> bool:
        """Return whether values are arrays of elements, not tuples, tokens or opaque."""
        return self in _FACTS


class TypeFacts(NamedTuple):
    """What an element type is: bits, NumPy name, kind (p predicate, s and u integers, f floating point, c complex)."""

    bits: int
    numpy_name: str
    kind: str


_NO_FACTS = TypeFacts(0, "", "")
_T = PrimitiveType
# fmt: off
_FACTS: dict[PrimitiveType, TypeFacts] = {
    _T.PRED: TypeFacts(8, "bool", "p"),
    _T.S1: TypeFacts(1, "int1", "s"), _T.S2: TypeFacts(2, "int2", "s"), _T.S4: TypeFacts(4, "int4", "s"),
    _T.S8: TypeFacts(8, "int8", "s"), _T.S16: TypeFacts(16, "int16", "s"), _T.S32: TypeFacts(32, "int32", "s"),
    _T.S64: TypeFacts(64, "int64", "s"),
    _T.U1: TypeFacts(1, "uint1", "u"), _T.U2: TypeFacts(2, "uint2", "u"), _T.U4: TypeFacts(4, "uint4", "u"),
    _T.U8: TypeFacts(8, "uint8", "u"), _T.U16: TypeFacts(16, "uint16", "u"), _T.U32: TypeFacts(32, "uint32", "u"),
    _T.U64: TypeFacts(64, "uint64", "u"),
    _T.F16: TypeFacts(16, "float16", "f"), _T.F32: TypeFacts(32, "float32", "f"), _T.F64: TypeFacts(64, "float64", "f"),
    _T.BF16: TypeFacts(16, "bfloat16", "f"), _T.F8E5M2: TypeFacts(8, "float8_e5m2", "f"),
    _T.F8E4M3: TypeFacts(8, "float8_e4m3", "f"), _T.F8E4M3FN: TypeFacts(8, "float8_e4m3fn", "f"),
    _T.F8E4M3B11FNUZ: TypeFacts(8, "float8_e4m3b11fnuz", "f"), _T.F8E3M4: TypeFacts(8, "float8_e3m4", "f"),
    _T.F8E5M2FNUZ: TypeFacts(8, "float8_e5m2fnuz", "f"), _T.F8E4M3FNUZ: TypeFacts(8, "float8_e4m3fnuz", "f"),
    _T.F4E2M1FN: TypeFacts(4, "float4_e2m1fn", "f"), _T.F8E8M0FNU: TypeFacts(8, "float8_e8m0fnu", "f"),
    _T.C64: TypeFacts(64, "complex64", "c"), _T.C128: TypeFacts(128, "complex128", "c"),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in memory: dimensions from the fastest varying to the slowest, tiles, memory space."""

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    element_size_in_bits: int = 0
    memory_space: int = 0

    @property
    def is_default(self) -> bool:
        """Return whether the last dimension varies fastest and nothing else is asked for."""
        rank = len(self.minor_to_major)
        return self.minor_to_major == tuple(range(rank - 1, -1, -1)) and not self.tiles and not self.memory_space


@dataclass(frozen=True, slots=True)
class Shape:
    """Element type and dimensions of an array, or the shapes of a tuple.  Two that differ in layout only are equal.

    `dynamic` is empty where every dimension is static; else `dimensions` holds upper bounds, -1 for none.
    """

    element_type: PrimitiveType
    dimensions: tuple[int, ...] = ()
    tuple_shapes: tuple[Shape, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = field(default=None, compare=False)

    @property
    def rank(self) -> int:
        """Return the number of dimensions."""
        return len(self.dimensions)

    @property
    def size(self) -> int:
        """Return the number of elements of an array."""
        return math.prod(self.dimensions)

    @property
    def nbytes(self) -> int:
        """Return the bytes of an array, types below eight bits packed; of a tuple, those of its parts."""
        if self.is_tuple:
            return sum(part.nbytes for part in self.tuple_shapes)
        return -(-self.size * self.element_type.bits // 8)

    @property
    def is_tuple(self) -> bool:
        """Return whether the value is a tuple."""
        return self.element_type is PrimitiveType.TUPLE

    @property
    def is_array(self) -> bool:
        """Return whether the value is an array; scalars are."""
        return self.element_type.is_array

    @property
    def is_scalar(self) -> bool:
        """Return whether the value is an array without dimensions."""
        return not self.dimensions and self.is_array

    @property
    def is_dynamic(self) -> bool:
        """Return whether a dimension here or in a part is only known when the program runs."""
        return bool(self.dynamic) or any(part.is_dynamic for part in self.tuple_shapes)

    @property
    def numpy_name(self) -> str:
        """Return the NumPy or ml_dtypes name of the elements."""
        return self.element_type.numpy_name

    def leaves(self) -> Iterator[tuple[tuple[int, ...], Shape]]:
        """Give each part that is no tuple, with its index path, depth first."""
        if not self.is_tuple:
            yield (), self
        for number, part in enumerate(self.tuple_shapes):
            for index, leaf in part.leaves():
                yield (number, *index), leaf

    def with_type(self, element_type: PrimitiveType) -> Shape:
        """Return an array of the same dimensions and another element type."""
        return Shape(element_type, self.dimensions, dynamic=self.dynamic)

    def with_dimensions(self, dimensions: tuple[int, ...]) -> Shape:
        """Return an array of the same element type and other, static dimensions."""
        return Shape(self.element_type, dimensions)

    def __str__(self) -> str:
        if self.is_tuple:
            return f"({', '.join(map(str, self.tuple_shapes))})"
        if not self.is_array:
            return f"{self.element_type.text}[]"
        dynamic = self.dynamic or (False,) * self.rank
        sizes = ["?" if size < 0 else f"<={size}" if free else str(size)
                 for size, free in zip(self.dimensions, dynamic, strict=True)]  # fmt: skip
        return f"{self.element_type.text}[{','.join(sizes)}]"


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """Parameters and result of a computation."""

    parameters: tuple[Shape, ...]
    result: Shape
    parameter_names: tuple[str, ...] = ()


def array(element_type: PrimitiveType, *dimensions: int) -> Shape:
    """Return the shape of an array."""
    return Shape(element_type, dimensions)


def scalar(element_type: PrimitiveType) -> Shape:
    """Return the shape of one element."""
    return Shape(element_type)


def tuple_of(*parts: Shape) -> Shape:
    """Return the shape of a tuple."""
    return Shape(PrimitiveType.TUPLE, tuple_shapes=parts)
