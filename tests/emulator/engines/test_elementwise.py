"""Elementwise words: fp32 arithmetic, exact integers on Pool, bit patterns, operands of any shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.faults import FaultError
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AccessPattern, AluOp, Bits
from tests.emulator.engines.machine import PSUM, A, B, Bench, C, P, flat

F32, BF16, F16, I32, U32 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.INT32, Dtype.UINT32
RNG = np.random.default_rng(7)


def tile(n: int = 64, p: int = 128) -> np.ndarray:
    return RNG.normal(size=(p, n)).astype(np.float32)


def tensor_tensor(
    bench: Bench, op: AluOp, a: np.ndarray, b: np.ndarray, types: tuple[Dtype, Dtype, Dtype], engine: str = "DVE"
) -> np.ndarray:
    n = a.shape[1]
    bench.put(A, a, types[0])
    bench.put(B, b, types[1])
    bench.run(
        isa.TensorTensor(
            src0=flat(A, n),
            src1=flat(B, n),
            dst=flat(C, n),
            src0_dtype=min(types[0], 15),
            src1_dtype=types[1],
            dst_dtype=types[2],
            op=op,
            channels=a.shape[0],
        ),
        engine,
    )
    return bench.at(C, a.shape, types[2]).copy()


def test_tensor_tensor_in_fp32_is_numpys_fp32() -> None:
    a, b = tile(), tile()
    for op, expected in ((AluOp.ADD, a + b), (AluOp.MULTIPLY, a * b), (AluOp.SUBTRACT, a - b), (AluOp.LESS, a < b)):
        assert np.array_equal(tensor_tensor(Bench(), op, a, b, (F32, F32, F32)), expected.astype(np.float32)), op


def test_casts_happen_at_the_ports_only() -> None:
    a, b = np.full((128, 4), 1.0, np.float32), np.full((128, 4), 2.0**-9, np.float32)
    # Both inputs are exact in bf16; their sum is not, and rounds once, to even.
    assert (tensor_tensor(Bench(), AluOp.ADD, a, b, (BF16, BF16, F32)) == 1 + 2.0**-9).all()
    assert (tensor_tensor(Bench(), AluOp.ADD, a, b, (BF16, BF16, BF16)).astype(np.float32) == 1.0).all()


def test_vector_integers_go_through_fp32_and_pool_integers_are_exact() -> None:
    a = np.full((128, 2), (1 << 24) + 1, np.int64)
    b = np.full((128, 2), 2, np.int64)
    assert (tensor_tensor(Bench(), AluOp.ADD, a, b, (I32, I32, I32)) == (1 << 24) + 2).all()
    assert (tensor_tensor(Bench(), AluOp.ADD, a, b, (I32, I32, I32), "Pool") == (1 << 24) + 3).all()


@given(a=st.integers(-(1 << 31), (1 << 31) - 1), b=st.integers(0, (1 << 32) - 1))
def test_pool_mixes_signed_and_unsigned(a: int, b: int) -> None:
    one = np.array([[a]]), np.array([[b]])
    bench = Bench()
    assert int(tensor_tensor(bench, AluOp.MULTIPLY, *one, (I32, U32, U32), "Pool")[0, 0]) == a * b % (1 << 32)
    assert int(tensor_tensor(bench, AluOp.LESS, *one, (I32, U32, I32), "Pool")[0, 0]) == int(a < b)


@pytest.mark.parametrize("dtype", [Dtype.UINT8, Dtype.INT16, I32, U32], ids=lambda d: d.name)
@given(a=st.integers(0, (1 << 32) - 1), b=st.integers(0, (1 << 32) - 1))
def test_bit_patterns_keep_every_bit(dtype: Dtype, a: int, b: int) -> None:
    mask = (1 << 8 * dtype.size) - 1
    x, y = (np.array([[v & mask]], f"u{dtype.size}").view(dtype.numpy_name) for v in (a, b))
    got = tensor_tensor(Bench(), AluOp.BITWISE_XOR, x, y, (dtype, dtype, dtype))
    assert int(got.view(f"u{dtype.size}")[0, 0]) == (a ^ b) & mask


def test_bit_patterns_of_different_widths() -> None:
    x, y = np.array([[-1]], np.int16), np.array([[4]], np.int32)
    types = (Dtype.INT16, I32, I32)
    assert int(tensor_tensor(Bench(), AluOp.RIGHT_SHIFT, x, y, types)[0, 0]) == 0x0FFF  # logical, at its own width
    assert int(tensor_tensor(Bench(), AluOp.BITWISE_AND, x, np.array([[-2]]), types)[0, 0]) == -2
    with pytest.raises(UnsupportedError, match="integer element types"):
        tensor_tensor(Bench(), AluOp.BITWISE_AND, x, y, (F32, I32, I32))


def test_elements_correspond_in_walk_order_whatever_the_counts() -> None:
    bench, a, b = Bench(), tile(24), tile(24)
    bench.put(A, a, F32)
    bench.put(B, b.reshape(128, 4, 6).transpose(0, 2, 1).reshape(128, 24), F32)  # stored column by column
    word = isa.TensorTensor(
        src0=flat(A, 24),
        src1=AccessPattern(B, (4, 1, 1), (6, 4, 1)),
        dst=AccessPattern(C, (1, 8, 1), (8, 3, 1)),
        src0_dtype=F32,
        src1_dtype=F32,
        dst_dtype=F32,
        op=AluOp.ADD,
    )
    bench.run(word)
    assert np.array_equal(bench.at(C, (128, 24), F32), a + b)


def test_operands_of_different_size_are_a_fault() -> None:
    with pytest.raises(FaultError, match="TENSOR_TENSOR: operands differ in size") as caught:
        Bench().bind(
            isa.TensorTensor(
                src0=flat(A, 8),
                src1=flat(B, 9),
                dst=flat(C, 8),
                src0_dtype=F32,
                src1_dtype=F32,
                dst_dtype=F32,
                op=AluOp.ADD,
            )
        )
    assert caught.value.fault.operand == "src1" and caught.value.fault.kind == "operand"


def test_in_place_and_overlapping_operands() -> None:
    bench, a = Bench(), tile(40)
    bench.put(A, a, F32)
    bench.run(
        isa.TensorTensor(
            src0=flat(A, 39),
            src1=flat(A + 4, 39),
            dst=flat(A + 4, 39),
            src0_dtype=F32,
            src1_dtype=F32,
            dst_dtype=F32,
            op=AluOp.ADD,
        )
    )
    assert np.array_equal(bench.at(A, (128, 40), F32), np.concatenate([a[:, :1], a[:, :-1] + a[:, 1:]], axis=1))


def scalar_word(n: int, **fields: object) -> isa.TensorScalar:
    return isa.TensorScalar(**{"src": flat(A, n), "dst": flat(C, n), "src_dtype": F32, "dst_dtype": F32, **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"op0": AluOp.MULTIPLY, "immediate0": 3.0, "op1": AluOp.ADD, "immediate1": -1.0},
            lambda x: x * np.float32(3) - 1,
        ),
        ({"op0": AluOp.SUBTRACT, "immediate0": 2.0}, lambda x: x - 2),
        ({"op0": AluOp.SUBTRACT, "immediate0": 2.0, "reverse0": 1}, lambda x: 2 - x),
        (
            {"op0": AluOp.MULTIPLY, "immediate0": 2.0, "op1": AluOp.DIVIDE, "immediate1": 1.0, "reverse1": 1},
            lambda x: 1 / (x * 2),
        ),
        ({"op0": AluOp.BYPASS, "op1": AluOp.MAX, "immediate1": 0.25}, lambda x: np.maximum(x, np.float32(0.25))),
        ({"op0": AluOp.BYPASS, "op1": AluOp.BYPASS}, lambda x: x),
        ({"op0": AluOp.ABS, "op1": AluOp.RSQRT, "reverse1": 1}, lambda x: np.reciprocal(np.sqrt(np.abs(x)))),
        ({"op0": AluOp.ADD, "immediate0": Bits(0xFFFFFFFF)}, lambda x: x - 1),
    ],
)
def test_tensor_scalar(fields: dict[str, object], expected: object) -> None:
    bench, a = Bench(), tile()
    bench.put(A, a, F32)
    bench.run(scalar_word(64, **fields))
    assert np.array_equal(bench.at(C, (128, 64), F32), expected(a))


def test_pointer_operands_give_one_value_per_partition() -> None:
    bench, a, scale, shift = Bench(), tile(), tile(1), tile(1)
    bench.put(A, a, BF16)
    bench.put(P, np.concatenate([scale, shift], axis=1), F32)
    bench.run(
        scalar_word(
            64, src_dtype=BF16, op0=AluOp.MULTIPLY, immediate0_pointer=P, op1=AluOp.ADD, immediate1_pointer=P + 4
        )
    )
    rounded = bench.at(A, (128, 64), BF16).astype(np.float32)
    assert np.array_equal(bench.at(C, (128, 64), F32), rounded * scale + shift)


def test_the_output_may_hold_a_pointer_operand() -> None:
    bench, a, shift = Bench(), tile(4), tile(4)
    bench.put(A, a, F32)
    bench.put(C, shift, F32)
    bench.run(scalar_word(4, op0=AluOp.MULTIPLY, immediate0=2.0, op1=AluOp.ADD, immediate1_pointer=C + 4))
    assert np.array_equal(bench.at(C, (128, 4), F32), a * 2 + shift[:, 1:2])


@given(
    x=st.integers(-(1 << 31), (1 << 31) - 1),
    m=st.integers(-(1 << 31), (1 << 31) - 1),
    c=st.integers(-(1 << 31), (1 << 31) - 1),
)
def test_pool_scalars_are_exact_integers(x: int, m: int, c: int) -> None:
    bench = Bench()
    bench.put(A, np.array([[x]]), I32)
    bench.run(
        scalar_word(
            1,
            src_dtype=I32,
            dst_dtype=I32,
            channels=1,
            op0=AluOp.MULTIPLY,
            immediate0=Bits(m),
            op1=AluOp.ADD,
            immediate1=Bits(c),
        ),
        "Pool",
    )
    assert int(bench.at(C, (1, 1), U32)[0, 0]) == (x * m + c) % (1 << 32)


def test_pool_keeps_32_bits_between_its_operators() -> None:
    bench = Bench()
    bench.put(A, np.array([[1 << 30]]), I32)
    bench.run(
        scalar_word(
            1,
            src_dtype=I32,
            dst_dtype=I32,
            channels=1,
            op0=AluOp.MULTIPLY,
            immediate0=Bits(4),
            op1=AluOp.MAX,
            immediate1=Bits(5),
        ),
        "Pool",
    )
    assert int(bench.at(C, (1, 1), I32)[0, 0]) == 5


@given(x=st.integers(0, (1 << 32) - 1), count=st.integers(0, 40), mask=st.integers(0, (1 << 32) - 1))
def test_scalar_bit_patterns(x: int, count: int, mask: int) -> None:
    bench = Bench()
    bench.put(A, np.array([[x]], np.uint32), U32)
    bench.put(P, np.array([[mask]], np.uint32), U32)
    word = {
        "src_dtype": U32,
        "dst_dtype": U32,
        "channels": 1,
        "op0": AluOp.RIGHT_SHIFT,
        "immediate0": Bits(count),
        "op1": AluOp.BITWISE_AND,
    }
    bench.run(scalar_word(1, **word, immediate1=Bits(mask)))
    assert int(bench.at(C, (1, 1), U32)[0, 0]) == (x >> count) & mask
    bench.run(scalar_word(1, **word, immediate1_pointer=P))
    assert int(bench.at(C, (1, 1), U32)[0, 0]) == (x >> count) & mask
    bench.run(scalar_word(1, **{**word, "dst_dtype": Dtype.UINT8}, immediate1_pointer=P))
    assert int(bench.at(C, (1, 1), Dtype.UINT8)[0, 0]) == (x >> count) & mask & 0xFF


def test_bit_pattern_immediates_have_to_be_integers() -> None:
    word = {"src_dtype": I32, "dst_dtype": I32, "op0": AluOp.BITWISE_AND}
    Bench().bind(scalar_word(1, **word, immediate0=6.0))
    with pytest.raises(UnsupportedError, match=r"immediate0 6\.5 is no integer"):
        Bench().bind(scalar_word(1, **word, immediate0=6.5))
    with pytest.raises(UnsupportedError, match="ADD computes numbers"):
        Bench().bind(scalar_word(1, **word, immediate0=6.0, op1=AluOp.ADD, immediate1=1.0))


@pytest.mark.parametrize(("reverse0", "reverse1"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_scalar_tensor_tensor(reverse0: int, reverse1: int) -> None:
    bench, a, b = Bench(), tile(), tile()
    bench.put(A, a, F16)
    bench.put(PSUM, b, F32)
    bench.run(
        isa.ScalarTensorTensor(
            src=flat(A, 64, 5),
            src1=flat(PSUM, 64, 5),
            dst=flat(C, 64, 5),
            src_dtype=F16,
            src1_dtype=F32,
            dst_dtype=F32,
            op0=AluOp.SUBTRACT,
            op1=AluOp.DIVIDE,
            immediate0=0.5,
            reverse0=reverse0,
            reverse1=reverse1,
        )
    )
    x, half = bench.at(A, (128, 64), F16).astype(np.float32), np.float32(0.5)
    middle = half - x if reverse0 else x - half
    with np.errstate(all="ignore"):
        assert np.array_equal(bench.at(C, (128, 64), F32), b / middle if reverse1 else middle / b)


def test_reciprocal_divides() -> None:
    bench, a = Bench(), tile()
    bench.put(A, a, F32)
    bench.run(isa.Reciprocal(src=flat(A, 64, 4), dst=flat(C, 64, 4), src_dtype=F32, dst_dtype=F32))
    assert np.array_equal(bench.at(C, (128, 64), F32), np.float32(1) / a)


def test_a_bound_word_can_run_again_on_new_data() -> None:
    bench = Bench()
    step = bench.bind(scalar_word(64, src_dtype=F16, dst_dtype=BF16, op0=AluOp.ADD, immediate0=1.0))
    for value in (1.0, 5.0):
        bench.put(A, np.full((128, 64), value), F16)
        step()
        assert (bench.at(C, (128, 64), BF16).astype(np.float32) == value + 1).all()


def test_words_bound_together_share_their_scratch_and_nothing_else() -> None:
    bench, a, b = Bench(), tile(16), tile(40)
    bench.put(A, a, F16)
    bench.put(B, b, F16)
    small = bench.bind(scalar_word(16, src_dtype=F16, dst_dtype=BF16, op0=AluOp.ADD, immediate0=1.0))
    large = bench.bind(
        scalar_word(
            40,
            src=flat(B, 40),
            dst=flat(P, 40),
            src_dtype=F16,
            op0=AluOp.ADD,
            immediate0=2.0,
            op1=AluOp.MULTIPLY,
            immediate1=3.0,
        )
    )
    for step in (small, large, small):
        step()
    first, second = (v.astype(np.float16).astype(np.float32) for v in (a, b))
    assert np.array_equal(
        bench.at(C, (128, 16), BF16).view(np.uint16),
        (first + 1).astype(bench.at(C, (1, 1), BF16).dtype).view(np.uint16),
    )
    assert np.array_equal(bench.at(P, (128, 40), F32), (second + 2) * 3)
