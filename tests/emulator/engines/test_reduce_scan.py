"""Folds and recurrences: order and precision are part of the result."""

from __future__ import annotations

import operator
from functools import reduce as fold

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.faults import FaultError
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AccessPattern, AluOp, ReduceDims
from tests.emulator.engines.machine import PSUM, A, B, Bench, C, P, flat

F32, BF16, I32 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.INT32
RNG = np.random.default_rng(11)


def sequential(row: np.ndarray, op: object = operator.add) -> np.float32:
    """Fold fp32 numbers one after the other."""
    return fold(op, row[1:], row[0])


def run_reduce(
    op: AluOp,
    values: np.ndarray,
    dims: ReduceDims = ReduceDims.X,
    counts: tuple[int, ...] | None = None,
    dtype: Dtype = F32,
    out: Dtype = F32,
    **fields: object,
) -> np.ndarray:
    bench = Bench()
    counts = counts or (values.shape[1], 1, 1, 1)
    steps = (1, counts[0], counts[0] * counts[1], counts[0] * counts[1] * counts[2])
    kept = int(np.prod(counts[dims - 1 :]))
    bench.put(A, values, dtype)
    bench.run(
        isa.TensorReduce(
            src=AccessPattern(A, steps, counts),
            dst=flat(C, kept, 4),
            src_dtype=dtype,
            dst_dtype=out,
            op=op,
            dims=dims,
            channels=values.shape[0],
            **fields,
        )
    )
    return bench.at(C, (values.shape[0], kept), out).copy()


@pytest.mark.parametrize(("partitions", "n"), [(128, 512), (1, 1000), (2, 129), (3, 1), (5, 2), (128, 3), (17, 300)])
@pytest.mark.parametrize(
    ("op", "python"),
    [(AluOp.ADD, operator.add), (AluOp.MULTIPLY, operator.mul), (AluOp.SUBTRACT, operator.sub)],
    ids=lambda o: getattr(o, "name", ""),
)
def test_arithmetic_folds_run_left_to_right(op: AluOp, python: object, partitions: int, n: int) -> None:
    values = RNG.normal(size=(partitions, n)).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = np.array([sequential(row, python) for row in values])
    assert np.array_equal(run_reduce(op, values)[:, 0], expected)


def test_the_sum_is_not_numpys_pairwise_one() -> None:
    values = RNG.uniform(0, 1, (128, 512)).astype(np.float32)
    got = run_reduce(AluOp.ADD, values)[:, 0]
    assert (got != values.sum(axis=1)).any() and np.allclose(got, values.sum(axis=1), rtol=1e-5)


@given(counts=st.tuples(*[st.integers(1, 5)] * 4), dims=st.sampled_from(list(ReduceDims)))
def test_kept_dimensions_stay_in_order(counts: tuple[int, ...], dims: ReduceDims) -> None:
    values = RNG.integers(-50, 50, (3, int(np.prod(counts)))).astype(np.float32)
    got = run_reduce(AluOp.ADD, values, dims, counts)
    folded = int(np.prod(counts[: dims - 1]))
    assert np.array_equal(got, values.reshape(3, -1, folded).sum(axis=2))


def test_pooling_pattern_with_strided_dimensions() -> None:
    """The 2 by 2 max pooling of a real gen2 program: XY folded, Z kept."""
    bench, image = Bench(), RNG.normal(size=(128, 2 * 12)).astype(np.float32)
    bench.put(PSUM, image, F32)
    bench.run(
        isa.TensorReduce(
            src=AccessPattern(PSUM, (1, 12, 2, 1), (2, 2, 6, 1)),
            dst=flat(C, 6, 4),
            src_dtype=F32,
            dst_dtype=F32,
            op=AluOp.MAX,
            dims=ReduceDims.XY,
        )
    )
    assert np.array_equal(bench.at(C, (128, 6), F32), image.reshape(128, 2, 6, 2).max(axis=(1, 3)))


# Zeros of both signs, infinities, NaNs of several payloads (one of them signalling), numbers below the normal ones.
SPECIAL = np.array(
    [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 1, 0x80000003, 0x007FFFFF, 0x3F800000],
    np.uint32,
).view(np.float32)
FOLDS = {
    AluOp.ADD: np.add,
    AluOp.SUBTRACT: np.subtract,
    AluOp.MULTIPLY: np.multiply,
    AluOp.MAX: np.maximum,
    AluOp.MIN: np.minimum,
}


