"""Operands of a word as arrays that agree in shape.

Elements correspond in the order of the walk: dimension 0 fastest, whatever the counts of each pattern (isa.md 11). So
the free dimensions of every operand are brought to those of the output, by a view where strides allow it, through a
packed copy where they do not.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from emulator.dtypes import (
    Array,
    Step,
    bind_load,
    bind_store,
    element_type,
    from_float32,
    holds_numbers,
    is_plain_float32,
    numpy_dtype,
)
from emulator.faults import FaultError, fault_error
from emulator.scratch import scratch
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import Bits, Instruction
from formats.isa.field import Immediate

__all__ = [
    "bind_once",
    "elements",
    "float_input",
    "float_output",
    "immediate_float",
    "immediate_integer",
    "packed",
    "per_partition",
    "pointer_dtype",
    "raw_input",
    "raw_view",
    "refuse",
    "require_elements",
    "reshaped",
    "scalar_bits",
    "squeezed",
]


def squeezed(view: Array) -> Array:
    """Return the view without dimensions of one element, at least two-dimensional: (partitions, elements...)."""
    if view.ndim == 2:
        return view
    shape = tuple(count for count in view.shape[1:] if count != 1)
    return view.reshape((view.shape[0], *shape) if shape else (view.shape[0], 1), copy=False)


def elements(view: Array) -> int:
    """Return the elements in each partition."""
    return view.size // view.shape[0] if view.shape[0] else 0


def _agree(word: Instruction, view: Array, shape: tuple[int, ...], name: str) -> None:
    require_elements(word, name, view, prod(shape[1:]))
    if view.shape[0] != shape[0]:
        raise refuse(word, "operands differ in partitions", name, f"{shape[0]} partitions", f"{view.shape[0]}")


def refuse(word: Instruction, what: str, operand: str, expected: str, got: str) -> FaultError:
    """Return the fault for operands that contradict each other."""
    return fault_error("operand", f"{word.NAME}: {what}", operand=operand, expected=expected, got=got)


def require_elements(word: Instruction, name: str, view: Array, wanted: int) -> None:
    """Raise a fault unless an operand has `wanted` elements in each partition."""
    if elements(view) != wanted:
        raise refuse(word, "operands differ in size", name, f"{wanted} elements per partition", f"{elements(view)}")


def reshaped(view: Array, shape: tuple[int, ...]) -> Array | None:
    """Return the view in another shape if its strides allow it without a copy."""
    if view.shape == shape:
        return view
    try:
        return view.reshape(shape, copy=False)
    except ValueError:
        return None


def packed(view: Array, shape: tuple[int, ...]) -> tuple[Array, Step]:
    """Return a packed array of `shape` and the step that copies the view into it, bits unchanged."""
    target = scratch(view.shape, view.dtype)
    return target.reshape(shape), partial(np.copyto, target, view)


def float_input(
    word: Instruction, view: Array, code: int, shape: tuple[int, ...], name: str
) -> tuple[Array, Step | None]:
    """Return the operand as fp32 of `shape` and the step that refreshes it, None where it is a view of the memory."""
    _agree(word, view, shape, name)
    view = squeezed(view)
    same = reshaped(view, shape)
    if same is not None:
        return bind_load(same, code)
    # No view has this shape: the elements are copied, or converted into an array that can be reshaped.
    if is_plain_float32(code):
        return packed(view, shape)
    values, step = bind_load(view, code)
    return values.reshape(shape), step


def float_output(view: Array, code: int) -> tuple[Array, Step | None]:
    """Return where to compute fp32 results and the step that stores them, None where they are computed in place."""
    if is_plain_float32(code):
        return view, None
    values = scratch(view.shape, np.float32)
    return values, bind_store(values, view, code)


def raw_view(view: Array) -> Array:
    """Return the elements as unsigned integers of their width."""
    return view.view(np.dtype(f"u{view.dtype.itemsize}"))


def raw_input(word: Instruction, view: Array, shape: tuple[int, ...], name: str) -> tuple[Array, Step | None]:
    """Return the operand's bits as unsigned integers of `shape` and the step that refreshes them, if any."""
    _agree(word, view, shape, name)
    view = raw_view(squeezed(view))
    same = reshaped(view, shape)
    return (same, None) if same is not None else packed(view, shape)


def pointer_dtype(word: Instruction, name: str) -> Dtype:
    """Return the element type behind a pointer operand."""
    dtype = type(word).OPERANDS[name].dtype
    return dtype if isinstance(dtype, Dtype) else element_type(getattr(word, dtype))


def per_partition(word: Instruction, name: str, pointer: Array, ndim: int) -> tuple[Array, Step | None]:
    """Return one fp32 value per partition, shaped for `ndim` dimensions, and the step that refreshes it, if any."""
    values, step = bind_load(pointer.reshape((pointer.shape[0], 1), copy=False), pointer_dtype(word, name))
    return values.reshape((values.shape[0],) + (1,) * (ndim - 1), copy=False), step


def immediate_integer(word: Instruction, name: str, signed: bool) -> int:
    """Return a 32-bit immediate as an integer; a float must have an integral value."""
    value = getattr(word, name)
    if isinstance(value, Bits):
        return value.value - (1 << 32) if signed and value.value >= 1 << 31 else value.value
    if not float(value).is_integer():
        raise UnsupportedError(f"{word.NAME}: {name} {value} is no integer, and the operator works on integers")
    return int(value)


def immediate_float(word: Instruction, name: str, signed: bool = True) -> np.float32:
    """Return a 32-bit immediate as fp32; integer bits are converted."""
    value = getattr(word, name)
    if isinstance(type(word).FIELDS[name], Immediate) and isinstance(value, Bits):
        value = immediate_integer(word, name, signed)
    return np.float32(value)


def scalar_bits(value: float | np.floating[Any], code: int) -> Any:
    """Return the bits of a number in a type as an unsigned integer: floats as a tile stores, integers wrap."""
    dtype = numpy_dtype(code)
    bits = np.dtype(f"u{dtype.itemsize}")
    # Types that hold no number of fp32 (64 bits, packed ones) take whole numbers as they stand; others are refused.
    whole = isinstance(value, int) or (not holds_numbers(code) and float(value).is_integer())
    if whole and dtype.kind in "iu":
        return bits.type(int(value) & ((1 << 8 * dtype.itemsize) - 1))
    return from_float32(np.array([value], np.float32), code).view(bits)[0]


def bind_once(view: Array, dtype: np.dtype[Any]) -> tuple[Array, Step]:
    """Return an array of another integer type and the step that converts the view into it."""
    target = scratch(view.shape, dtype)
    return target, partial(np.copyto, target, view, casting="unsafe")
