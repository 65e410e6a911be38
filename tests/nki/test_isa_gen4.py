"""MX quantization and products, double FP8 products, the second activation: against NumPy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki import NkiValidationError
from tests.nki.direct import CASES, Layout, dtype_of, layouts, run, seeds, tile, values_of
from tests.nki.support import trace_body

CMD = nisa.reduce_cmd
Array = np.ndarray[Any, Any]
KINDS: dict[str, tuple[Any, Any, int]] = {
    "e4m3": (nl.float8_e4m3fn_x4, ml_dtypes.float8_e4m3fn, 8),
    "e5m2": (nl.float8_e5m2_x4, ml_dtypes.float8_e5m2, 15),
}


def scale_rows(partitions: int) -> list[int]:
    """Return the partitions in which the scales of MX data lie."""
    return [quadrant * 32 + row for quadrant in range(partitions // 32) for row in range(4)]


def quantized(data: Array, kind: str) -> tuple[Array, Array]:
    """Return elements and scale codes, group by group, from the documented formula."""
    _, narrow, largest = KINDS[kind]
    partitions, width = data.shape
    elements = np.zeros(data.shape, narrow)
    codes = np.zeros((partitions // 8, width // 4), np.uint8)
    for p in range(partitions // 8):
        for c in range(width // 4):
            group = data[8 * p : 8 * p + 8, 4 * c : 4 * c + 4].astype(np.float64)
            most = float(np.abs(group).max())
            exponent = math.floor(math.log2(most)) - (largest - 1) if most else -127
            codes[p, c] = exponent + 127
            elements[8 * p : 8 * p + 8, 4 * c : 4 * c + 4] = (group / 2.0**exponent).astype(np.float32).astype(narrow)
    return elements, codes


@CASES
@given(rng=seeds(), kind=st.sampled_from(sorted(KINDS)), dtype=st.sampled_from(["bfloat16", "float16"]),
       partitions=st.sampled_from([32, 64, 128]), columns=st.integers(1, 6),
       offset=st.sampled_from([0, 4, 8, 12]))  # fmt: skip
def test_quantize_mx(
    rng: np.random.Generator, kind: str, dtype: str, partitions: int, columns: int, offset: int
) -> None:
    data = (rng.normal(size=(partitions, 4 * columns)) * 2.0 ** rng.integers(-8, 8, (partitions, 1))).astype(dtype)
    data[:8, :4] = 0

    def body() -> Any:
        src, dst = tile(partitions, 4 * columns, dtype_of(dtype)), nl.ndarray((partitions, columns), KINDS[kind][0])
        whole = nl.ndarray((128, columns), nl.uint8)
        nisa.quantize_mx(dst, src, whole[offset:])
        return [(src, data), (whole, 77)], [dst, whole]

    packed, scales = run(body, "trn3")
    elements, codes = quantized(data, kind)
    rows = [offset + row for row in scale_rows(partitions)]
    assert (packed.view(np.uint8) == elements.view(np.uint8)).all()
    assert (scales[rows] == codes).all() and (np.delete(scales, rows, axis=0) == 77).all()


@CASES
@given(rng=seeds(), left=st.sampled_from(["e4m3", "e5m2", "fp4"]), right=st.sampled_from(["e4m3", "e5m2", "fp4"]),
       partitions=st.sampled_from([32, 128]), m=st.sampled_from([2, 6]), n=st.integers(1, 7),
       out=st.sampled_from(["float32", "bfloat16"]))  # fmt: skip
def test_matmul_mx(rng: np.random.Generator, left: str, right: str, partitions: int, m: int, n: int, out: str) -> None:
    def factor(kind: str, columns: int) -> tuple[Any, Array, Array, Array]:
        codes = rng.integers(120, 134, (partitions // 8, columns)).astype(np.uint8)
        if kind == "fp4":
            raw = rng.integers(0, 16, (partitions, columns, 4)).astype(np.uint8)
            values = raw.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
            packed = sum(raw[..., i].astype(np.uint16) << (4 * i) for i in range(4))
            dtype = nl.float4_e2m1fn_x4
        else:
            dtype, narrow, _ = KINDS[kind]
            elements = rng.normal(size=(partitions, columns, 4)).astype(narrow)
            values, packed = elements.astype(np.float64), elements.view(np.uint32)[..., 0]
        scaled = values * np.repeat(2.0 ** (codes.astype(np.float64) - 127), 8, axis=0)[..., None]
        return dtype, np.asarray(packed), codes, scaled

    first, second = factor(left, m), factor(right, n)

    def body() -> Any:
        inputs, tiles = [], []
        for dtype, packed, codes, _ in (first, second):
            data, scales = nl.ndarray(packed.shape, dtype), nl.ndarray((128, packed.shape[1]), nl.float8_e8m0fnu)
            spread = np.zeros((128, packed.shape[1]), np.uint8)
            spread[scale_rows(partitions)] = codes
            inputs += [(data, packed), (scales, spread.view(ml_dtypes.float8_e8m0fnu))]
            tiles += [data, scales]
        dst = nl.ndarray((m, n), dtype_of(out), nl.psum)
        nisa.nc_matmul_mx(dst, tiles[0], tiles[2], tiles[1], tiles[3], accumulate=False)
        nisa.nc_matmul_mx(dst, tiles[0], tiles[2], tiles[1], tiles[3], accumulate=True)
        return inputs, [dst]

    (got,) = run(body, "trn3")
    expected = 2 * np.einsum("pmq,pnq->mn", first[3], second[3])
    scale = np.einsum("pmq,pnq->mn", np.abs(first[3]), np.abs(second[3]))
    assert (np.abs(got.astype(np.float64) - expected) <= scale * (1e-5 if out == "float32" else 2e-2)).all()


def test_an_mx_product_from_start_to_end() -> None:
    def kernel(a: Any, b: Any) -> Any:
        sides = []
        for x in (a, b):
            data = nl.load(x)
            packed = nl.ndarray((128, x.shape[1] // 4), nl.float8_e4m3fn_x4)
            scale = nl.ndarray((128, x.shape[1] // 4), nl.uint8)
            nisa.quantize_mx(packed, data, scale)
            sides += [packed, scale]
        product = nl.ndarray((64, 100), nl.float32, nl.psum)
        for _ in range(2):  # the second adds
            nisa.nc_matmul_mx(product, sides[0], sides[2], sides[1], sides[3])
        out = nl.ndarray((64, 100), nl.float32, nl.shared_hbm)
        nl.store(out, product)
        return out

    rng = np.random.default_rng(5)
    a = rng.normal(size=(128, 256)).astype("bfloat16")
    b = rng.normal(size=(128, 400)).astype("bfloat16")
    left, right = (x.astype(np.float64).reshape(128, -1, 4) for x in (a, b))
    expected = 2 * np.einsum("pmq,pnq->mn", left, right)
    got = nki.jit(platform_target="trn3")(kernel)(a, b)
    assert np.abs(got - expected).max() < 0.05 * np.abs(expected).max()
    assert np.corrcoef(got.ravel(), expected.ravel())[0, 1] > 0.998


def test_an_mx_product_over_a_half_written_tile_adds_to_what_is_there() -> None:
    def kernel(a: Any, b: Any) -> Any:
        sides = []
        for x in (a, b):
            data = nl.load(x)
            packed, scale = nl.ndarray((32, 8), nl.float8_e5m2_x4), nl.ndarray((4, 8), nl.uint8)
            nisa.quantize_mx(packed, data, scale)
            sides += [packed, scale]
        product = nl.ndarray((8, 8), nl.float32, nl.psum)
        nisa.nc_matmul_mx(product[:, 0:4], sides[0], sides[2][:, 0:4], sides[1], sides[3][:, 0:4])
        nisa.nc_matmul_mx(product, sides[0], sides[2], sides[1], sides[3])
        out = nl.ndarray((8, 8), nl.float32, nl.shared_hbm)
        nl.store(out, product)
        return out

    rng = np.random.default_rng(6)
    a, b = (rng.integers(-2, 3, (32, 32)).astype("bfloat16") for _ in range(2))
    once = np.einsum("pmq,pnq->mn", *(x.astype(np.float64).reshape(32, 8, 4) for x in (a, b)))
    got = nki.jit(platform_target="trn3")(kernel)(a, b)
    assert (got == np.concatenate([2 * once[:, :4], once[:, 4:]], axis=1)).all()


@CASES
@given(rng=seeds(), left=st.sampled_from([nl.float8_e4m3, nl.float8_e5m2]),
       right=st.sampled_from([nl.float8_e4m3, nl.float8_e5m2]), k=st.integers(1, 128), m=st.integers(1, 32),
       n=st.integers(1, 48), target=st.sampled_from(["trn2", "trn3"]),
       mode=st.sampled_from([nisa.matmul_perf_mode.double_row, "double_row"]))  # fmt: skip
def test_double_row_contracts_both_halves(
    rng: np.random.Generator, left: Any, right: Any, k: int, m: int, n: int, target: str, mode: Any
) -> None:
    a, b = rng.normal(size=(k, 2, m)).astype(left.numpy), rng.normal(size=(k, 2, n)).astype(right.numpy)

    def body() -> Any:
        one, two = nl.ndarray(a.shape, left), nl.ndarray(b.shape, right)
        out = nl.ndarray((m, n), nl.float32, nl.psum)
        nisa.nc_matmul(out, one, two, perf_mode=mode)
        return [(one, a), (two, b)], [out]

    expected = np.einsum("ptm,ptn->mn", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(run(body, target)[0], expected, rtol=1e-4, atol=1e-3)


PAIRS = [("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
         ("subtract", "bypass"), ("bypass", "bypass")]  # fmt: skip
FOLDS = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "abs_max": None, "abs_min": None}


@CASES
@given(rng=seeds(), ops=st.sampled_from(PAIRS), reverse0=st.booleans(), reverse1=st.booleans(), column=st.booleans(),
       dtype=st.sampled_from(["float32", "bfloat16", "int8"]), function=st.sampled_from(["exp", "prelu", "copy"]),
       fold=st.sampled_from(sorted(FOLDS)), src=layouts(psum=True), dst=layouts(psum=True))  # fmt: skip
def test_activate2(
    rng: np.random.Generator, ops: tuple[str, str], reverse0: bool, reverse1: bool, column: bool, dtype: str,
    function: str, fold: str, src: Layout, dst: Layout,
) -> None:  # fmt: skip
    reverse0, reverse1 = reverse0 and ops[0] != "bypass", reverse1 and ops[1] != "bypass"
    data = values_of(rng, (16, 7), dtype)
    first, second, slope = (rng.normal(size=(16, 1)).astype(np.float32) for _ in range(3))

    def body() -> Any:
        source, out = tile(16, 7, dtype_of(dtype), src), tile(16, 7, nl.float32, dst)
        a, b, alpha, total = (tile(16, 1, nl.float32) for _ in range(4))
        nisa.activate2(
            out, getattr(nl, function), source, a if column else 0.5, b if column else -1.5, getattr(nl, ops[0]),
            getattr(nl, ops[1]), alpha if column else 0.25, reverse0, reverse1, getattr(nl, fold), total,
            CMD.reset_reduce)  # fmt: skip
        return [(source, data), (a, first), (b, second), (alpha, slope)], [out, total]

    values = data.astype(np.float32)
    numbers = (first, second) if column else (np.float32(0.5), np.float32(-1.5))
    for op, number, reverse in zip(ops, numbers, (reverse0, reverse1), strict=True):
        if op != "bypass":
            values = getattr(np, op)(number, values) if reverse else getattr(np, op)(values, number)
    alpha = slope if column else np.float32(0.25)
    expected = {"exp": lambda v: np.exp(v), "prelu": lambda v: np.where(v > 0, v, v * alpha), "copy": lambda v: v}[
        function
    ](values)
    out, total = run(body, "trn3")
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    if FOLDS[fold] is not None:
        np.testing.assert_allclose(total[:, 0], FOLDS[fold].reduce(expected, axis=1), rtol=1e-4, atol=1e-5)
    else:
        most = np.abs(expected).max(axis=1) if fold == "abs_max" else np.abs(expected).min(axis=1)
        np.testing.assert_allclose(np.abs(total[:, 0]), most, rtol=1e-5)


def t(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype, buffer)


def product(**change: Any) -> None:
    x4, u8 = nl.float8_e4m3fn_x4, nl.uint8
    given: dict[str, Any] = {
        "dst": t(64, 32, buffer=nl.psum), "stationary": t(128, 64, dtype=x4), "moving": t(128, 32, dtype=x4),
        "stationary_scale": t(128, 64, dtype=u8), "moving_scale": t(128, 32, dtype=u8)}  # fmt: skip
    nisa.nc_matmul_mx(**(given | change))


def activated(**change: Any) -> None:
    given: dict[str, Any] = {"op": nl.exp, "imm0": 1.0, "imm1": 0.0, "op0": nl.multiply, "op1": nl.add}
    nisa.activate2(t(8, 4), data=t(8, 4), **(given | change))


LIMITS: list[tuple[str, Any, str]] = [
    ("trn2", product, "nc_matmul_mx: needs gen4"),
    ("trn3", lambda: product(stationary=t(128, 64)), "stationary is of float32, must be float8_e5m2_x4 or"),
    ("trn3", lambda: product(stationary=t(48, 64, dtype=nl.float8_e5m2_x4)), "is 48, must be a multiple of 32"),
    ("trn3", lambda: product(stationary=t(128, 63, dtype=nl.float8_e5m2_x4)), "size is 63, even, at most 128"),
    ("trn3", lambda: product(moving_scale=t(128, 32)), "moving_scale is of float32, must be float8_e8m0fnu or uint8"),
    ("trn3", lambda: product(moving_scale=t(99, 32, dtype=nl.uint8)), "is 99, must be at least 100"),
    ("trn3", lambda: product(moving_scale=t(128, 32, dtype=nl.uint8)[5:]), "must start 0, 4, 8 or 12 into 32"),
    ("trn3", lambda: product(dst=t(64, 32)), "in SBUF, must be in PSUM"),
    ("trn2", lambda: nisa.quantize_mx(t(8, 4), t(8, 4), t(8, 4)), "quantize_mx: needs gen4"),
    ("trn3", lambda: nisa.quantize_mx(t(32, 1, dtype=nl.float8_e5m2_x4), t(32, 4), t(4, 1)), "float16 or bfloat16"),
    ("trn2", activated, "activate2: needs gen4"),
    ("trn3", lambda: activated(op0=nl.add), "op0 and op1 is nl.add and nl.add, are no documented pair"),
    ("trn3", lambda: activated(reduce_op=nl.multiply, reduce_cmd=CMD.reduce), "reduce_op is nl.multiply, must be"),
    ("trn3", lambda: activated(reduce_cmd=CMD.load_reduce), "must be idle, reset, reduce or reset_reduce"),
    ("trn3", lambda: activated(op1=None, reverse1=True), "reverse1 is True, needs an operator other than bypass"),
    ("trn2", lambda: nisa.nc_matmul(t(8, 4, buffer=nl.psum), t(128, 2, 8), t(128, 2, 4),
                                    perf_mode=nisa.matmul_perf_mode.double_row), "double_row takes float8_e4m3"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "call", "message"), LIMITS, ids=[str(i) for i in range(len(LIMITS))])
def test_limits(target: str, call: Any, message: str) -> None:
    with pytest.raises(NkiValidationError) as error:
        trace_body(call, target)
    assert message in str(error.value)
