"""Words that move data: bits stay bits, casts round, masks and quadrants are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.dtypes import numpy_dtype
from emulator.faults import FaultError
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AccessPattern, Bits
from formats.neuron_core import SBUF_PARTITION_STRIDE
from tests.emulator.engines.machine import PSUM, A, B, Bench, C, P, flat

F32, BF16, F16, I32 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.INT32
RNG = np.random.default_rng(3)


def bits(n: int, p: int = 128) -> np.ndarray:
    return RNG.integers(0, 1 << 32, (p, n), np.uint32)


@pytest.mark.parametrize("engine", ["DVE", "Activation", "Pool"])
def test_copy_keeps_every_bit(engine: str) -> None:
    bench, raw = Bench(), bits(32)  # signalling NaNs among them
    bench.put(A, raw, Dtype.UINT32)
    bench.run(isa.Copy(src=flat(A, 32, 4), dst=flat(C, 32, 4), src_dtype=F32, dst_dtype=F32), engine)
    assert np.array_equal(bench.at(C, (128, 32), Dtype.UINT32), raw)


def test_copy_of_packed_pairs_and_of_any_type() -> None:
    bench, raw = Bench(), bits(32)
    bench.put(PSUM, raw, Dtype.UINT32)
    bench.run(isa.Copy(src=flat(PSUM, 32, 4), dst=flat(C, 32, 4), src_dtype=I32, dst_dtype=I32))
    assert np.array_equal(bench.at(C, (128, 32), Dtype.UINT32), raw)
    bench.run(isa.Copy(src=flat(C, 16, 4), dst=flat(A, 16, 4), src_dtype=Dtype.INT64, dst_dtype=Dtype.INT64))
    assert np.array_equal(bench.at(A, (128, 32), Dtype.UINT32), raw)
    with pytest.raises(UnsupportedError, match="4-byte to 2-byte"):
        bench.bind(isa.Copy(src=flat(A, 4, 4), dst=flat(C, 4, 4), src_dtype=F32, dst_dtype=BF16))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (F32, BF16),
        (BF16, F32),
        (F32, F16),
        (F16, F32),
        (I32, F32),
        (F32, I32),
        (BF16, Dtype.FLOAT8E4),
        (Dtype.UINT8, F16),
        (F32, Dtype.FLOAT8E5),
    ],
    ids=lambda d: d.name,
)
def test_cast_goes_through_fp32(source: Dtype, target: Dtype) -> None:
    bench = Bench()
    values = RNG.uniform(0, 100, (128, 48)).astype(np.float32)
    bench.put(A, values, source)
    bench.run(isa.Cast(src=flat(A, 48, 4), dst=flat(C, 48, 4), src_dtype=source, dst_dtype=target))
    wide = bench.at(A, (128, 48), source).astype(np.float32)
    expected = np.rint(wide) if not target.is_float else wide
    assert np.array_equal(bench.at(C, (128, 48), target), expected.astype(numpy_dtype(target)))


def test_cast_from_a_strided_source() -> None:
    bench, values = Bench(), RNG.normal(size=(128, 27)).astype(np.float32)
    bench.put(A, values, F32)
    bench.run(
        isa.Cast(src=AccessPattern(A, (9, 1, 1, 1), (3, 3, 1, 1)), dst=flat(C, 9, 4), src_dtype=F32, dst_dtype=BF16)
    )
    picked = values.reshape(128, 3, 9)[:, :, :3].transpose(0, 2, 1).reshape(128, 9)
    assert np.array_equal(bench.at(C, (128, 9), BF16), picked.astype(numpy_dtype(BF16)))


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (F32, 0.0, 0.0),
        (F32, -2.5, -2.5),
        (BF16, 1.0, 1.0),
        (F16, 0.1, np.float16(np.float32(0.1))),
        (I32, Bits(0xFFFFFFFF), -1),
        (Dtype.UINT8, Bits(258), 2),
        (I32, 7.0, 7),
        (Dtype.FLOAT4E2_X4, 0.0, 0),
        # Floats in integer types round and saturate as a tile does; NaN gives 0.
        (Dtype.INT8, 2.7, 3),
        (Dtype.UINT8, -3.5, 0),
        (I32, 1e10, (1 << 31) - 1),
        (Dtype.INT16, -np.inf, -(1 << 15)),
        (I32, np.nan, 0),
        (Dtype.TFLOAT32, 0.1, np.uint32(0x3DCCC000).view(np.float32)),
    ],
)
def test_memset(dtype: Dtype, value: object, expected: object) -> None:
    bench = Bench()
    bench.run(
        isa.Memset(dst=AccessPattern(C, (1, 8, 1, 1), (4, 3, 1, 1)), dtype=dtype, count=12, value=value, channels=64)
    )
    rows = bench.at(C, (128, 24), dtype).reshape(128, 3, 8)
    assert (rows[:64, :, :4] == expected).all()
    assert (rows[:64, :, 4:].copy().view(np.uint8) == 0xFF).all() and (rows[64:].copy().view(np.uint8) == 0xFF).all()


def test_memset_counts_its_elements() -> None:
    with pytest.raises(FaultError, match="count and pattern differ"):
        Bench().bind(isa.Memset(dst=flat(C, 4, 4), dtype=F32, count=5))


@given(rows=st.integers(1, 32), columns=st.integers(1, 32))
def test_vector_transpose(rows: int, columns: int) -> None:
    bench, raw = Bench(), bits(columns, rows)
    bench.put(A, raw, Dtype.UINT32)
    bench.run(
        isa.VectorTranspose(
            src=flat(A, columns, 5), dst=flat(C, rows, 5), src_dtype=F32, dst_dtype=F32, channels=rows, columns=columns
        )
    )
    assert np.array_equal(bench.at(C, (columns, rows), Dtype.UINT32), raw.T)


def test_vector_transpose_in_place_and_too_large() -> None:
    bench, raw = Bench(), bits(32, 32)
    bench.put(A, raw, Dtype.UINT32)
    word = isa.VectorTranspose(
        src=flat(A, 32, 5),
        dst=AccessPattern(A, (1, 8, 1, 1, 1), (8, 4, 1, 1, 1)),
        src_dtype=F32,
        dst_dtype=F32,
        channels=32,
    )
    bench.run(word)
    assert np.array_equal(bench.at(A, (32, 32), Dtype.UINT32), raw.T)
    with pytest.raises(UnsupportedError, match="at most 32 by 32"):
        bench.bind(
            isa.VectorTranspose(
                src=flat(A, 33, 5), dst=flat(C, 32, 5), src_dtype=F32, dst_dtype=F32, channels=32, columns=33
            )
        )


@pytest.mark.parametrize("with_tile", [False, True])
@pytest.mark.parametrize("target", [F32, BF16], ids=lambda d: d.name)
def test_select(with_tile: bool, target: Dtype) -> None:
    bench = Bench()
    x, y = RNG.normal(size=(2, 128, 16)).astype(np.float32)
    mask = RNG.integers(0, 3, (128, 16))
    bench.put(A, x, F32)
    bench.put(B, y, F32)
    bench.put(P, mask, Dtype.UINT8)
    other = {"on_false_tile": flat(B, 16, 5), "on_false_dtype": F32} if with_tile else {"on_false": -3.5}
    bench.run(
        isa.Select(
            src=flat(A, 16, 5),
            predicate=flat(P, 16, 5),
            dst=flat(C, 16, 5),
            src_dtype=F32,
            dst_dtype=target,
            predicate_dtype=Dtype.UINT8,
            **other,
        )
    )
    expected = np.where(mask != 0, x, y if with_tile else np.float32(-3.5))
    assert np.array_equal(bench.at(C, (128, 16), target), expected.astype(numpy_dtype(target)))


def test_select_moves_bits_between_equal_types() -> None:
    bench, raw = Bench(), bits(8)
    bench.put(A, raw, Dtype.UINT32)
    bench.put(C, raw[::-1], Dtype.UINT32)
    bench.put(P, np.tile([1.0, 0.0], (128, 4)), F32)
    bench.run(
        isa.Select(
            src=flat(A, 8, 5),
            predicate=flat(P, 8, 5),
            dst=flat(C, 8, 5),
            on_false_tile=flat(C, 8, 5),
            src_dtype=F32,
            dst_dtype=F32,
            on_false_dtype=F32,
            predicate_dtype=F32,
        )
    )
    assert np.array_equal(bench.at(C, (128, 8), Dtype.UINT32), np.where(np.arange(8) % 2 == 0, raw, raw[::-1]))


@given(st.lists(st.sampled_from([*range(32), 255]), min_size=32, max_size=32), st.sampled_from([32, 64, 128]))
def test_stream_shuffle(mask: list[int], partitions: int) -> None:
    bench, raw = Bench(), bits(3, partitions)
    bench.put(A, raw, Dtype.UINT32)
    bench.put(C, np.zeros((partitions, 3)), Dtype.UINT32)
    bench.run(
        isa.StreamShuffle(
            src=flat(A, 3, 5),
            dst=flat(C, 3, 5),
            src_dtype=F32,
            dst_dtype=F32,
            channels=partitions,
            dst_channels=partitions,
            mask=tuple(mask),
        )
    )
    expected = np.zeros((partitions, 3), np.uint32)
    for p in range(partitions):
        if mask[p % 32] != 255:
            expected[p] = raw[p // 32 * 32 + mask[p % 32]]
    assert np.array_equal(bench.at(C, (partitions, 3), Dtype.UINT32), expected)


def test_shuffle_broadcasts_one_partition_and_works_in_place() -> None:
    bench, raw = Bench(), bits(4, 1)
    bench.put(A, raw, Dtype.UINT32)
    bench.run(
        isa.StreamShuffle(
            src=flat(A, 4, 5),
            dst=flat(A + 32 * SBUF_PARTITION_STRIDE, 4, 5),
            src_dtype=F32,
            dst_dtype=F32,
            channels=1,
            dst_channels=32,
            mask=(0,) * 32,
        )
    )
    assert (bench.at(A + 32 * SBUF_PARTITION_STRIDE, (32, 4), Dtype.UINT32) == raw).all()
    turn = (*range(1, 32), 0)
    all_rows = bits(4, 32)
    bench.put(A, all_rows, Dtype.UINT32)
    bench.run(
        isa.StreamShuffle(
            src=flat(A, 4, 5), dst=flat(A, 4, 5), src_dtype=F32, dst_dtype=F32, channels=32, dst_channels=32, mask=turn
        )
    )
    assert np.array_equal(bench.at(A, (32, 4), Dtype.UINT32), np.roll(all_rows, -1, axis=0))


def test_shuffle_outside_its_input_is_a_fault() -> None:
    with pytest.raises(FaultError, match="mask value 5 for partition 0"):
        Bench().bind(
            isa.StreamShuffle(
                src=flat(A, 4, 5),
                dst=flat(C, 4, 5),
                src_dtype=F32,
                dst_dtype=F32,
                channels=4,
                dst_channels=32,
                mask=(5,) + (0,) * 31,
            )
        )