def folded_by_numpy(op: AluOp, packed: np.ndarray) -> np.ndarray:
    """Fold the last axis of (partitions, kept, folded): what is added, one row after the other."""
    if op in (AluOp.MAX, AluOp.MIN):
        return FOLDS[op].reduce(packed, axis=2)
    if packed[..., 0].size == 1:
        return FOLDS[op].accumulate(packed, axis=2)[..., -1]
    rows = np.ascontiguousarray(packed.transpose(2, 0, 1))
    return FOLDS[op].reduce(rows.reshape(len(rows), -1), axis=0).reshape(packed.shape[:2])


@settings(max_examples=150)
@given(
    seed=st.integers(0, 1 << 30),
    op=st.sampled_from(list(FOLDS)),
    partitions=st.sampled_from([1, 2, 16, 65, 128]),
    kept=st.tuples(st.integers(1, 12), st.integers(1, 9)),
    window=st.tuples(st.integers(1, 4), st.integers(1, 6)),
    special=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
    kinds=st.sampled_from([2, len(SPECIAL)]),
    negate=st.booleans(),
)
def test_folds_of_windows_keep_every_bit(
    seed: int,
    op: AluOp,
    partitions: int,
    kept: tuple[int, int],
    window: tuple[int, int],
    special: float,
    kinds: int,
    negate: bool,
) -> None:
    random = np.random.default_rng(seed)
    row = kept[0] + window[0]
    image = random.normal(size=(partitions, row * (kept[1] + window[1]))).astype(np.float32)
    np.copyto(image, random.choice(SPECIAL[:kinds], image.shape), where=random.random(image.shape) < special)
    bench, counts = Bench(), (*window, *kept)
    bench.put(PSUM, image, F32)
    bench.run(
        isa.TensorReduce(
            src=AccessPattern(PSUM, (1, row, 1, row), counts),  # windows that overlap
            dst=flat(C, kept[0] * kept[1], 4),
            src_dtype=F32,
            dst_dtype=F32,
            op=op,
            dims=ReduceDims.XY,
            negate=int(negate),
            channels=partitions,
        )
    )
    got = bench.at(C, (partitions, kept[0] * kept[1]), F32)
    windows = np.lib.stride_tricks.as_strided(
        image, (partitions, *counts[::-1]), (image.strides[0], 4 * row, 4, 4 * row, 4)
    )
    with np.errstate(all="ignore"):
        expected = folded_by_numpy(op, windows.reshape(partitions, kept[0] * kept[1], -1))
    assert np.array_equal(got.view(np.uint32), (-expected if negate else expected).view(np.uint32))


def test_max_min_and_negate() -> None:
    values = RNG.normal(size=(128, 33)).astype(np.float32)
    assert np.array_equal(run_reduce(AluOp.MAX, values, negate=1)[:, 0], -values.max(axis=1))
    assert np.array_equal(run_reduce(AluOp.MIN, values)[:, 0], values.min(axis=1))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=12))
def test_magnitude_folds_keep_the_sign_and_the_last_of_a_tie(row: list[int]) -> None:
    values = np.array([row], np.float32)
    largest = fold(lambda a, b: a if abs(a) > abs(b) else b, row)
    smallest = fold(lambda a, b: a if abs(a) < abs(b) else b, row)
    assert run_reduce(AluOp.ABS_MAX, values)[0, 0] == largest and run_reduce(AluOp.ABS_MIN, values)[0, 0] == smallest


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9))
def test_logical_folds(row: list[int]) -> None:
    values = np.array([row], np.float32)
    truths = [bool(v) for v in row]
    for op, expected in (
        (AluOp.LOGICAL_AND, all(truths)),
        (AluOp.LOGICAL_OR, any(truths)),
        (AluOp.LOGICAL_XOR, sum(truths) % 2 == 1),
    ):
        assert run_reduce(op, values)[0, 0] == expected


def test_bit_folds_and_what_cannot_fold() -> None:
    values = RNG.integers(-(1 << 31), 1 << 31, (128, 9))
    assert np.array_equal(
        run_reduce(AluOp.BITWISE_XOR, values, dtype=I32, out=I32)[:, 0],
        np.bitwise_xor.reduce(values.astype(np.int32), axis=1),
    )
    narrow = RNG.integers(-128, 128, (128, 9))
    wide = run_reduce(AluOp.BITWISE_OR, narrow, dtype=Dtype.INT8, out=I32)[:, 0]
    assert np.array_equal(wide, np.bitwise_or.reduce(narrow.astype(np.int8), axis=1))
    for op, match in ((AluOp.DIVIDE, "not documented for reductions"), (AluOp.BITWISE_OR, "work on integers")):
        with pytest.raises(UnsupportedError, match=match):
            run_reduce(op, values)
    with pytest.raises(FaultError, match="operands differ in size"):
        Bench().bind(isa.TensorReduce(src=flat(A, 8, 4), dst=flat(C, 2, 4), src_dtype=F32, dst_dtype=F32, op=AluOp.ADD))


