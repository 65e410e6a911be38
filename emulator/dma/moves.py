"""What a transfer does to bytes: copy, cast, and the operations that combine sources.

Source: formats.md 3.6, hardware.md 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dtypes import from_float32, numpy_dtype, to_float32
from emulator.errors import LoadError
from formats.dtypes import Dtype
from formats.errors import UnsupportedError

__all__ = [
    "COMBINING",
    "MOST_SOURCES",
    "OPERATIONS",
    "cast_move",
    "check_operation",
    "combine_move",
    "copy_move",
    "element_dtype",
    "transpose_move",
    "unit_of",
]

Array = npt.NDArray[Any]
Move = Callable[[], None]

# How sources meet; fma scales each of them first.
COMBINING: dict[str, np.ufunc] = {"add": np.add, "fma": np.add, "min": np.minimum, "max": np.maximum}
OPERATIONS = ("copy", "cast", "transpose", *COMBINING)
MOST_SOURCES = 16
_DIMENSIONS = 4


def check_operation(op: str, sources: int, shape: Sequence[int]) -> None:
    """Raise UnsupportedError for an operation that is not documented, LoadError for a wrong number of sources."""
    if op not in OPERATIONS:
        raise UnsupportedError(f"DMA operation {op!r} is not modelled: its definition is not public")
    most = MOST_SOURCES if op in COMBINING else 1
    if sources > most:
        raise LoadError(f"DMA operation {op!r} has {sources} sources; it takes at most {most}")
    if op == "transpose" and shape and (len(shape) != _DIMENSIONS or min(shape) < 1):
        raise LoadError(f"DMA transpose has the shape {list(shape)}; {_DIMENSIONS} positive sizes are needed")


def element_dtype(dtype: Dtype) -> np.dtype[Any]:
    """Return the NumPy type of a DMA element; a type without a name moves as bytes."""
    return np.dtype(np.uint8) if dtype == Dtype.UNKNOWN else numpy_dtype(dtype)


def unit_of(nbytes: int) -> np.dtype[Any]:
    """Return a type whose elements are so many bytes that stay together, the one that NumPy copies fastest."""
    return np.dtype(f"u{nbytes}" if nbytes in (1, 2, 4, 8) else f"V{nbytes}")


def copy_move(source: Array, destination: Array) -> Move:
    """Return the move of raw bytes between views of one element size; shapes may cut the walk differently."""
    if source.shape == destination.shape:

        def same() -> None:
            destination[...] = source

        return same

    def reshaped() -> None:
        destination[...] = np.ascontiguousarray(source).reshape(destination.shape)

    return reshaped


def cast_move(source: Array, source_dtype: Dtype, destination: Array, destination_dtype: Dtype) -> Move:
    """Return the move that converts elements through fp32, rounding to nearest even. Source: hardware.md 4.1."""

    def cast() -> None:
        values = to_float32(source, source_dtype)
        destination[...] = from_float32(values, destination_dtype).reshape(destination.shape)

    return cast


def transpose_move(source: Array, destination: Array, shape: Sequence[int], element: int) -> Move:
    """Return the move that swaps the outermost and the innermost of four dimensions, in elements of some bytes.

    `shape` is what comes out, innermost dimension first, as everything else in a descriptor; the two dimensions between
    stay. Both views are walked as bytes, one block of that shape after the other. The documents give the field, the
    swap is that of nki.isa.dma_transpose, the order of `shape` is inferred.
    """
    inner, first, second, outer = shape
    unit = unit_of(element)
    order = 0, 4, 2, 3, 1
    tile = _reshaped(source, unit, (-1, inner, second, first, outer))
    turned = _reshaped(destination, unit, (-1, outer, second, first, inner))
    if tile is not None and turned is not None:
        taken = tile.transpose(order)

        def in_place() -> None:
            turned[...] = taken

        return in_place

    def transpose() -> None:
        data = np.ascontiguousarray(source).reshape(-1).view(unit).reshape(-1, inner, second, first, outer)
        made = np.ascontiguousarray(data.transpose(order)).reshape(-1)
        destination[...] = made.view(destination.dtype).reshape(destination.shape)

    return transpose


def _reshaped(array: Array, unit: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
    """Return the view of bytes as elements in another shape; None where that would be a copy."""
    if array.shape[-1] % unit.itemsize:
        return None
    try:
        return np.reshape(array.view(unit), shape, copy=False)
    except ValueError:
        return None


def combine_move(
    op: str,
    sources: Sequence[tuple[Array, Dtype]],
    destination: Array,
    destination_dtype: Dtype,
    constant: float | None = None,
    scale: float = 1.0,
) -> Move:
    """Return the move that folds all sources, first to last, in fp32.

    min and max begin with the constant where there is one; fma adds up the sources, each times `scale`.
    """
    function, factor = COMBINING[op], np.float32(scale)
    scales = op == "fma" and scale != 1.0

    def values(view: Array, dtype: Dtype) -> Array:
        found = to_float32(view, dtype).reshape(-1)
        return found * factor if scales else found

    def combine() -> None:
        with np.errstate(all="ignore"):
            total = np.array(values(*sources[0]))
            if constant is not None:
                function(np.float32(constant), total, out=total)
            for view, dtype in sources[1:]:
                function(total, values(view, dtype), out=total)
        destination[...] = from_float32(total, destination_dtype).reshape(destination.shape)

    return combine
