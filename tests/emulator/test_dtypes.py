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


@pytest.mark.parametrize("columns", [3, 24, 512])
@pytest.mark.parametrize("special", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("packed", [True, False])
def test_tiles_of_fp16_keep_every_bit(columns: int, special: float, packed: bool) -> None:
    random = np.random.default_rng(columns)
    memory = random.integers(0, 1 << 16, (128, 2 * columns), dtype=np.uint16)
    finite = (memory & 0x7C00) != 0x7C00
    np.copyto(memory, 0x8001, where=~finite & (random.random(memory.shape) >= special))
    tile = memory[:, :columns].copy() if packed else memory[:, :columns]
    got = to_float32(tile.view(np.float16), Dtype.FLOAT16)
    sign, exponent, mantissa = (each.astype(np.uint32) for each in (tile >> 15, tile >> 10 & 0x1F, tile & 0x3FF))
    number = np.where(exponent > 0, (mantissa + 1024.0) * 2.0 ** (exponent - 25.0), mantissa * 2.0**-24)
    bits = np.where(exponent < 31, number.astype(np.float32).view(np.uint32), 0x7F800000 | mantissa << 13)
    assert np.array_equal(got.view(np.uint32), sign << 31 | bits)


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


# All upper halves of fp32, with lower ones about what the narrower types round at.
NEAR = (0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
EDGES = np.array([np.arange(1 << 16, dtype=np.uint32) << 16 | low for low in NEAR]).view(np.float32).reshape(208, -1)


def tile_of(values: np.ndarray, dtype: Dtype) -> np.ndarray:
    """Store values as a word does, in rows that lie apart, and return the bits."""
    memory = np.zeros((values.shape[0], 2 * values.shape[1]), numpy_dtype(dtype))
    tile = memory[:, : values.shape[1]]
    with np.errstate(all="ignore"):
        bind_store(values, tile, dtype)()
    return tile.view(f"u{memory.dtype.itemsize}")


@pytest.mark.parametrize("finite", [True, False])
def test_tiles_round_to_fp16(finite: bool) -> None:
    values = np.where(np.abs(EDGES) < 65520, EDGES, np.float32(-0.0)) if finite else EDGES
    with np.errstate(all="ignore"):
        size = np.abs(values).astype(np.float64)
        unit = 2.0 ** np.maximum(np.frexp(size)[1] - 11, -24)  # eleven bits, no smaller than the least number
        size = np.rint(size / unit) * unit
        expected = np.copysign(np.where(size < 65520, size, np.inf), values).astype(np.float16)
    got, numbers = tile_of(values, Dtype.FLOAT16), ~np.isnan(values)
    assert np.array_equal(got[numbers], expected.view(np.uint16)[numbers])
    assert np.isnan(got.view(np.float16)[~numbers]).all()


@pytest.mark.parametrize("dtype", [d for d in Dtype if DTYPES[d].numpy_name and DTYPES[d].is_float and d.size == 1])
def test_tiles_of_fp8_are_what_single_numbers_are(dtype: Dtype) -> None:
    single = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        assert np.array_equal(tile_of(EDGES, dtype), EDGES.astype(single).view(np.uint8))
    every = np.arange(1 << 8, dtype=np.uint8).view(single)
    tile = np.zeros((128, 8), single)[:, :4]
    tile[...] = np.resize(every, tile.shape)
    assert np.array_equal(to_float32(tile, dtype).view(np.uint32), tile.astype(np.float32).view(np.uint32))


@given(seed=st.integers(0, 1 << 30), power=st.integers(-2, 12), special=st.booleans())
def test_tiles_of_integers_round_and_saturate_as_in_float64(seed: int, power: int, special: bool) -> None:
    random = np.random.default_rng(seed)
    values = (np.rint(random.normal(size=(16, 40)) * 2 * 10.0**power) / 2).astype(np.float32)
    if special:
        values[0, :6] = np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**32
    for dtype in (Dtype.INT8, Dtype.UINT8, Dtype.INT16, Dtype.UINT16, Dtype.INT32, Dtype.UINT32):
        limits = np.iinfo(numpy_dtype(dtype))
        wide = np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max)
        expected = np.where(np.isnan(wide), 0, wide).astype(numpy_dtype(dtype))
        assert np.array_equal(tile_of(values, dtype).view(expected.dtype), expected)


@pytest.mark.parametrize("beyond", [2.0**31, 2.0**32, -1.0, -(2.0**31) - 256, 65536.0, np.nan])
def test_one_number_beyond_the_limits_saturates_alone(beyond: float) -> None:
    values = np.array([[1.0, beyond, 2.0]], np.float32)
    for dtype in (Dtype.INT32, Dtype.UINT32, Dtype.UINT16):
        limits = np.iinfo(numpy_dtype(dtype))
        expected = 0 if np.isnan(beyond) else min(max(int(beyond), limits.min), limits.max)
        assert tile_of(values, dtype).view(numpy_dtype(dtype)).tolist() == [[1, expected, 2]]


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
