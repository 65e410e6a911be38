"""The Tensor engine: column order, accumulation, fp32 passes and every way they can be interrupted, transposes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.dtypes import numpy_dtype
from emulator.engines import PeState
from emulator.faults import FaultError
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AccessPattern, Fp32Pass
from tests.emulator.engines.machine import PSUM, A, B, Bench, C, P

F32, BF16, F16 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16
NONE, LOW, HIGH, BOTH = Fp32Pass.NONE, Fp32Pass.LOW, Fp32Pass.HIGH, Fp32Pass.LOW_HIGH
RNG = np.random.default_rng(5)
D0, D1 = PSUM, PSUM + 0x800


def backwards(address: int, cols: int, dtype: Dtype) -> AccessPattern:
    return AccessPattern(address + (cols - 1) * dtype.size, (-1, 0, 0), (cols, 1, 1))


class Engine(Bench):
    """A bench with the words of the Tensor engine as calls."""

    def load(
        self, w: np.ndarray, dtype: Dtype = F32, fp32_pass: int = NONE, address: int = A, transpose: int = 0
    ) -> None:
        self.put(address, w, dtype)
        self.run(
            isa.LoadWeights(
                src=backwards(address, w.shape[1], dtype),
                dtype=dtype,
                fp32_mode=fp32_pass,
                transpose_mode=transpose,
                rows=w.shape[0],
                cols=w.shape[1],
            )
        )

    def multiply(
        self,
        x: np.ndarray,
        cols: int,
        flags: int = 3,
        dtype: Dtype = F32,
        fp32_pass: int = NONE,
        dst: int = D0,
        address: int = B,
        **fields: object,
    ) -> None:
        self.put(address, x, dtype)
        word = {
            "src": AccessPattern(address, (1, 0, 0), (x.shape[1], 1, 1)),
            "dst": AccessPattern(dst, (1, 0, 0), (x.shape[1], 1, 1)),
            "dtype": dtype,
            "acc_flags": flags,
            "fp32_mode": fp32_pass,
            "rows": x.shape[0],
            "cols": cols,
        }
        self.run(isa.MatMul(**{**word, **fields}))

    def result(self, cols: int, n: int, dst: int = D0) -> np.ndarray:
        return self.at(dst, (cols, n), F32).copy()


def operands(k: int = 128, m: int = 128, n: int = 512) -> tuple[np.ndarray, np.ndarray]:
    return RNG.normal(size=(k, m)).astype(np.float32), RNG.normal(size=(k, n)).astype(np.float32)


def close(got: np.ndarray, w: np.ndarray, x: np.ndarray, extra: np.ndarray | float = 0.0) -> bool:
    exact = w.astype(np.float64).T @ x.astype(np.float64) + extra
    bound = 4e-7 * (np.abs(w).astype(np.float64).T @ np.abs(x).astype(np.float64) + np.abs(extra))
    return bool((np.abs(got - exact) <= bound).all())


@pytest.mark.parametrize(("k", "m", "n"), [(128, 128, 512), (1, 128, 64), (128, 1, 7), (3, 5, 2), (64, 32, 1)])
@pytest.mark.parametrize("dtype", [BF16, F16], ids=lambda d: d.name)
def test_product_of_exact_inputs(dtype: Dtype, k: int, m: int, n: int) -> None:
    bench = Engine()
    w, x = RNG.integers(-8, 9, (k, m)).astype(np.float32), RNG.integers(-8, 9, (k, n)).astype(np.float32)
    bench.load(w, dtype)
    bench.multiply(x, m, dtype=dtype)
    assert np.array_equal(bench.result(m, n), w.T @ x)  # small integers: every order of summation gives the same


def test_the_compilers_two_byte_pattern_is_the_same_tile() -> None:
    """Real words stream fp16 columns as [-1,0,-32][32,1,4], from the last one back."""
    bench, (w, x) = Engine(), operands()
    bench.put(A, w, F16)
    bench.run(isa.LoadWeights(src=AccessPattern(A + 127 * 2, (-1, 0, -32), (32, 1, 4)), dtype=F16))
    bench.multiply(x, 128, dtype=F16)
    half = [v.astype(np.float16).astype(np.float32) for v in (w, x)]
    assert close(bench.result(128, 512), *half)


def test_first_flag_overwrites_and_its_absence_accumulates() -> None:
    bench, (w, x) = Engine(), operands()
    bench.load(w, BF16)
    w, x = (v.astype(numpy_dtype(BF16)).astype(np.float32) for v in (w, x))
    for flags, times in ((1, 1), (0, 2), (2, 3), (3, 1)):
        bench.multiply(x, 128, flags, BF16)
        assert np.allclose(bench.result(128, 512), times * (w.T @ x), rtol=1e-5, atol=1e-4)


def test_weights_stay_until_the_next_load() -> None:
    bench, (w, x) = Engine(), operands(n=16)
    bench.load(w, BF16)
    bench.multiply(x, 128, dtype=BF16, dst=D0)
    bench.multiply(2 * x, 128, dtype=BF16, dst=D1)
    assert np.array_equal(bench.result(128, 16, D1), 2 * bench.result(128, 16, D0))


def test_moving_operand_and_output_of_two_dimensions() -> None:
    """A real gen2 program streams every second pixel of two rows."""
    bench, (w, x) = Engine(), operands(n=24)
    bench.load(w)
    bench.put(B, x, F32)
    bench.run(
        isa.MatMul(
            src=AccessPattern(B, (2, 12, 0), (6, 2, 1)),
            dst=AccessPattern(D0, (1, 8, 0), (6, 2, 1)),
            dtype=F32,
            acc_flags=3,
        )
    )
    got = bench.at(D0, (128, 16), F32).reshape(128, 2, 8)[:, :, :6].reshape(128, 12)
    assert close(got, w, x[:, ::2])


def fp32_pair(bench: Engine, w: np.ndarray, x: np.ndarray, flags: tuple[int, int] = (1, 2), dst: int = D0) -> None:
    for fp32_pass, flag in zip((LOW, HIGH), flags, strict=True):
        bench.load(w, F32, fp32_pass)
        bench.multiply(x, w.shape[1], flag, F32, BOTH, dst)


def test_fp32_pair_is_one_fp32_product() -> None:
    bench, (w, x) = Engine(), operands()
    bench.load(w, F32, LOW)
    bench.multiply(x, 128, 1, F32, BOTH)
    assert (bench.result(128, 512) == 0).all()  # LOW has written, but adds nothing yet
    bench.load(w, F32, HIGH)
    bench.multiply(x, 128, 2, F32, BOTH)
    assert np.array_equal(bench.result(128, 512), w.T @ x)
    fp32_pair(bench, w, x, (0, 0))
    assert close(bench.result(128, 512), 2 * w, x)
    assert not bench.pe.pending


def test_two_products_of_one_pair_of_loads() -> None:
    bench, (w, x) = Engine(), operands(n=64)
    for fp32_pass, flags in ((LOW, 1), (HIGH, 2)):
        bench.load(w, F32, fp32_pass)
        bench.multiply(x, 128, flags, F32, BOTH, D0, B)
        bench.multiply(3 * x, 128, flags, F32, BOTH, D1, C)
    assert np.array_equal(bench.result(128, 64, D0), w.T @ x) and np.array_equal(
        bench.result(128, 64, D1), w.T @ (3 * x)
    )


def split(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    high = (w.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    return w - high, high


def test_high_alone_lacks_the_low_bits_and_low_alone_comes_later() -> None:
    bench, (w, x) = Engine(), operands()
    low, high = split(w)
    bench.load(w, F32, HIGH)
    bench.multiply(x, 128, 3, F32, BOTH)
    assert np.array_equal(bench.result(128, 512), high.T @ x)
    bench.load(w, F32, LOW)
    bench.multiply(x, 128, 3, F32, BOTH, D1)
    bench.load(w, F32, LOW)  # the next LOW load shows that no HIGH is coming
    assert np.array_equal(bench.result(128, 512, D1), low.T @ x)


def test_halves_of_different_tiles_are_not_taken_for_a_pair() -> None:
    bench, (w, x) = Engine(), operands(n=8)
    low, high = split(w)[0], split(2 * w + 1)[1]
    bench.load(w, F32, LOW, A)
    bench.multiply(x, 128, 1, F32, BOTH)
    bench.load(2 * w + 1, F32, HIGH, P)
    bench.multiply(x, 128, 2, F32, BOTH)
    assert np.allclose(bench.result(128, 8), low.T @ x + high.T @ x, rtol=1e-6, atol=1e-6)


def test_a_high_product_between_another_pair_leaves_nothing_out() -> None:
    bench, (w, x) = Engine(), operands(n=8)
    low, high = split(w)
    bench.load(w, F32, LOW)
    bench.multiply(x, 128, 1, F32, BOTH, D0, B)
    bench.load(w, F32, HIGH)
    bench.multiply(2 * x, 128, 0, F32, BOTH, D0, C)  # has no LOW of its own
    bench.multiply(x, 128, 2, F32, BOTH, D0, B)
    assert np.allclose(bench.result(128, 8), (low + high).T @ x + high.T @ (2 * x), rtol=1e-5, atol=1e-5)


# Sequences of words: (kind, which tile or operand, first flag or not, where). Whatever the order, PSUM must hold the
# sum of the halves that were multiplied since the last overwriting word, once the pending ones are flushed.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.integers(0, 1), st.sampled_from([LOW, HIGH, NONE])),
        st.tuples(st.just("multiply"), st.integers(0, 1), st.booleans(), st.sampled_from([D0, D1])),
    ),
    min_size=1,
    max_size=14,
)


@given(STEPS)
def test_any_sequence_sums_its_halves(steps: list[tuple]) -> None:
    bench = Engine()
    rng = np.random.default_rng(0)
    tiles = rng.normal(size=(2, 16, 4)).astype(np.float32)
    moving = rng.normal(size=(2, 16, 3)).astype(np.float32)
    expected = {D0: np.zeros((4, 3)), D1: np.zeros((4, 3))}
    paired: dict[tuple, int] = {}
    for dst in expected:
        bench.at(dst, (4, 3), F32)[...] = 0
    weights = None
    for step in steps:
        if step[0] == "load":
            _, which, fp32_pass = step
            bench.load(tiles[which], F32, fp32_pass, A + 0x100 * which)
            low, high = split(tiles[which])
            weights = {LOW: low, HIGH: high, NONE: tiles[which]}[fp32_pass]
            if not (fp32_pass == HIGH and paired.get("tile") == which):
                paired = {"tile": which} if fp32_pass == LOW else {}
            last = fp32_pass
        elif weights is not None:
            _, which, first, dst = step
            if last == HIGH and first and paired.pop((which, dst), None):
                continue  # an overwriting HIGH takes its LOW along: a pair is one product
            if last == LOW:
                paired[which, dst] = 1
            bench.multiply(moving[which], 4, 1 if first else 0, F32, BOTH, dst, B + 0x100 * which)
            product = weights.T.astype(np.float64) @ moving[which]
            expected[dst] = product if first else expected[dst] + product
    bench.pe.flush()
    for dst, sums in expected.items():
        assert np.allclose(bench.result(4, 3, dst), sums, rtol=1e-5, atol=1e-4)


def test_an_overwriting_high_takes_its_low_along() -> None:
    bench, (w, x) = Engine(), operands(n=8)
    fp32_pair(bench, w, x, (3, 3))
    assert np.array_equal(bench.result(128, 8), w.T @ x)


def test_infinities_survive_both_passes() -> None:
    bench, (w, x) = Engine(), operands(4, 4, 4)
    w[0, 0], x[...] = np.inf, np.abs(x)
    fp32_pair(bench, w, x)
    assert (bench.result(4, 4)[0] == np.inf).all() and np.isfinite(bench.result(4, 4)[1:]).all()


def test_an_infinity_that_moves_survives_both_passes() -> None:
    bench, (w, x) = Engine(), operands(4, 4, 4)
    w[...], x[1, 2] = np.abs(w), np.inf
    bench.load(w)
    for fp32_pass, flags in ((LOW, 1), (HIGH, 2)):
        bench.multiply(x, 4, flags, F32, fp32_pass)
    assert np.array_equal(np.isinf(bench.result(4, 4)), np.broadcast_to(np.arange(4) == 2, (4, 4)))
    assert not np.isnan(bench.result(4, 4)).any()


def test_moving_passes_take_half_of_the_moving_operand() -> None:
    bench, (w, x) = Engine(), operands(n=32)
    low, high = split(x)
    bench.load(w)
    for fp32_pass, part in ((HIGH, high), (LOW, low), (BOTH, x)):
        bench.multiply(x, 128, 3, F32, fp32_pass)
        assert np.array_equal(bench.result(128, 32), w.T @ part)


def test_gen2_transposes_by_an_identity() -> None:
    bench, w = Engine("trn1"), RNG.normal(size=(128, 128)).astype(np.float32)
    for fp32_pass, flags in ((LOW, 1), (HIGH, 2)):
        bench.load(w, F32, fp32_pass)
        bench.multiply(np.eye(128, dtype=np.float32), 128, flags, F32, HIGH)
    assert np.array_equal(bench.result(128, 128), w.T)
    with pytest.raises(UnsupportedError, match="gen2 has no transpose mode"):
        bench.load(w, F32, LOW, transpose=1)


@pytest.mark.parametrize(("dtype", "fp32_pass"), [(F32, LOW), (BF16, NONE), (F16, NONE)], ids=["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("k", "m"), [(128, 128), (64, 128), (128, 5), (3, 7)])
def test_transpose_mode_keeps_every_bit(dtype: Dtype, fp32_pass: int, k: int, m: int) -> None:
    bench = Engine()
    raw = RNG.integers(0, 1 << 8 * dtype.size, (k, m), np.uint64).astype(f"u{dtype.size}")  # NaNs with payloads, too
    bench.put(A, raw.view(numpy_dtype(dtype)), dtype)
    bench.at(A, (k, m), dtype).view(raw.dtype)[...] = raw
    bench.run(
        isa.LoadWeights(src=backwards(A, m, dtype), dtype=dtype, fp32_mode=fp32_pass, transpose_mode=1, rows=k, cols=m)
    )
    bench.multiply(np.eye(k, dtype=np.float32), m, 3, dtype, BOTH if dtype == F32 else NONE, transpose_mode=1)
    assert np.array_equal(bench.at(D0, (m, k), dtype).view(raw.dtype), raw.T)


def test_transpose_mode_by_another_matrix_is_refused() -> None:
    bench, w = Engine(), RNG.normal(size=(8, 8)).astype(np.float32)
    bench.load(w, BF16, transpose=1)
    with pytest.raises(UnsupportedError, match="anything but an identity"):
        bench.multiply(np.ones((8, 8)), 8, 3, BF16, transpose_mode=1)
    with pytest.raises(UnsupportedError, match="accumulates"):
        bench.multiply(np.eye(8), 8, 2, BF16, transpose_mode=1)


def test_bf16_output_is_rounded_after_an_fp32_sum() -> None:
    bench, (w, x) = Engine("trn3"), operands(n=16)
    bench.load(w, BF16)
    narrow = numpy_dtype(BF16)
    first = None
    for flags in (1, 0):
        bench.multiply(x, 128, flags, BF16, dst_dtype=BF16)
        got = bench.at(D0, (128, 16), BF16).copy()
        w1, x1 = (v.astype(narrow).astype(np.float32) for v in (w, x))
        total = w1.T @ x1 if first is None else first.astype(np.float32) + w1.T @ x1
        assert np.array_equal(got, total.astype(narrow))
        first = got


def test_words_that_do_not_fit_their_weights_are_faults() -> None:
    bench, (w, x) = Engine(), operands(64, 32, 8)
    bench.load(w, BF16)
    for fields, name in (({"rows": 32}, "rows"), ({"cols": 16}, "columns"), ({"row_groups": 7}, "row groups")):
        with pytest.raises(FaultError, match=f"weights differ in {name}"):
            bench.multiply(x, fields.pop("cols", 32), dtype=BF16, **fields)
    with pytest.raises(FaultError, match="columns and pattern differ"):
        bench.bind(isa.LoadWeights(src=backwards(A, 32, BF16), dtype=BF16, cols=64))
    with pytest.raises(FaultError, match="differ in size"):
        bench.bind(
            isa.MatMul(
                src=AccessPattern(B, (1, 0, 0), (8, 1, 1)), dst=AccessPattern(D0, (1, 0, 0), (9, 1, 1)), dtype=F32
            )
        )
    with pytest.raises(UnsupportedError, match="64 rows in row groups 0x1 of 32 each"):
        bench.multiply(x, 32, dtype=BF16, row_groups=1)
    with pytest.raises(UnsupportedError, match="multiplies floats"):
        bench.load(w, Dtype.INT32)
    with pytest.raises(UnsupportedError, match="fp32 pass on bfloat16"):
        bench.load(w, BF16, LOW)


def test_state_can_be_saved_and_brought_back() -> None:
    bench, (w, x) = Engine(), operands(16, 8, 4)
    bench.load(w, F32, LOW)
    bench.multiply(x, 8, 1, F32, BOTH)
    saved, mark = bench.pe.snapshot(), bench.pe.fingerprint()
    bench.load(w, F32, HIGH)
    bench.multiply(x, 8, 2, F32, BOTH)
    expected, other = bench.result(8, 4), bench.pe.fingerprint()
    assert other != mark
    bench.load(w + 1, F32, NONE)
    bench.at(D0, (8, 4), F32)[...] = 0
    bench.pe.restore(saved)
    assert bench.pe.fingerprint() == mark
    bench.load(w, F32, HIGH)
    bench.multiply(x, 8, 2, F32, BOTH)
    assert np.array_equal(bench.result(8, 4), expected) and bench.pe.fingerprint() == other
    assert PeState().fingerprint() == PeState().fingerprint()
