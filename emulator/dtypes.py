"""Element types as arrays: readers that give fp32, writers that round to nearest even.

Both are bound once to a view and then run without allocating. Source: hardware.md 7.1, 7.2, isa.md 11.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from emulator.scratch import scratch
from formats.dtypes import Dtype
from formats.errors import FormatError, UnsupportedError

__all__ = [
    "NARROWING",
    "Array",
    "Chain",
    "Step",
    "bind_load",
    "bind_store",
    "chain",
    "element_type",
    "from_float32",
    "holds_numbers",
    "is_plain_float32",
    "nothing",
    "numpy_dtype",
    "round_tf32",
    "to_float32",
]

Array = npt.NDArray[Any]
Step = Callable[[], object]

_PACKED = frozenset((Dtype.FLOAT8E4FN_X4, Dtype.FLOAT8E5_X4, Dtype.FLOAT4E2_X4))
_NO_NUMBERS = _PACKED | {Dtype.UNKNOWN, Dtype.INT64, Dtype.UINT64}
_FP32_SIZED = frozenset((Dtype.FLOAT32, Dtype.FLOAT32R))
_LIMITS = {
    Dtype.INT8: (-128, 127),
    Dtype.UINT8: (0, 255),
    Dtype.INT16: (-32768, 32767),
    Dtype.UINT16: (0, 65535),
    Dtype.INT32: (-(1 << 31), (1 << 31) - 1),
    Dtype.UINT32: (0, (1 << 32) - 1),
}


class Narrowing(threading.local):
    """Numbers that an integer type did not hold: counted as they are stored, since nothing shows behind it.

    Of each thread: programs in several run at once, and a word's effect stays in its own.
    """

    counting = False
    lost = 0

    def count(self, values: Array, low: float, high: float) -> None:
        """Count the values beyond two limits; NaN is beyond any."""
        self.lost += values.size - int(np.count_nonzero((values >= low) & (values <= high)))


NARROWING = Narrowing()


def element_type(code: int) -> Dtype:
    """Return the element type of a code; a code without a name is a FormatError."""
    if type(code) is Dtype:
        return code
    try:
        return Dtype(code)
    except ValueError:
        raise FormatError("unknown element type code", got=code) from None


@cache
def numpy_dtype(code: int) -> np.dtype[Any]:
    """Return the NumPy type of an element type; packed types give the unsigned integer that holds them."""
    name = element_type(code).numpy_name
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def is_plain_float32(code: int) -> bool:
    """Return whether elements are fp32 bits as they stand, so that a view needs no conversion either way."""
    return code in _FP32_SIZED


def holds_numbers(code: int) -> bool:
    """Return whether engines compute with elements of a type: not with packed ones, nor with 64 bits."""
    return element_type(code) not in _NO_NUMBERS


def _require_number(dtype: Dtype) -> None:
    if dtype in _NO_NUMBERS:
        why = ": engines use fp32 and int32" if dtype in (Dtype.INT64, Dtype.UINT64) else ""
        raise UnsupportedError(f"arithmetic on {dtype.spelling} elements is not modelled{why}")


class Chain:
    """Steps in order, as one."""

    __slots__ = ("steps",)

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps

    def __call__(self) -> None:
        """Run the steps."""
        for step in self.steps:
            step()


def chain(*steps: Step | None) -> Step:
    """Return one callable that runs the given steps in order; None stands for nothing."""
    present = tuple([step for step in steps if step is not None])
    if not present:
        return nothing
    return present[0] if len(present) == 1 else Chain(present)


def nothing() -> None:
    """Do nothing."""


def bind_load(view: Array, code: int) -> tuple[Array, Step | None]:
    """Return an fp32 array of the view's shape and the step that fills it; no step where the view is fp32 itself."""
    dtype = element_type(code)
    _require_number(dtype)
    if is_plain_float32(dtype):
        return view, None
    target = scratch(view.shape, np.float32)
    if dtype is Dtype.FLOAT16:
        return target, _half_loader(view, target)
    if dtype is Dtype.TFLOAT32:
        return target, chain(partial(np.copyto, target, view), partial(round_tf32, target, target))
    return target, partial(np.copyto, target, view, casting="unsafe")


