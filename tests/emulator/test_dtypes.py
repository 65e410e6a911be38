"""Element types: widening, rounding to nearest even, saturation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.dtypes import bind_load, bind_store, chain, from_float32, numpy_dtype, to_float32
from formats.dtypes import DTYPES, Dtype
from formats.errors import FormatError, UnsupportedError

FLOATS = st.floats(width=32, allow_nan=False)


def test_every_fp16_widens_as_numpy_widens_it() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    expected = every.astype(np.float32)
    finite = np.isfinite(every)
    assert np.array_equal(to_float32(every[finite], Dtype.FLOAT16).view(np.uint32), expected[finite].view(np.uint32))
    got = to_float32(every, Dtype.FLOAT16)  # with infinities and NaNs among them
    assert np.array_equal(got, expected, equal_nan=True)


@given(st.lists(FLOATS, min_size=1, max_size=9))
def test_bfloat16_rounds_to_nearest_even(values: list[float]) -> None:
    array = np.array(values, np.float32)
    bits = array.view(np.uint32).astype(np.uint64)
    expected = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    assert np.array_equal(from_float32(array, Dtype.BFLOAT16).view(np.uint16), expected)
    assert np.array_equal(
        to_float32(from_float32(array, Dtype.BFLOAT16), Dtype.BFLOAT16),
        (expected.astype(np.uint32) << 16).view(np.float32),
    )


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (Dtype.INT8, -128, 127),
        (Dtype.UINT8, 0, 255),
        (Dtype.INT16, -32768, 32767),
        (Dtype.UINT16, 0, 65535),
        (Dtype.INT32, -(1 << 31), (1 << 31) - 1),
        (Dtype.UINT32, 0, (1 << 32) - 1),
    ],
)
@given(value=FLOATS)
def test_integers_round_to_even_and_saturate(dtype: Dtype, low: int, high: int, value: float) -> None:
    expected = low if value == -np.inf else high if value == np.inf else min(max(round(value), low), high)
    assert int(from_float32(np.array([value], np.float32), dtype)[0]) == expected


def test_halves_go_to_even_and_nan_goes_to_zero() -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, np.nan], np.float32)
    assert from_float32(values, Dtype.INT32).tolist() == [0, 2, 2, 0, -2, 0]


def test_integers_widen_with_rounding() -> None:
    assert to_float32(np.array([(1 << 24) + 1, -7], np.int32), Dtype.INT32).tolist() == [float(1 << 24), -7.0]


@given(FLOATS)
def test_tf32_keeps_ten_mantissa_bits(value: float) -> None:
    got = from_float32(np.array([value], np.float32), Dtype.TFLOAT32)[0]
    if np.isfinite(got):
        assert got.view(np.uint32) & 0x1FFF == 0 and abs(float(got) - value) <= max(abs(value) * 2.0**-11, 2.0**-137)
    assert np.isnan(from_float32(np.array([np.nan], np.float32), Dtype.TFLOAT32)[0])


def test_fp32_is_used_where_it_lies() -> None:
    view = np.zeros((4, 8), np.float32)
    values, step = bind_load(view, Dtype.FLOAT32)
    assert values is view and step is None


def test_bound_steps_follow_the_memory() -> None:
    source, target = np.zeros((2, 3), ml_dtypes.bfloat16), np.zeros((2, 3), np.float16)
    values, load = bind_load(source, Dtype.BFLOAT16)
    step = chain(load, None, bind_store(values, target, Dtype.FLOAT16))
    for number in (1.5, -3.0):
        source[...] = number
        step()
        assert (target == number).all()


@pytest.mark.parametrize(
    "dtype", [d for d in Dtype if DTYPES[d].numpy_name and DTYPES[d].is_float], ids=lambda d: d.name
)
def test_every_float_type_keeps_its_own_values(dtype: Dtype) -> None:
    ones = from_float32(np.array([1.0, 2.0, 0.5], np.float32), dtype)
    assert ones.dtype == numpy_dtype(dtype) and to_float32(ones, dtype).tolist() == [1.0, 2.0, 0.5]


@pytest.mark.parametrize("dtype", [Dtype.FLOAT8E4FN_X4, Dtype.INT64, Dtype.UINT64])
def test_arithmetic_on_other_types_is_refused(dtype: Dtype) -> None:
    with pytest.raises(UnsupportedError, match=dtype.spelling):
        bind_load(np.zeros((1, 1), numpy_dtype(dtype)), dtype)


def test_an_unnamed_code_is_a_format_error() -> None:
    with pytest.raises(FormatError, match="element type code"):
        numpy_dtype(0x70)
