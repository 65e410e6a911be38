"""Element types as arrays: readers that give fp32, writers that round to nearest even.

Both are bound once to a view and then run without allocating. Source: hardware.md 7.1, 7.2, isa.md 11.
"""

from __future__ import annotations

import sys
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
    "bind_load_into",
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

    `rounded` are integers that fp32 does not hold, counted as they are read to be computed with.
    Of each thread: programs in several run at once, and a word's effect stays in its own.
    """

    counting = False
    lost = 0
    rounded = 0

    def count(self, values: Array, low: float, high: float) -> None:
        """Count the values beyond two limits; NaN is beyond any."""
        self.lost += values.size - int(np.count_nonzero((values >= low) & (values <= high)))

    def compare(self, integers: Array, values: Array) -> None:
        """Count the integers that are others as fp32 values."""
        self.rounded += int(np.count_nonzero(values.astype(np.float64) != integers))


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
    return target, bind_load_into(view, code, target)


def bind_load_into(view: Array, code: int, target: Array) -> Step:
    """Return the step that converts the elements into an fp32 array."""
    dtype = element_type(code)
    _require_number(dtype)
    if dtype is Dtype.FLOAT16 and view.size > _FEW_HALVES:
        return _half_loader(view, target)
    if _is_byte_float(dtype) and view.size > _FEW_BYTES:
        return partial(np.take, _widened_bytes(dtype), view.view(np.uint8), None, target, "clip")
    if dtype is Dtype.TFLOAT32:
        return chain(partial(np.copyto, target, view), partial(round_tf32, target, target))
    if dtype.is_int and dtype.size > 2:
        return partial(_load_wide_integers, view, target)
    return partial(np.copyto, target, view, casting="unsafe")


def _load_wide_integers(view: Array, target: Array) -> None:
    np.copyto(target, view, casting="unsafe")
    if NARROWING.counting:
        NARROWING.compare(view, target)


# As many fp16, and fp8, NumPy itself converts in less time.
_FEW_HALVES, _FEW_BYTES = 2048, 256


def _is_byte_float(dtype: Dtype) -> bool:
    return dtype.is_float and dtype.size == 1


@cache
def _widened_bytes(dtype: Dtype) -> Array:
    """Return the number of every fp8."""
    return np.arange(1 << 8, dtype=np.uint8).view(numpy_dtype(dtype)).astype(np.float32)


@cache
def _narrowed_words(dtype: Dtype) -> Array:
    """Return the fp8 of every fp32, by its upper 16 bits, the last of which stands for all below it as well.

    That last bit tells what lies beside a number that fp8 holds and what lies beside the middle of two, as all that it
    stands for would: eight bits of mantissa are four more than any fp8 has.
    """
    with np.errstate(all="ignore"):
        words = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
        return words.view(np.float32).astype(numpy_dtype(dtype)).view(np.uint8)


def _half_loader(view: Array, target: Array) -> Step:
    """Return a widening of fp16 by shifts and one exact multiplication, a third of the time of NumPy's own."""
    bits = view.view(np.uint16)
    packed = bits if bits.flags.c_contiguous else scratch(view.shape, np.uint16)
    doubled = scratch(view.shape, np.uint16)
    return partial(
        _widen_half,
        view,
        target,
        bits,
        packed,
        packed.view(np.int16),
        doubled,
        target.view(np.uint32),
        target.view(np.int32),
    )


# The bias of fp32's exponent, 127, less that of fp16's, 15.
_REBIAS = np.float32(2.0**112)


