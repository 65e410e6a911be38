"""Literals: the values of constants, arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.hlo.shapes import PrimitiveType, Shape

if TYPE_CHECKING:
    import numpy

__all__ = ["Literal", "dtype_of", "literal_of", "type_of"]


_MOST_NUMPY = 64  # dimensions of an array since NumPy 2


@dataclass(frozen=True, slots=True)
class Literal:
    """A value: the elements of an array in row-major order, little endian, or the parts of a tuple.

    Types below eight bits take one byte an element here, as in NumPy; files pack them.
    """

    shape: Shape
    data: bytes = b""
    parts: tuple[Literal, ...] = ()

    def array(self) -> numpy.ndarray[Any, Any]:
        """Return the elements as a read-only array.  Raises FormatError for what is no array, or none of NumPy's."""
        import numpy as np  # deferred: start-up

        if self.shape.rank > _MOST_NUMPY:
            raise FormatError("more dimensions than an array can have", expected=f"at most {_MOST_NUMPY}",
                              got=self.shape.rank)  # fmt: skip
        return np.frombuffer(self.data, dtype_of(self.shape.element_type)).reshape(self.shape.dimensions)


@cache
def dtype_of(element_type: PrimitiveType) -> numpy.dtype[Any]:
    """Return the NumPy type of an element type.  Raises FormatError for tuples, tokens and opaque values."""
    import ml_dtypes  # deferred: start-up
    import numpy as np  # deferred: start-up

    name = element_type.numpy_name
    if not name or (not hasattr(np, name) and not hasattr(ml_dtypes, name)):
        raise FormatError("values of this type are no arrays", got=element_type.text)
    found: numpy.dtype[Any] = np.dtype(getattr(np if hasattr(np, name) else ml_dtypes, name))
    return found


@cache
def type_of(numpy_name: str) -> PrimitiveType:
    """Return the element type of a NumPy or ml_dtypes name.  Raises FormatError for others."""
    for element_type in PrimitiveType:
        if element_type.numpy_name == numpy_name:
            return element_type
    raise FormatError("no element type of HLO has this NumPy type", got=numpy_name)


def literal_of(values: numpy.ndarray[Any, Any]) -> Literal:
    """Return an array as a literal."""
    import numpy as np  # deferred: start-up

    return Literal(Shape(type_of(values.dtype.name), tuple(values.shape)), np.ascontiguousarray(values).tobytes())
