"""Element-wise operations against NumPy: floats, integers of every width, truth values, conversions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neurontools.compiler.graph import Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder
from tests.compiler.support import floats, integers, run_graph

Array = np.ndarray[Any, Any]
_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, 1e-8, -1e-8, 0.49999997, 1e8,
                     -3e9, 3.4e38], np.float32)  # fmt: skip


def _values() -> Array:
    return np.concatenate([_SPECIAL, floats(200) * 3, floats(50, seed=1) * 1e3])


_UNARY = {
    "abs": np.abs,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))),
    "negate": np.negative,
    "round-nearest-afz": lambda x: np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x),
    "round-nearest-even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x.astype(np.float64)),
    "sign": np.sign,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("opcode", _UNARY)
def test_a_function_of_one_float(opcode: str) -> None:
    x = _values()
    with np.errstate(all="ignore"):
        want = _UNARY[opcode](x).astype(np.float32)
    (got,) = run_graph(lambda b, x: b.op(opcode, x), x)
    np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-9)


@pytest.mark.parametrize(("opcode", "function"), [("sine", np.sin), ("cosine", np.cos), ("tan", np.tan)])
def test_angles_of_many_turns(opcode: str, function: Any) -> None:
    x = (floats(300) * 100).astype(np.float32)
    (got,) = run_graph(lambda b, x: b.op(opcode, x), x)
    np.testing.assert_allclose(got, function(x.astype(np.float64)), rtol=2e-4, atol=2e-5)


def test_rounding_to_even_is_exact() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 8388607.5, 8388609.0, -1e10], np.float32)
    (got,) = run_graph(lambda b, x: b.op("round-nearest-even", x), x)
    assert got.tobytes() == np.rint(x).tobytes()  # signs of zeros too


_BINARY = {
    "add": np.add,
    "atan2": np.arctan2,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "remainder": np.fmod,
    "subtract": np.subtract,
}


@pytest.mark.parametrize("opcode", _BINARY)
def test_a_function_of_two_floats(opcode: str) -> None:
    special = _SPECIAL[:9]
    a = np.concatenate([np.repeat(special, 9), floats(100)])
    b = np.concatenate([np.tile(special, 9), floats(100, seed=1)])
    with np.errstate(all="ignore"):
        want = _BINARY[opcode](a, b)
    (got,) = run_graph(lambda g, a, b: g.op(opcode, a, b), a, b)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


_NARROW = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]


@pytest.mark.parametrize("dtype", _NARROW)
@pytest.mark.parametrize("opcode", ["add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"])
def test_integers_wrap(opcode: str, dtype: Any) -> None:
    a, b = integers(300, dtype=dtype), integers(300, seed=1, dtype=dtype)[::-1].copy()
    functions: dict[str, Any] = {**_BINARY, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    with np.errstate(over="ignore"):
        want = functions[opcode](a, b)
    (got,) = run_graph(lambda g, a, b: g.op(opcode, a, b), a, b)
    assert got.dtype == want.dtype
    assert (got == want).all()


@pytest.mark.parametrize("dtype", _NARROW)
def test_division_of_integers_is_exact(dtype: Any) -> None:
    """Quotients cut towards 0; by 0 all ones, and the dividend is left, as XLA defines."""
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.max, 0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.min + 1], dtype)
    a = np.concatenate([np.repeat(edges, 10), integers(200, dtype=dtype)])
    b = np.concatenate([np.tile(edges, 10), integers(200, seed=1, dtype=dtype) >> (4 * (info.bits // 8 - 1))])
    pairs = list(zip(a.astype(object), b.astype(object), strict=True))
    quotient = [-1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    left = [x if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1) for x, y in pairs]
    got = run_graph(lambda g, a, b: [g.op("divide", a, b), g.op("remainder", a, b)], a, b)
    mask = (1 << info.bits) - 1
    assert [int(x) & mask for x in got[0]] == [x & mask for x in quotient]
    assert [int(x) & mask for x in got[1]] == [x & mask for x in left]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16, np.uint8])
def test_shifts(dtype: Any) -> None:
    bits = np.iinfo(dtype).bits
    a = integers(200, dtype=dtype)
    count = (np.arange(200) % (bits + 3)).astype(dtype)
    got = run_graph(
        lambda g, a, c: [g.op("shift-left", a, c), g.op("shift-right-logical", a, c),
                         g.op("shift-right-arithmetic", a, c)], a, count)  # fmt: skip
    unsigned = a.view(f"u{a.itemsize}").astype(object)
    signed = a.view(f"i{a.itemsize}").astype(object)
    mask = (1 << bits) - 1
    assert [int(x) & mask for x in got[0]] == [(x << int(c)) & mask for x, c in zip(unsigned, count, strict=False)]
    assert [int(x) & mask for x in got[1]] == [x >> int(c) for x, c in zip(unsigned, count, strict=False)]
    assert [int(x) & mask for x in got[2]] == [(x >> int(c)) & mask for x, c in zip(signed, count, strict=False)]


def test_bits_are_counted() -> None:
    a = integers(100)
    got = run_graph(lambda g, a: [g.op("popcnt", a), g.op("count-leading-zeros", a)], a)
    assert got[0].tolist() == [(int(x) & 0xFFFFFFFF).bit_count() for x in a]
    assert got[1].tolist() == [32 - (int(x) & 0xFFFFFFFF).bit_length() for x in a]


def test_integer_powers() -> None:
    a = np.array([2, -2, 1, -1, -1, 0, 3, 5, 7, -3], np.int32)
    b = np.array([10, 3, -5, -5, -4, -1, 0, 40, -2, 21], np.int32)
    (got,) = run_graph(lambda g, a, b: g.op("power", a, b), a, b)
    want = [1024, -8, 1, -1, 1, 0, 1, pow(5, 40, 1 << 32), 0, pow(-3, 21, 1 << 32)]
    assert [int(x) & 0xFFFFFFFF for x in got] == [x & 0xFFFFFFFF for x in want]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.int8, np.uint8])
def test_comparisons(dtype: Any) -> None:
    a = _values()[:60] if dtype is np.float32 else integers(60, dtype=dtype)
    b = np.roll(a, 1)
    b[::3] = a[::3]
    directions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
                  "GE": np.greater_equal}  # fmt: skip
    got = run_graph(lambda g, a, b: [g.compare(one, a, b) for one in directions], a, b)
    for mine, function in zip(got, directions.values(), strict=True):
        assert (mine.astype(bool) == function(a, b)).all()


def test_total_order_ranks_zeros_and_nans() -> None:
    line = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    a, b = np.repeat(line, 8), np.tile(line, 8)
    (got,) = run_graph(lambda g, a, b: g.op("compare", a, b, dtype="pred", direction="LT", type="TOTALORDER"), a, b)
    assert (got.astype(bool) == np.repeat(np.arange(8), 8).__lt__(np.tile(np.arange(8), 8))).all()


_CASTS = [(np.float32, np.int32), (np.float32, np.int8), (np.float32, ml_dtypes.bfloat16), (np.int32, np.float32),
          (np.int32, np.int8), (np.int8, np.int32), (np.uint8, np.int32), (np.int32, np.uint16), (np.float32, np.bool_),
          (np.int32, np.bool_), (np.bool_, np.float32), (np.bool_, np.int32), (np.uint32, np.float32),
          (np.float16, np.float32), (np.int16, np.float16)]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), _CASTS)
def test_conversions(source: Any, target: Any) -> None:
    x = (floats(100) * 100).astype(np.float32)
    if np.dtype(source).kind in "iu":
        x = integers(100, dtype=source)
    elif source is np.bool_:
        x = x > 0
    else:
        x = x.astype(source)
    x.reshape(-1)[5] = 0
    names = {"bool": "pred", "int32": "s32", "int8": "s8", "uint16": "u16", "float32": "f32", "bfloat16": "bf16",
             "float16": "f16"}  # fmt: skip
    (got,) = run_graph(lambda g, x: g.convert(x, names[np.dtype(target).name]), x)
    want = np.trunc(x).astype(np.int64).astype(target) if np.dtype(target).kind == "i" and x.dtype.kind == "f" else (
        x.astype(target))  # fmt: skip
    if target is np.int8 and x.dtype.kind == "f":
        want = np.clip(np.trunc(x), -128, 127).astype(np.int8)
    assert (got.astype(target) == want).all()


def test_selection_keeps_bits() -> None:
    where = floats(70) > 0
    a, b = np.full(70, np.nan, np.float32), floats(70, seed=1)
    (got,) = run_graph(lambda g, w, a, b: g.op("select", w, a, b), where, a, b)
    assert got.tobytes() == np.where(where, a, b).tobytes()


def test_fewer_bits_of_a_float() -> None:
    x = _values()
    (got,) = run_graph(lambda g, x: g.op("reduce-precision", x, exponent_bits=5, mantissa_bits=10), x)
    with np.errstate(over="ignore"):
        want = x.astype(np.float16).astype(np.float32)
    small = np.abs(want) < 2.0**-14  # denormals become 0
    np.testing.assert_array_equal(got, np.where(small, np.copysign(0, x), want))


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_a_chain_is_one_kernel_on_every_chip(target: str) -> None:
    a, b = floats(300, 40), floats(40, seed=1)

    def make(g: Builder, a: Value, b: Value) -> Value:
        wide = g.broadcast(b, a.shape, (1,))
        return g.op("tanh", g.op("add", g.op("multiply", a, wide), g.like(0.5, a)))

    (got,) = run_graph(make, a, b, options=CompileOptions(target=target))
    np.testing.assert_allclose(got, np.tanh(a * b + np.float32(0.5)), rtol=1e-6)


def test_sixty_four_bits_in_and_out() -> None:
    a = np.array([[1, -1, 5], [-(2**31), 2**31 - 1, 7]], np.int64)
    got = run_graph(lambda g, a: [g.op("add", a, g.like(1, a)), g.convert(a, "u64")], a)
    assert got[0].tolist() == [[2, 0, 6], [-(2**31) + 1, -(2**31), 8]]  # 32 bits inside
    assert got[1].dtype == np.uint64
    assert got[1][0].tolist() == [1, 0xFFFFFFFF, 5]