def _half_loader(view: Array, target: Array) -> Step:
    """Return a widening of fp16 by shifts and one exact multiplication, a third of the time of NumPy's own."""
    bits, words, signed = view.view(np.uint16), target.view(np.uint32), target.view(np.int32)
    doubled = scratch(view.shape, np.uint16)
    return partial(_widen_half, view, target, bits, words, signed, doubled)


# The bias of fp32's exponent, 127, less that of fp16's, 15.
_REBIAS = np.float32(2.0**112)


def _widen_half(view: Array, target: Array, bits: Array, words: Array, signed: Array, doubled: Array) -> None:
    np.left_shift(bits, 1, doubled)
    # Doubling drops the sign; fp16's largest exponent, all ones, is 0x7C00.
    if doubled.size and doubled.max() >= 0xF800:  # infinities and NaNs have no place in the shifted scale
        np.copyto(target, view)
        return
    # Sign at the top, exponent and mantissa where fp32 has the low end of its own: three bits of exponent more,
    # thirteen of mantissa. Numbers below the normal ones come out right too, as fp32's below the normal ones until the
    # product.
    np.copyto(words, bits)
    np.left_shift(words, 16, words)
    np.right_shift(signed, 3, signed)
    # The shift fills the three new bits with copies of the sign.
    np.bitwise_and(words, 0x8FFFFFFF, words)
    np.multiply(target, _REBIAS, target)


def round_tf32(values: Array, out: Array) -> None:
    """Round fp32 `values` to the 10 mantissa bits of TF32, to nearest even, into `out`."""
    bits = values.view(np.uint32)
    # 13 bits go. Just under half of what they count, and one more where the last bit that stays is set: ties go to
    # even. A carry out of the mantissa raises the exponent, which is right too.
    rounded = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    rounded &= np.uint32(0xFFFFE000)
    np.copyto(out.view(np.uint32), np.where(np.isfinite(values), rounded, bits))


def bind_store(values: Array, view: Array, code: int) -> Step:
    """Return the step that writes fp32 `values` into `view`.

    Floats round to nearest even; integers round to nearest even and saturate, NaN gives 0 (inferred: nothing public
    says how casts to integers behave, isa.md 16).
    """
    dtype = element_type(code)
    _require_number(dtype)
    if dtype is Dtype.TFLOAT32:
        return partial(_store_tf32, values, view)
    if dtype in _LIMITS:
        low, high = _LIMITS[dtype]
        return partial(_store_integer, values, view, float(low), float(high), scratch(values.shape, np.float64))
    return partial(np.copyto, view, values, casting="unsafe")


def _store_tf32(values: Array, view: Array) -> None:
    rounded = np.empty(values.shape, np.float32)
    round_tf32(np.ascontiguousarray(values), rounded)
    np.copyto(view, rounded)


def _store_integer(values: Array, view: Array, low: float, high: float, scratch: Array) -> None:
    # In float64, where the limits of int32 and uint32 are exact: in fp32 the upper ones would round up, out of range.
    np.rint(values, scratch)
    if NARROWING.counting:
        NARROWING.count(scratch, low, high)
    np.clip(scratch, low, high, out=scratch)
    np.copyto(scratch, 0.0, where=np.isnan(scratch))
    np.copyto(view, scratch, casting="unsafe")


def to_float32(view: Array, code: int) -> Array:
    """Return the elements as a new fp32 array."""
    values, step = bind_load(view, code)
    if step is None:
        return values.copy()
    with np.errstate(all="ignore"):
        step()
    return values


def from_float32(values: Array, code: int) -> Array:
    """Return fp32 `values` as a new array of the element type, rounded as engines round."""
    result = np.empty(values.shape, numpy_dtype(code))
    with np.errstate(all="ignore"):
        bind_store(np.asarray(values, np.float32), result, code)()
    return result