def _widen_half(
    view: Array, target: Array, bits: Array, packed: Array, signed: Array, doubled: Array, words: Array, wide: Array
) -> None:
    if packed is not bits:
        np.copyto(packed, bits)
    # Sign at the top, exponent and mantissa where fp32 has the low end of its own: three bits of exponent more,
    # thirteen of mantissa. Numbers below the normal ones come out right too, as fp32's below the normal ones until the
    # product.
    np.copyto(wide, signed)
    np.left_shift(words, 13, words)
    # Widening copied the sign to all bits above, and so to the three new ones.
    np.bitwise_and(words, 0x8FFFFFFF, words)
    np.multiply(target, _REBIAS, target)
    np.left_shift(packed, 1, doubled)
    # Doubling drops the sign; fp16's largest exponent, all ones, is 0x7C00: infinities and NaNs have no place in the
    # shifted scale.
    if doubled.size and doubled.max() >= 0xF800:
        np.bitwise_or(words, 0x7F800000, words, where=np.greater_equal(doubled, 0xF800))


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
        whole, wide = scratch(values.shape, np.float32), scratch(values.shape, np.float64)
        return partial(_store_integer, values, view, float(low), float(high), whole, wide)
    if dtype is Dtype.FLOAT16 and view.size > _FEW_HALVES:
        arrays = [scratch(values.shape, np.uint32) for _ in range(3)]
        floats = [array.view(np.float32) for array in arrays]
        return partial(_narrow_half, values, view, values.view(np.uint32), view.view(np.uint16), *arrays, *floats[:2])
    if _is_byte_float(dtype) and view.size > _FEW_BYTES:
        words, held = scratch(values.shape, np.uint32), scratch(values.shape, np.uint8)
        upper = words.view(np.uint16).reshape(*values.shape, 2)[..., _UPPER]
        table, bits = _narrowed_words(dtype), values.view(np.uint32)
        return partial(_narrow_bytes, bits, view.view(np.uint8), table, words, upper, held)
    return partial(np.copyto, view, values, casting="unsafe")


_UPPER = 1 if sys.byteorder == "little" else 0


def _narrow_bytes(bits: Array, view: Array, table: Array, words: Array, upper: Array, held: Array) -> None:
    # A carry out of the lower half says that it is not zero.
    np.bitwise_and(bits, 0xFFFF, words)
    np.add(words, 0xFFFF, words)
    np.bitwise_or(words, bits, words)
    np.take(table, upper, None, held, "clip")
    np.copyto(view, held)


# Of fp32: the exponent; that of fp16's least normal number, 2**-14; that of 2**16, from which on fp16 is infinite.
_EXPONENT, _NORMAL, _INFINITE = 0x7F800000, 113 << 23, 143 << 23


def _narrow_half(
    values: Array,
    view: Array,
    bits: Array,
    halves: Array,
    size: Array,
    power: Array,
    sum_: Array,
    number: Array,
    unit: Array,
) -> None:
    """Round to nearest even in fp16, in half the time that NumPy takes."""
    np.bitwise_and(bits, 0x7FFFFFFF, size)
    if size.size and size.max() >= _INFINITE:
        np.copyto(view, values, casting="unsafe")
        return
    np.bitwise_and(size, _EXPONENT, power)
    np.maximum(power, _NORMAL, out=power)
    # With 2**13 times its own power of two added, a number has fp16's last bit as its last: the sum is what rounds.
    np.right_shift(power, 13, sum_)
    np.add(power, 13 << 23, power)
    np.add(number, unit, number)
    np.subtract(size, power, size)
    np.add(size, sum_, size)
    np.subtract(size, _NORMAL >> 13, size)
    np.right_shift(bits, 16, power)
    np.bitwise_and(power, 0x8000, power)
    np.bitwise_or(size, power, size)
    np.copyto(halves, size, casting="unsafe")


def _store_tf32(values: Array, view: Array) -> None:
    rounded = np.empty(values.shape, np.float32)
    round_tf32(np.ascontiguousarray(values), rounded)
    np.copyto(view, rounded)


def _store_integer(values: Array, view: Array, low: float, high: float, whole: Array, wide: Array) -> None:
    np.rint(values, whole)
    # Compared as Python's numbers: in fp32 the upper limits of int32 and uint32 would round up, out of range.
    if whole.size and low <= float(whole.min()) and float(whole.max()) <= high:  # no NaN either
        np.copyto(view, whole, casting="unsafe")
        return
    np.copyto(wide, whole)
    if NARROWING.counting:
        NARROWING.count(wide, low, high)
    np.clip(wide, low, high, out=wide)
    np.copyto(wide, 0.0, where=np.isnan(wide))
    np.copyto(view, wide, casting="unsafe")


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
