"""What a transfer does to bytes: copy, cast, and the operations that combine sources.

Source: formats.md 3.6, hardware.md 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dtypes import from_float32, numpy_dtype, to_float32
from formats.dtypes import Dtype
from formats.errors import UnsupportedError

__all__ = ["COMBINING", "OPERATIONS", "cast_move", "check_operation", "combine_move", "copy_move", "element_dtype"]

Array = npt.NDArray[Any]
Move = Callable[[], None]

COMBINING: dict[str, np.ufunc] = {"add": np.add, "min": np.minimum, "max": np.maximum}
OPERATIONS = ("copy", "cast", "transpose", *COMBINING)


def check_operation(op: str, sources: int, shape: Sequence[int], constant: float | None) -> None:
    """Raise UnsupportedError for an operation whose meaning is not public."""
    if op not in OPERATIONS:
        raise UnsupportedError(f"DMA operation {op!r} is not modelled: its definition is not public")
    if op in COMBINING and sources + (constant is not None) < 2:
        raise UnsupportedError(
            f"DMA operation {op!r} with one source is not modelled: what it combines with is not public"
        )
    if op == "transpose" and shape:
        raise UnsupportedError(
            "DMA operation 'transpose' with transpose_shape is not modelled: the meaning of its four "
            "numbers is not public; patterns that say where each element goes are"
        )


def element_dtype(dtype: Dtype) -> np.dtype[Any]:
    """Return the NumPy type of a DMA element; a type without a name moves as bytes."""
    return np.dtype(np.uint8) if dtype == Dtype.UNKNOWN else numpy_dtype(dtype)


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


def combine_move(
    op: str,
    sources: Sequence[tuple[Array, Dtype]],
    destination: Array,
    destination_dtype: Dtype,
    constant: float | None,
) -> Move:
    """Return the move that folds all sources, first to last, in fp32."""
    function = COMBINING[op]

    def combine() -> None:
        total = to_float32(*sources[0])
        with np.errstate(all="ignore"):
            for view, dtype in sources[1:]:
                function(total, to_float32(view, dtype).reshape(total.shape), out=total)
            if constant is not None:
                function(total, np.float32(constant), out=total)
        destination[...] = from_float32(total, destination_dtype).reshape(destination.shape)

    return combine
