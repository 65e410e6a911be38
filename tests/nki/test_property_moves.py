"""Copies, fills, shuffles, transposes, reductions and activations against NumPy, over types, patterns and generations.

Patterns here have up to three free dimensions in any order of memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from tests.nki import reference
from tests.nki.direct import CASES, TARGETS, Layout, dtype_of, layouts, run, seeds, tile, values_of
from tests.nki.test_property_elementwise import INTEGERS, NUMBERS, any_bits, same

ANY = st.sampled_from(TARGETS)
F32 = np.float32
FLOATS = st.sampled_from(["float32", "bfloat16", "float16"])
SIZES = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6))
ORDERS = st.sampled_from([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])


def block(sizes: tuple[int, ...], dtype: Any, layout: Layout, order: tuple[int, ...], partitions: int = 16) -> Any:
    """Return a (partitions, *sizes) view whose dimensions lie in another order, with gaps between elements."""
    placed = [sizes[one] for one in order]
    whole = nl.ndarray((layout.start + partitions, *placed, layout.lead + layout.step), dtype,
                       nl.psum if layout.psum else nl.sbuf)  # fmt: skip
    part = whole[layout.start : layout.start + partitions, :, :, :, layout.lead]
    return part.permute((0, *(1 + order.index(one) for one in range(3))))


@CASES
@given(rng=seeds(), types=st.tuples(NUMBERS, NUMBERS), sizes=SIZES, orders=st.tuples(ORDERS, ORDERS),
       src=layouts(psum=True), dst=layouts(psum=True), engine=st.sampled_from(["vector", "scalar", "gpsimd"]),
       target=ANY)  # fmt: skip
def test_tensor_copy_casts_between_all_types(
    rng: np.random.Generator, types: tuple[str, str], sizes: tuple[int, ...], orders: Any, src: Layout, dst: Layout,
    engine: str, target: str,
) -> None:  # fmt: skip
    if engine == "gpsimd":
        src, dst = src._replace(psum=False), dst._replace(psum=False)
    if engine == "scalar" and target == "trn1":
        engine = "vector"
    data = any_bits(rng, types[0], (16, *sizes)) if "int" in types[0] else values_of(rng, (16, *sizes), types[0]) * 97

    def body() -> Any:
        x = block(sizes, dtype_of(types[0]), src, orders[0])
        out = block(sizes, dtype_of(types[1]), dst, orders[1])
        nisa.tensor_copy(out, x, engine=getattr(nisa.engine, engine))
        return [(x, data)], [out]

    expected = data if types[0] == types[1] else reference.cast(data.astype(F32), types[1])
    same(run(body, target)[0], expected)


@CASES
@given(rng=seeds(), dtype=st.sampled_from(["float32", "bfloat16", "float16"]), target=ANY, dst=layouts(psum=True))
def test_a_copy_keeps_every_bit(rng: np.random.Generator, dtype: str, target: str, dst: Layout) -> None:
    width = np.dtype(dtype).itemsize
    data = rng.integers(0, 1 << 8 * width, (16, 9), np.uint64).astype(f"u{width}").view(dtype)  # NaNs of every kind

    def body() -> Any:
        x, out = tile(16, 9, dtype_of(dtype)), tile(16, 9, dtype_of(dtype), dst)
        nisa.tensor_copy(out, x)
        return [(x, data)], [out]

    assert run(body, target)[0].view(f"u{width}").tolist() == data.view(f"u{width}").tolist()


@CASES
@given(number=st.integers(-(2**31), 2**32 - 1) | st.floats(-1e4, 1e4, width=32), dtype=NUMBERS, dst=layouts(psum=True),
       gpsimd=st.booleans(), target=ANY)  # fmt: skip
def test_memset(number: float, dtype: str, dst: Layout, gpsimd: bool, target: str) -> None:
    if "int" in dtype:
        bounds = np.iinfo(dtype)
        number = min(max(int(number), int(bounds.min)), int(bounds.max))
    elif dtype == "float16":
        number = min(max(number, -60000), 60000)
    dst = dst._replace(psum=dst.psum and not gpsimd)

    def body() -> Any:
        out, beside = tile(16, 5, dtype_of(dtype), dst), tile(16, 5, dtype_of(dtype), dst)
        nisa.memset(out, number, engine=nisa.engine.gpsimd if gpsimd else nisa.engine.unknown)
        return [(beside, np.ones((16, 5), dtype))], [out, beside]

    out, beside = run(body, target)
    same(out, np.full((16, 5), number).astype(F32 if "int" not in dtype else dtype).astype(dtype))
    assert (beside == 1).all()


@CASES
@given(rng=seeds(), dtype=NUMBERS, quadrants=st.sampled_from([1, 2, 4]), in_place=st.booleans(), target=ANY,
       psum=st.tuples(st.booleans(), st.booleans()),
       starts=st.tuples(st.integers(0, 3), st.integers(0, 3)))  # fmt: skip
def test_stream_shuffle(
    rng: np.random.Generator, dtype: str, quadrants: int, in_place: bool, target: str, psum: tuple[bool, bool],
    starts: tuple[int, int],
) -> None:  # fmt: skip
    partitions = 32 * quadrants
    first, second = (one * 32 % (160 - partitions) // partitions * partitions for one in starts)
    mask = [int(one) for one in np.where(rng.random(32) < 0.2, 255, rng.integers(0, 32, 32))]
    data, before = (any_bits(rng, dtype, (partitions, 5)) if "int" in dtype else
                    values_of(rng, (partitions, 5), dtype) for _ in range(2))  # fmt: skip

    def body() -> Any:
        x = tile(partitions, 5, dtype_of(dtype), Layout(first, psum=psum[0]))
        out = x if in_place else tile(partitions, 5, dtype_of(dtype), Layout(second, psum=psum[1]))
        nisa.nc_stream_shuffle(out, x, mask)
        return ([] if in_place else [(out, before)]) + [(x, data)], [out]

    expected = data.copy() if in_place else before.copy()
    for row in range(partitions):
        if mask[row % 32] != 255:
            expected[row] = data[row // 32 * 32 + mask[row % 32]]
    same(run(body, target)[0], expected)


@CASES
@given(rng=seeds(), dtype=NUMBERS, rows=st.integers(1, 32), columns=st.integers(1, 32), src=layouts(psum=True),
       dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_vector_transpose(
    rng: np.random.Generator, dtype: str, rows: int, columns: int, src: Layout, dst: Layout, target: str
) -> None:
    data = any_bits(rng, dtype, (rows, columns)) if "int" in dtype else values_of(rng, (rows, columns), dtype)

    def body() -> Any:
        x, out = tile(rows, columns, dtype_of(dtype), src), tile(columns, rows, dtype_of(dtype), dst)
        nisa.nc_transpose(out, x, engine=nisa.engine.vector)
        return [(x, data)], [out]

    same(run(body, target)[0], data.T)


REDUCED = ("add", "subtract", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor")


@CASES
@given(rng=seeds(), types=st.tuples(FLOATS | NUMBERS, st.just("float32") | NUMBERS), op=st.sampled_from(REDUCED),
       sizes=SIZES, order=ORDERS, first=st.integers(1, 3), negate=st.booleans(), src=layouts(psum=True),
       target=ANY)  # fmt: skip
def test_tensor_reduce_folds_left_to_right_in_fp32(
    rng: np.random.Generator, types: tuple[str, str], op: str, sizes: tuple[int, ...], order: tuple[int, ...],
    first: int, negate: bool, src: Layout, target: str,
) -> None:  # fmt: skip
    data = values_of(rng, (16, *sizes), types[0])
    if "int" not in types[0]:
        data = rng.normal(size=(16, *sizes)).astype(types[0])  # sums that depend on their order
    kept = math.prod(sizes[: first - 1])

    def body() -> Any:
        x = block(sizes, dtype_of(types[0]), src, order)
        out = tile(16, kept, dtype_of(types[1]))
        nisa.tensor_reduce(out, getattr(nl, op), x, axis=tuple(range(first, 4)), negate=negate)
        return [(x, data)], [out]

    values = data.astype(F32).reshape(16, kept, -1)
    total = reference.folded(op, values) if values.shape[2] > 1 or "logical" not in op else (values[..., 0] != 0)
    total = total.astype(F32)
    same(run(body, target)[0], reference.cast(-total if negate else total, types[1]))


@CASES
@given(rng=seeds(), dtype=INTEGERS, op=st.sampled_from(["bitwise_and", "bitwise_or", "bitwise_xor"]), sizes=SIZES,
       order=ORDERS, src=layouts(psum=True), target=ANY)  # fmt: skip
def test_tensor_reduce_folds_bit_patterns(
    rng: np.random.Generator, dtype: str, op: str, sizes: tuple[int, ...], order: tuple[int, ...], src: Layout,
    target: str,
) -> None:  # fmt: skip
    data = any_bits(rng, dtype, (16, *sizes))

    def body() -> Any:
        x, out = block(sizes, dtype_of(dtype), src, order), tile(16, 1, dtype_of(dtype))
        nisa.tensor_reduce(out, getattr(nl, op), x, axis=(1, 2, 3))
        return [(x, data)], [out]

    columns = data.reshape(16, -1)
    expected = columns[:, 0]
    for number in range(1, columns.shape[1]):
        expected = reference.bits(op, expected, columns[:, number])
    same(run(body, target)[0][:, 0], expected)


def _cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# Activation functions written with Python's own floats, and from where on they are tried.
FUNCTIONS: dict[str, tuple[Callable[[float], float], float]] = {
    "exp": (math.exp, -9),
    "log": (math.log, 0.01),
    "sqrt": (math.sqrt, 0),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 0.01),
    "reciprocal": (lambda x: 1 / x, 0.01),
    "square": (lambda x: x * x, -9),
    "tanh": (math.tanh, -9),
    "sigmoid": (_sigmoid, -9),
    "silu": (lambda x: x * _sigmoid(x), -9),
    "silu_dx": (lambda x: _sigmoid(x) * (1 + x * (1 - _sigmoid(x))), -9),
    "gelu": (lambda x: x * _cdf(x), -9),
    "gelu_dx": (lambda x: _cdf(x) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi), -9),
    "gelu_apprx_tanh": (lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), -5),
    "gelu_apprx_sigmoid": (lambda x: x * _sigmoid(1.702 * x), -9),
    "softplus": (lambda x: math.log1p(math.exp(x)), -9),
    "mish": (lambda x: x * math.tanh(math.log1p(math.exp(x))), -9),
    "erf": (math.erf, -4),
    "erf_dx": (lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x), -3),
    "sin": (math.sin, -3.1),
    "cos": (math.cos, -3.1),
    "arctan": (math.atan, -1.5),
    "abs": (abs, -9),
    "relu": (lambda x: max(x, 0.0), -9),
    "sign": (lambda x: float((x > 0) - (x < 0)), -9),
    "floor": (lambda x: float(math.floor(x)), -9),
    "ceil": (lambda x: float(math.ceil(x)), -9),
    "trunc": (lambda x: float(math.trunc(x)), -9),
    "copy": (float, -9),
}


@CASES
@given(rng=seeds(), types=st.tuples(FLOATS, FLOATS), op=st.sampled_from(sorted(FUNCTIONS)), scale=st.booleans(),
       bias=st.sampled_from(["", "float32", "bfloat16", "number"]), command=st.sampled_from(["idle", "reset_reduce",
       "reduce"]), src=layouts(psum=True), dst=layouts(psum=True), target=ANY)  # fmt: skip
def test_activation(
    rng: np.random.Generator, types: tuple[str, str], op: str, scale: bool, bias: str, command: str, src: Layout,
    dst: Layout, target: str,
) -> None:  # fmt: skip
    function, low = FUNCTIONS[op]
    high = {"sin": 3.1, "cos": 3.1, "arctan": 1.5}.get(op, 6.0)
    if bias == "number" and target == "trn1":
        bias = "float32"  # constants need gen3
    scales = rng.uniform(0.5, 2, (16, 1)).astype(F32) if scale else np.full((16, 1), 0.75, F32)
    shift = rng.uniform(-0.25, 0.25, (16, 1)).astype("float32" if bias in ("", "number") else bias)
    shift = np.zeros((16, 1), F32) if not bias else np.full((16, 1), 0.125, F32) if bias == "number" else shift
    data = ((rng.uniform(low + 0.05, high, (16, 7)) - shift.astype(F32)) / scales).astype(types[0])
    arguments = data.astype(F32) * scales + shift.astype(F32)  # rounded as the engine rounds them
    if low >= 0:
        arguments, data = np.maximum(arguments, low), np.where(arguments < low, data, data)
        if (data.astype(F32) * scales + shift.astype(F32) < low).any():
            return

    def body() -> Any:
        x, out = tile(16, 7, dtype_of(types[0]), src), tile(16, 7, dtype_of(types[1]), dst)
        a, b, total = tile(16, 1, nl.float32), tile(16, 1, dtype_of(str(shift.dtype))), tile(16, 1, nl.float32)
        first = tile(16, 7, nl.float32)
        given = {"scale": a if scale else 0.75, "bias": None if not bias else 0.125 if bias == "number" else b}
        reducing = {"reduce_op": nl.add, "reduce_res": total, "reduce_cmd": nisa.reduce_cmd[command]}
        nisa.activation_reduce(first, nl.copy, x, nl.add, None)  # leaves the sums of data in the registers
        nisa.activation(out, getattr(nl, op), x, **given, **(reducing if command != "idle" else {}))
        return [(x, data), (a, scales), (b, shift), (total, np.zeros((16, 1), F32))], [out, total]

    out, total = run(body, target)
    expected = np.vectorize(function, otypes=[np.float64])(arguments.astype(np.float64))
    tolerance = {"float32": 2e-6, "bfloat16": 2**-8, "float16": 2**-10}[types[1]]
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    sums = expected.sum(axis=1) + (data.astype(np.float64).sum(axis=1) if command == "reduce" else 0)
    size = np.abs(expected).sum(axis=1) + np.abs(data.astype(np.float64)).sum(axis=1)
    if command == "idle":
        assert not total.any()
    else:
        assert (np.abs(total[:, 0] - sums) <= 2e-6 * size + 2e-6).all()  # over fp32 results, before they are rounded


MATMUL_TYPES = ("bfloat16", "float16", "float32", "float8_e4m3", "float8_e5m2")


BIT_TYPES = ("float32", "bfloat16", "float16", "int32", "uint16", "int8", "uint8")


def factor(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Any:
    return (rng.integers(-8, 9, shape) * 0.25).astype(dtype)


@CASES
@given(rng=seeds(), types=st.tuples(*[st.sampled_from(MATMUL_TYPES)] * 2), k=st.integers(1, 32), m=st.integers(1, 32),
       n=st.integers(1, 40), one=layouts(), other=layouts(), again=st.sampled_from([None, True, False]),
       result=st.sampled_from(["float32", "bfloat16"]), target=ANY)  # fmt: skip
def test_matmul_overwrites_and_accumulates(
    rng: np.random.Generator, types: tuple[str, str], k: int, m: int, n: int, one: Layout, other: Layout,
    again: bool | None, result: str, target: str,
) -> None:  # fmt: skip
    if "float32" in types:
        types = ("float32", "float32")
    result = "float32" if target != "trn3" else result
    left, right, second = factor(rng, (k, m), types[0]), factor(rng, (k, n), types[1]), factor(rng, (k, n), types[1])

    def body() -> Any:
        a = tile(k, m, getattr(nl, types[0]), one)
        b, c = (tile(k, n, getattr(nl, types[1]), place) for place in (other._replace(start=one.start), one))
        out = nl.ndarray((m, n), getattr(nl, result), nl.psum)
        nisa.nc_matmul(out, a, b)
        nisa.nc_matmul(out, a, c, accumulate=again)
        return [(a, left), (b, right), (c, second)], [out]

    first, more = (left.astype(np.float64).T @ one.astype(np.float64) for one in (right, second))
    got = run(body, target)[0].astype(np.float64)
    expected = more if again is False else first + more
    if result == "float32":
        same(got, expected)  # sums of small multiples of 1/16 are exact in any order
    else:
        np.testing.assert_allclose(got, expected, rtol=2**-7, atol=2**-7 * np.abs(first).max())


@CASES
@given(rng=seeds(), dtype=st.sampled_from([*BIT_TYPES, "float8_e4m3", "float8_e5m2"]),
       rows=st.integers(1, 128), columns=st.integers(1, 128), lead=st.integers(0, 3),
       target=st.sampled_from(TARGETS[1:]))  # fmt: skip
def test_array_transpose_keeps_every_bit(
    rng: np.random.Generator, dtype: str, rows: int, columns: int, lead: int, target: str
) -> None:
    width = np.dtype(dtype).itemsize
    data = rng.integers(0, 1 << 8 * width, (rows, columns), np.uint64).astype(f"u{width}").view(dtype)

    def body() -> Any:
        x = tile(rows, columns, getattr(nl, dtype), Layout(0, lead))
        out = nl.ndarray((columns, rows), getattr(nl, dtype), nl.psum)
        nisa.nc_transpose(out, x, engine=nisa.engine.tensor)
        return [(x, data)], [out]

    got = run(body, target)[0]
    assert (got.view(f"u{width}") == data.view(f"u{width}").T).all()


@CASES
@given(rng=seeds(), rows=st.integers(1, 128), columns=st.integers(1, 128),
       dtype=st.sampled_from(["float32", "bfloat16", "float16", "int8", "uint8", "int16", "uint16"]))  # fmt: skip
def test_array_transpose_of_gen2_multiplies(rng: np.random.Generator, dtype: str, rows: int, columns: int) -> None:
    whole = "int" in dtype
    data = any_bits(rng, dtype, (rows, columns)) if whole else rng.normal(size=(rows, columns)).astype(dtype)

    def body() -> Any:
        x = tile(rows, columns, dtype_of(dtype))
        out = nl.ndarray((columns, rows), dtype_of(dtype) if whole else nl.float32, nl.psum)
        nisa.nc_transpose(out, x, engine=nisa.engine.tensor)
        return [(x, data)], [out]

    same(run(body, "trn1")[0], data.T)