def test_low_precision_is_widened_before_and_rounded_after() -> None:
    values = np.full((128, 300), 1.0, np.float32)  # a bf16 running sum would stick at 256
    assert (run_reduce(AluOp.ADD, values, dtype=BF16, out=BF16).astype(np.float32) == 300).all()


def run_scan(a: np.ndarray, b: np.ndarray, **fields: object) -> np.ndarray:
    bench, (partitions, n) = Bench(), a.shape
    bench.put(A, a, F32)
    bench.put(B, b, F32)
    bench.put(P, np.full((partitions, 1), 0.5), F32)
    bench.run(
        isa.TensorTensorScan(
            **{
                "src": flat(A, n, 5),
                "src1": flat(B, n, 5),
                "dst": flat(C, n, 5),
                "src_dtype": F32,
                "src1_dtype": F32,
                "dst_dtype": F32,
                "channels": partitions,
                **fields,
            }
        )
    )
    return bench.at(C, a.shape, F32).copy()


@pytest.mark.parametrize("reverse1", [0, 1])
@pytest.mark.parametrize("reverse0", [0, 1])
@pytest.mark.parametrize("initial", [{"initial": 0.5}, {"initial_pointer": P}], ids=["number", "pointer"])
def test_scan_is_the_recurrence(reverse0: int, reverse1: int, initial: dict[str, object]) -> None:
    a, b = RNG.uniform(0.5, 1.5, (2, 16, 40)).astype(np.float32)
    got = run_scan(a, b, op0=AluOp.DIVIDE, op1=AluOp.SUBTRACT, reverse0=reverse0, reverse1=reverse1, **initial)
    previous = np.full(16, 0.5, np.float32)
    with np.errstate(all="ignore"):
        for i in range(40):
            middle = previous / a[:, i] if reverse0 else a[:, i] / previous
            previous = b[:, i] - middle if reverse1 else middle - b[:, i]
            assert np.array_equal(got[:, i], previous, equal_nan=True)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("special", [SPECIAL, [0.0, -0.0, np.inf, -np.inf, 3e38]], ids=["nan", "numbers"])
@pytest.mark.parametrize("partitions", [1, 63, 128])
def test_scan_of_many_partitions_keeps_every_bit(partitions: int, special: list[float], ones: bool) -> None:
    a, b = RNG.normal(size=(2, partitions, 130)).astype(np.float32)
    for tile in (a, b):
        np.copyto(tile, RNG.choice(np.array(special, np.float32), tile.shape), where=RNG.random(tile.shape) < 0.05)
    if ones:
        a.fill(1)  # a running sum
    got = run_scan(a, b, op0=AluOp.MULTIPLY, op1=AluOp.ADD, initial=0.5)
    previous = np.full(partitions, 0.5, np.float32)
    with np.errstate(all="ignore"):
        for i in range(130):
            previous = a[:, i] * previous + b[:, i]
            assert np.array_equal(got[:, i], previous, equal_nan=True)
            numbers = ~np.isnan(previous)
            assert np.array_equal(np.signbit(got[numbers, i]), np.signbit(previous[numbers]))


def test_scan_over_several_dimensions_and_types() -> None:
    bench, a = Bench(), RNG.integers(0, 3, (128, 12)).astype(np.float32)
    bench.put(A, a.reshape(128, 3, 4).transpose(0, 2, 1).reshape(128, 12), BF16)
    bench.put(B, np.zeros((128, 12)), F32)
    bench.run(
        isa.TensorTensorScan(
            src=AccessPattern(A, (3, 1, 1, 1, 1), (4, 3, 1, 1, 1)),
            src1=flat(B, 12, 5),
            dst=AccessPattern(C, (1, 6, 1, 1, 1), (6, 2, 1, 1, 1)),
            src_dtype=BF16,
            src1_dtype=F32,
            dst_dtype=BF16,
            op0=AluOp.ADD,
            op1=AluOp.ADD,
            initial=0.0,
        )
    )
    assert np.array_equal(bench.at(C, (128, 12), BF16).astype(np.float32), np.cumsum(a, axis=1))
